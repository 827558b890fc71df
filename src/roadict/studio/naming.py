"""Messages of commands in the words of the page: its fields instead of options, signals and entries instead of X."""

import re
from collections.abc import Callable, Mapping

from roadict.studio.commands import Command
from roadict.studio.methods import METHODS
from roadict.studio.verdict import ATOMS, ERROR_BOUND, FIND, MARK, NUMBERS, SEED
from roadict.wording import WORD_BEGINS, WORD_ENDS

MISSING, SIGNS, KNOWN_ATOMS, METHOD, PER_SIGNAL = (
    "Empty cells and NaN are missing entries",
    "Signs",
    "Known atoms",
    "Method",
    "Atoms per signal",
)
NOISE, SCALE, HOLES, DRAWN, FILE = "Noise", "Scale", "Missing pixels", "Draw", "Mask file"
"""Labels of fields, and of what can be chosen there."""
SIGN_CHOICES = {
    "Any sign": None,
    "Codes nonnegative": "codes",
    "Atoms nonnegative": "atoms",
    "Both nonnegative": "both",
}
"""Values of ``--positive`` by what the page calls them."""
_FIELDS = {
    "learn": {
        "--components": ATOMS,
        "-k": ATOMS,
        "--epsilon": ERROR_BOUND,
        "--method": METHOD,
        "--sparsity": PER_SIGNAL,
        "--positive": SIGNS,
        "--fixed": KNOWN_ATOMS,
        "--missing": MISSING,
        "--stability": MARK,
        "--seed": SEED,
    },
    "upscale": {"--scale": SCALE, "--seed": SEED},
    "denoise": {"--sigma": NOISE, "--seed": SEED},
    "inpaint": {"--mask": FILE, "--seed": SEED},
}
"""Fields by the options that they set."""
_UNTICK = f"untick “{FIND}”"
_Rules = tuple[tuple[str, str], ...]
_LEARN: _Rules = (
    # Remedies first: what to do on the page.
    (r"leave it out or give a number", f"set it to auto, or {_UNTICK}"),
    (r"pass --components (\d+) or more", rf"enter \1 or more as “{ATOMS}”"),
    (r"pass smaller numbers or more samples", f"enter smaller “{NUMBERS}”, or drop more signals"),
    (r"pass fewer components", f"enter fewer “{ATOMS}”"),
    (r"ROADCV needs at least (\d+) to compare", r"at least \1 are needed to compare"),
    (r"ROADCV hides some and needs at least (\d+)", r"some are hidden, and at least \1 are needed"),
    (r"or use ROAD with a number", f"or {_UNTICK}"),
    (r"-k auto finds their number", f"tick “{FIND}”"),
    (r"pass --missing if", f"tick “{MISSING}” if"),
    (r"leave --positive out", "choose “Any sign”"),
    (r"pass --rho auto or data of moderate range", "drop signals of moderate range"),
    (r"stopped by --max-iter", "not converged"),
    (r"pass more features", "drop longer signals"),
    (r"\bX has (\d+) features", r"the signals have \1 entries"),
    (r"(\d+) feature(s?) (is|are) never observed \(first: feature", r"\1 column\2 \3 never observed (first: column"),
    (r"remove such features", "remove such columns"),
    (r" \(n_samples = \d+\)| \(n_features = \d+\)", ""),
    (r"the noise level follows from the data: epsilon", f"“{ERROR_BOUND}”, found in the data:"),
    # A sample, on the page, is something to try.
    (r"\bpass more\b(?! samples)", "drop more"),
    (r"\bpass more samples or features\b", "drop more or longer signals"),
    (r"\bpass more samples\b", "drop more signals"),
)
_CHOOSE = f"choose “{DRAWN}” or “{FILE}” as “{HOLES}”"
_TRANSPARENT: _Rules = (
    (r"no pixel is missing by the mask; mark .*", f"no pixel is transparent; {_CHOOSE}"),
    (r"all pixels are missing by the mask; .*", f"all pixels are transparent; {_CHOOSE}"),
    (r"there is no mask, and the picture has no alpha channel .*", f"no pixel is transparent; {_CHOOSE}"),
)
"""Where no mask was given."""
_PICTURE: _Rules = (
    (
        r"mask has shape \((\d+), (\d+)\) and the picture \((\d+), (\d+)\) \(height, width\); they must agree",
        r"the mask has \2 × \1 pixels and the picture \4 × \3; drop a mask of the same size",
    ),
)
_WORDS = {"sample": "signal", "samples": "signals", "feature": "entry", "features": "entries"}


def as_fields(text: str, command: Command) -> str:
    """Return a message of a command with the fields of the page for its options.

    Examples
    --------
    >>> from roadict.studio.commands import learn_command, picture_command
    >>> as_fields("--epsilon 2 must be below 1", learn_command("d.npy", epsilon=2))
    '“Error bound” 2 must be below 1'
    >>> as_fields("all entries of X are zero", learn_command("d.npy"))
    'all entries of d.npy are zero'
    >>> as_fields("pass 1.csv has 3 samples; pass more", learn_command("pass 1.csv"))
    'pass 1.csv has 3 signals; drop more'
    >>> as_fields("--sigma 300 must be a number from 0 to 255", picture_command("denoise", "cat.png"))
    '“Noise” 300 must be a number from 0 to 255'
    """
    names = {f"\0{index}\0": name for index, name in enumerate(_files(command))}
    for mark, name in names.items():
        text = text.replace(name, mark)
    text = _worded(text, command)
    for mark, name in names.items():
        text = text.replace(mark, name)
    return text


def _files(command: Command) -> list[str]:
    """Return names of files, longest first: they are no words of a message."""
    given = [command.arguments[1], command.output, *(command.options.get(name, "") for name in ("--fixed", "--mask"))]
    return sorted({name for name in given if name}, key=lambda name: (-len(name), name))


def _worded(text: str, command: Command) -> str:
    learns = command.task == "learn"
    rules = _LEARN if learns else _PICTURE if "--mask" in command.options else _PICTURE + _TRANSPARENT
    for pattern, words in rules:
        text = re.sub(pattern, words, text)
    text = re.sub(rf"{WORD_BEGINS}(-k|--[a-z][a-z-]*)(?: ((?!-)\S*[^\s.,;:]))?", _named(command), text)
    if learns:
        text = _replace(text, _WORDS | {f'"{name}"': words for name, words in METHODS.items()})
        text = _replace(text, {"Input X": command.arguments[1], "X": command.arguments[1]})
    if not command.options.get("-k", "0").isdigit():
        text = text.replace(f"“{ATOMS}”", f"“{NUMBERS}”")
    return re.sub(r"\bpass\b(?= \w)", "give", text)


def _named(command: Command) -> Callable[["re.Match[str]"], str]:
    """Return what replaces an option, and the word after it."""
    fields = _FIELDS.get(command.task, {})

    def replaced(match: "re.Match[str]") -> str:
        option, value = match[1], match[2]
        after = "" if value is None else f" {value}"
        if option not in fields:
            return match[0]
        if option == "--positive" and value in SIGN_CHOICES.values():
            return f"“{next(words for words, given in SIGN_CHOICES.items() if given == value)}”"
        if option == "--method" and value in METHODS:
            return f"“{METHOD}” {METHODS[value]}"
        return f"“{fields[option]}”{after}"

    return replaced


def _replace(text: str, words: Mapping[str, str]) -> str:
    listed = "|".join(map(re.escape, words))
    return re.sub(rf"{WORD_BEGINS}({listed}){WORD_ENDS}", lambda found: words[found[1]], text)
