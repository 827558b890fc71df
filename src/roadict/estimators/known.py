"""Atoms that are known, and data that signs put out of reach."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadict import checks
from roadict.checks import warn_user
from roadict.linalg import unit_rows
from roadict.ranks.comm import SERIAL, Comm
from roadict.road.floor import negative_share
from roadict.road.plan import Parameters
from roadict.wording import plural

Array = NDArray[np.floating]


class Signs(Protocol):
    """What is known of signs."""

    @property
    def positive_code(self) -> bool:
        """Whether codes must not be negative."""

    @property
    def positive_dict(self) -> bool:
        """Whether atoms must not be negative."""


def known_atoms(fixed_atoms: Any) -> Array | None:
    """Return the known atoms with unit norm; None: there are none."""
    return None if fixed_atoms is None else unit_rows(checks.matrix("fixed_atoms", fixed_atoms))[0]


def check_known_atoms(fixed_atoms: Any, positive_dict: bool) -> None:
    """Raise ValueError for known atoms without a direction, or of the wrong sign."""
    if fixed_atoms is None:
        return
    atoms = checks.matrix("fixed_atoms", fixed_atoms)
    checks.directions("fixed_atoms", atoms)
    if positive_dict:
        checks.nonnegative("fixed_atoms", atoms, "positive_dict=True")


def check_width(parameters: Parameters, n_features: int, n_components: int | None) -> None:
    """Raise ValueError for known atoms of another width than the data, or more of them than atoms, if that is known."""
    atoms = parameters.fixed_atoms
    if atoms is None:
        return
    if atoms.shape[1] != n_features:
        raise ValueError(
            f"fixed_atoms has {plural(atoms.shape[1], 'column')}, but X has "
            f"{plural(n_features, 'feature')}; pass atoms of that width"
        )
    if n_components is not None and len(atoms) > n_components:
        raise ValueError(
            f"fixed_atoms has {plural(len(atoms), 'row')}, which count in n_components={n_components}; pass "
            f"n_components={len(atoms)} or more"
        )


def check_reachable(
    data: Array, signs: Signs, comm: Comm = SERIAL, weights: Array | None = None, warn: bool = True
) -> None:
    """Refuse samples of which nonnegative codes and atoms reach nothing; warn if they cannot reach a part.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        This rank's samples.
    signs : Parameters, or an estimator
    comm : Comm
    weights : array of shape (n_samples,), or None
    warn : bool
        Whether to warn.
    """
    if not (signs.positive_code and signs.positive_dict):
        return
    share = negative_share(data if weights is None else data * np.sqrt(weights)[:, None], comm)
    remedy = "leave positive_code or positive_dict out, or remove negative values from X"
    if share == 1:
        raise ValueError(f"X has no positive entry, so that nonnegative codes and atoms reach nothing of it; {remedy}")
    if warn and share > 0 and comm.rank == 0:
        warn_user(
            f"negative entries, {share:.2%} of the norm of X, cannot be reached by nonnegative codes and atoms: the "
            f"relative error is at least {share:.3g}; {remedy}"
        )
