"""Data and known atoms as read from files: what is wrong with them, by file and place, counting from 1."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from roadict.wording import agree, plural, some

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST, FEW = 0.99, 0.01
"""Samples are outliers if so few of them have so much of the sum of squares: shares."""


def warn_of_data(data: Path, X: "NDArray[Any]") -> None:
    """Warn of what atoms learn before all else: features that are the same in all samples, and samples of huge norm."""
    import numpy as np

    if isinstance(X, np.memmap) or len(X) < 2:
        return
    for text in filter(None, (_constants(X), _outliers(data, X))):
        warnings.warn(f"{data}: {text}", stacklevel=2)


def _constants(X: "NDArray[Any]") -> str:
    import numpy as np

    same = np.flatnonzero((X[0] == X).all(axis=0) & (X[0] != 0)) + 1
    if len(same) in (0, X.shape[1]):
        return ""
    features = f"{agree(len(same), 'feature', 'features')} {some(list(same), 3)} {agree(len(same))}"
    text = "the same in all samples, which atoms learn before all else"
    return f"{features} {text}; subtract the mean of each feature first"


def _outliers(data: Path, X: "NDArray[Any]") -> str:
    import numpy as np

    from roadict.files.tables import position

    observed = np.nan_to_num(X, nan=0.0, posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(observed / (np.abs(observed).max() or 1), axis=1)
    order = np.argsort(-norms, kind="stable")
    shares = np.cumsum(norms[order] ** 2)
    number = int(np.searchsorted(shares, MOST * shares[-1])) + 1
    if number > FEW * len(X) or not shares[-1] > 0:
        return ""
    have = f"{plural(number, 'sample')} {agree(number, 'has', 'have')} {MOST:.0%} of the sum of squares of all"
    line = position(data, int(order[0])).partition(",")[0]
    return f"{have} (largest: {line}), and the others hardly count; remove or rescale {agree(number, 'it', 'them')}"


def read_known_atoms(path: Path, positive: bool) -> "NDArray[Any]":
    """Read atoms that are known, one in each row; ``positive``: all atoms are to be nonnegative."""
    import numpy as np

    from roadict.files.tables import read_matrix

    atoms = read_matrix(path)
    if len(broken := np.argwhere(~np.isfinite(atoms))):
        _refuse(path, "contains NaN or infinity", broken[0], "known atoms must be complete")
    if len(zero := np.argwhere(~atoms.any(axis=1))):
        _refuse(path, "has an atom that is zero", zero[0], "every atom needs a direction")
    if positive and len(negative := np.argwhere(atoms < 0)):
        _refuse(path, "has a negative entry", negative[0], "give nonnegative numbers, or leave --positive out")
    return atoms


def _refuse(path: Path, what: str, place: "NDArray[Any]", remedy: str) -> NoReturn:
    from roadict.files.tables import position

    raise ValueError(f"{path} {what} (first: {position(path, *map(int, place))}); {remedy}")
