"""Options in messages: the library names its parameters, users of the command line know the options."""

import re
import sys
from collections.abc import Sequence

from roadict.wording import WORD_BEGINS, WORD_ENDS

_FIT = {"n_jobs": "--jobs", "random_state": "--seed"}
PARAMETERS: dict[str, dict[str, str]] = {
    "learn": {
        name: f"--{name}" for name in ("alpha", "coder", "engine", "epsilon", "every", "formulation", "key", "tol")
    }
    | {f"{name}{index}": f"--{name}" for name in ("beta", "rho") for index in ("", 1, 2, 3)}
    | {"max_iter": "--max-iter", "n_init": "--n-init", "n_components": "--components"}
    | {"update": "--method", "n_nonzero_coefs": "--sparsity", "fixed_atoms": "--fixed"}
    | {"positive_code": "--positive", "positive_dict": "--positive", "missing_values": "--missing"}
    | _FIT,
    "encode": {name: f"--{name}" for name in ("algorithm", "alpha", "epsilon", "key")}
    | {"n_nonzero_coefs": "--n-nonzero-coefs", "missing_values": "--missing", "n_jobs": "--jobs"}
    | {"positive_code": "--positive"},  # of learn
    "upscale": {name: f"--{name}" for name in ("approach", "method", "scale")} | _FIT,
    "denoise": _FIT,
    "inpaint": _FIT,
    "demo": {"random_state": "--seed"},
}
"""Options by the names of the parameters that they set, for each command."""
_VALUES = {"positive_code=True": "--positive codes", "positive_dict=True": "--positive atoms"}
_VALUES |= {"missing_values=np.nan": "--missing"}
"""Parameters whose option takes another value, or none."""
_PHRASES = {
    "None, an integer of at least 0, or a numpy Generator, RandomState or SeedSequence": "a whole number of at least 0",
    ", or None for all cores": "; leave it out for all cores",
    " or None": "",
    "positive_code or positive_dict": "--positive",
    "pass one of them as the key": "pass one of them with --key",
}
"""What only Python has, and what stands for it."""
_WORDS = ("alpha", "beta", "epsilon", "rho", "tol")
"""Parameters that are also named without a value, and are no words that mean anything else."""
_VALUE = r"""'[^']*'|"[^"]*"|\([^()]*\)|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|-?inf|(?:np\.)?nan|True|False|None"""


def as_options(text: str, arguments: Sequence[str] | None = None) -> str:
    """Return a message of the library with the options of the command for its parameters.

    Parameters
    ----------
    text : str
    arguments : sequence of str, default=None
        Command and arguments; those with an equals sign or an underscore, such as names of files, stay as they are.
        None: this process's.

    Examples
    --------
    >>> as_options('alpha=-1.0 belongs to formulation="lasso"; leave it out', ["learn", "data.npy"])
    '--alpha -1 belongs to --formulation lasso; leave it out'
    >>> as_options("n_nonzero_coefs=3 is not used with coder=None", ["learn", "data.npy"])
    '--sparsity 3 is not used with no --coder'
    """
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    options = PARAMETERS.get(command, {})
    for phrase, other in _PHRASES.items():
        text = text.replace(phrase, other)
    text = re.sub(r"\bn_components=(\d+)(?= (?:\w+ )?atoms)", r"\1", text)
    kept = "|".join(re.escape(argument) for argument in rest if re.search("[=_]", argument)) or "(?!)"
    given = rf"(?P<name>{'|'.join(['--[a-z-]+', *options])})=(?P<value>{_VALUE})"
    bare = rf"(?P<bare>{'|'.join(name for name in options if '_' in name) or '(?!)'})"
    pattern = rf"(?P<kept>{kept})|{WORD_BEGINS}(?:{given}|{bare}){WORD_ENDS}"
    text = re.sub(pattern, lambda found: _option(found, options), text)
    words = "|".join(name for name in _WORDS if name in options) or "(?!)"
    return re.sub(rf"\b(larger|takes|or|and) ({words}){WORD_ENDS}", r"\1 --\2", text)


def of_file(text: str, file: str) -> str:
    """Return a message on features of X, whose indices count from 0, as one on features of a file, counting from 1.

    Examples
    --------
    >>> of_file("2 features of X are never observed (first: index 3); remove such features", "d.csv")
    'd.csv: 2 features are never observed (first: feature 4); remove such features'
    """
    pattern = r"(\d+ features?) of X (is|are) (.*?) \(first: index (\d+)\)"
    return re.sub(pattern, lambda at: f"{file}: {at[1]} {at[2]} {at[3]} (first: feature {int(at[4]) + 1})", text)


def _option(found: "re.Match[str]", options: dict[str, str]) -> str:
    """Return what to write for a parameter."""
    if found["kept"]:
        return found["kept"]
    if found["bare"]:
        return options[found["bare"]]
    if other := _VALUES.get(found[0]):
        return other
    option, value = options.get(found["name"], found["name"]), found["value"]
    if value == "None":
        return f"no {option}"
    if value[0] in "'\"":
        return f"{option} {value[1:-1]}"
    plain = re.sub(r"\.0\b", "", value.strip("()")).replace(", ", ",")
    return f"{option} {plain}"
