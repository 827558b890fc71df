"""Commands of roadict from the choices on the page; the studio runs and shows them."""

import shlex
from dataclasses import dataclass
from pathlib import PurePath

TASKS = ("upscale", "denoise", "inpaint")
KEEPING = ("learn", "denoise", "inpaint")
"""Commands that save the best so far at the first Ctrl-C."""
_RESULT = {"upscale": "enlarged", "denoise": "denoised", "inpaint": "filled"}


@dataclass(frozen=True)
class Command:
    """A command, for the folder that holds its inputs.

    Attributes
    ----------
    arguments : tuple of str
        Without the program's name.
    output : str
        Name of the file it writes.
    """

    arguments: tuple[str, ...]
    output: str

    @property
    def task(self) -> str:
        """Its name: "learn", "upscale", "denoise" or "inpaint"; "" if it has no arguments."""
        return next(iter(self.arguments), "")

    @property
    def keeps(self) -> bool:
        """Whether it saves the best so far when it is interrupted."""
        return self.task in KEEPING

    @property
    def options(self) -> dict[str, str]:
        """Its options by name, "" for those without a value.

        Examples
        --------
        >>> learn_command("signals.csv", n_components=32, missing=True).options
        {'-o': 'signals-model.npz', '-k': '32', '--missing': '', '--seed': '0'}
        """
        given: dict[str, str] = {}
        name = ""
        for argument in self.arguments[2:]:
            if argument.startswith("-"):
                name = argument
            given[name] = "" if argument == name else argument
        return given

    def text(self) -> str:
        """Return the command line."""
        return shlex.join(("roadict", *self.arguments))


def picture_command(
    task: str,
    picture: str,
    *,
    scale: int = 3,
    sigma: float | None = None,
    mask: str | None = None,
    seed: int = 0,
) -> Command:
    """Return the command for a picture. Its result is a PNG, which holds 16 bits and transparency.

    Parameters
    ----------
    task : {"upscale", "denoise", "inpaint"}
    picture : str
        Name of the file.
    scale : int
        For "upscale".
    sigma : float or None
        For "denoise". None: estimated.
    mask : str or None
        For "inpaint". None: transparent pixels are missing.
    seed : int

    Examples
    --------
    >>> picture_command("denoise", "my cat.jpg", sigma=20).text()
    "roadict denoise 'my cat.jpg' -o 'my cat-denoised.png' --sigma 20 --seed 0"
    """
    output = f"{PurePath(picture).stem}-{_RESULT[task]}.png"
    options: list[str] = []
    if task == "upscale":
        options = ["--scale", str(scale)]
    elif task == "denoise" and sigma is not None:
        options = ["--sigma", _written(sigma)]
    elif task == "inpaint" and mask is not None:
        options = ["--mask", _path_argument(mask)]
    return _command(task, picture, output, options, seed)


def learn_command(
    data: str,
    *,
    n_components: int | str | None = None,
    method: str = "road",
    sparsity: int | None = None,
    positive: str | None = None,
    fixed: str | None = None,
    epsilon: float | None = None,
    missing: bool = False,
    stability: bool = False,
    seed: int = 0,
) -> Command:
    """Return the command that learns a dictionary; None leaves an option at its default.

    Parameters
    ----------
    data, fixed : str
        Names of the files with signals and with known atoms.
    positive : {"codes", "atoms", "both"}
        What must not be negative.
    n_components, method, sparsity, epsilon, missing, stability, seed
        As on the command line.

    Examples
    --------
    >>> learn_command("signals.csv", n_components=32, missing=True).text()
    'roadict learn signals.csv -o signals-model.npz -k 32 --missing --seed 0'
    """
    options: list[str] = []
    if n_components is not None:
        options += ["-k", str(n_components)]
    if method != "road":
        options += ["--method", method]
    if sparsity is not None:
        options += ["--sparsity", str(sparsity)]
    if positive is not None:
        options += ["--positive", positive]
    if fixed is not None:
        options += ["--fixed", _path_argument(fixed)]
    if epsilon is not None:
        options += ["--epsilon", _written(epsilon)]
    if missing:
        options += ["--missing"]
    if stability:
        options += ["--stability"]
    return _command("learn", data, f"{PurePath(data).stem}-model.npz", options, seed)


def _written(value: float) -> str:
    """A number with all of its digits.

    Examples
    --------
    >>> _written(20.0), _written(0.12345678)
    ('20', '0.12345678')
    """
    return repr(value).removesuffix(".0")


def _command(name: str, source: str, output: str, options: list[str], seed: int) -> Command:
    arguments = (name, _path_argument(source), "-o", _path_argument(output), *options, "--seed", str(seed))
    return Command(arguments, output)


def _path_argument(name: str) -> str:
    """Protect a file name from being parsed as an option."""
    return f"./{name}" if name.startswith("-") else name
