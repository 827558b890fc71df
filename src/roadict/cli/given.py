"""Data and known atoms as read from files: what is wrong with them, by file and place, counting from 1."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from roadict.wording import agree

if TYPE_CHECKING:
    from numpy.typing import NDArray


def warn_of_constants(data: Path, X: "NDArray[Any]") -> None:
    """Warn of features that are the same in all samples: atoms learn them before all else."""
    import numpy as np

    if isinstance(X, np.memmap) or len(X) < 2:
        return
    same = [str(i + 1) for i in np.flatnonzero((X[0] == X).all(axis=0) & (X[0] != 0))]
    if 0 < len(same) < X.shape[1]:
        names = ", ".join([*same[:3], *["..."] * (len(same) > 3)])
        features = f"{agree(len(same), 'feature', 'features')} {names} {agree(len(same))}"
        text = "the same in all samples, which atoms learn before all else"
        warnings.warn(f"{data}: {features} {text}; subtract the mean of each feature first", stacklevel=2)


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
