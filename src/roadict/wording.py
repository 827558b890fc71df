"""Words for messages."""

import errno
import os
from collections.abc import Sequence

WORD_BEGINS, WORD_ENDS = r"(?<![\w./\\-])", r"(?![\w/\\=-]|\.\w)"
"""Patterns around a word that is no part of the name of a file or of a longer word."""


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, which ends regularly.

    Examples
    --------
    >>> plural(1, "row"), plural(2, "row"), plural(2000, "entry"), plural(2, "patch")
    ('1 row', '2 rows', '2000 entries', '2 patches')
    """
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("y"):
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"


def agree(count: int, singular: str = "is", plural: str = "are") -> str:
    """Return the form of a verb that agrees with a count.

    Examples
    --------
    >>> agree(1), agree(2), agree(1, "has", "have")
    ('is', 'are', 'has')
    """
    return singular if count == 1 else plural


def some(names: Sequence[object], limit: int) -> str:
    """Return the first of these names, and dots if there are more.

    Examples
    --------
    >>> some([1, 2, 3], 3), some([1, 2, 3], 2)
    ('1, 2, 3', '1, 2, ...')
    """
    return ", ".join([*map(str, names[:limit]), *["..."] * (len(names) > limit)])


def of(part: int, whole: int, noun: str) -> str:
    """Return a part of a whole.

    Examples
    --------
    >>> of(0, 1, "atom"), of(1, 2, "atom")
    ('0 of 1 atom', '1 of 2 atoms')
    """
    return f"{part} of {plural(whole, noun)}"


def path_problem(path: str | os.PathLike[str], failure: OSError) -> str:
    """Say in words why a file or folder cannot be used.

    Examples
    --------
    >>> path_problem("nowhere.npy", FileNotFoundError(2, "No such file or directory"))
    'nowhere.npy does not exist'
    >>> path_problem("big.npz", OSError(28, "No space left on device"))
    'big.npz cannot be used (no space left on device)'
    """
    name = os.fspath(path)
    if failure.errno == errno.ELOOP:
        return f"{name} is a link that leads back to itself"
    if os.path.islink(name) and not os.path.exists(name):
        return f"{name} is a link to {os.readlink(name)}, which does not exist"
    if isinstance(failure, FileNotFoundError):
        return f"{name} does not exist"
    if isinstance(failure, IsADirectoryError):
        return f"{name} is a folder, not a file"
    if isinstance(failure, NotADirectoryError | FileExistsError):
        above = name
        while above and not os.path.exists(above):
            above = os.path.dirname(above)
        return f"{above or name} is a file, not a folder"
    if isinstance(failure, PermissionError):
        return f"{name} may not be used: its permissions, or those of its folder, forbid it"
    reason = failure.strerror or str(failure)
    return f"{name} cannot be used ({reason[:1].lower() + reason[1:]})"


def no_folder(path: str | os.PathLike[str]) -> str:
    """Say in words why a path that is no folder is none.

    Examples
    --------
    >>> no_folder("nowhere")
    'nowhere does not exist'
    """
    try:
        os.listdir(path)
    except OSError as failure:
        return path_problem(path, failure)
    return f"{os.fspath(path)} is not a folder"
