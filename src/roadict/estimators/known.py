"""Atoms that are known, and data that signs put out of reach."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict import checks
from roadict.checks import warn_user
from roadict.linalg import unit_rows
from roadict.ranks.comm import Comm
from roadict.road.floor import negative_share
from roadict.road.plan import Parameters

Array = NDArray[np.floating]


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


def check_width(parameters: Parameters, n_features: int, n_components: int) -> None:
    """Raise ValueError for known atoms of another width than the data, or more of them than atoms."""
    atoms = parameters.fixed_atoms
    if atoms is None:
        return
    if atoms.shape[1] != n_features:
        raise ValueError(
            f"fixed_atoms has {checks.plural(atoms.shape[1], 'column')}, but X has "
            f"{checks.plural(n_features, 'feature')}; pass atoms of that width"
        )
    if len(atoms) > n_components:
        raise ValueError(
            f"fixed_atoms has {checks.plural(len(atoms), 'row')}, which count in n_components={n_components}; pass "
            f"n_components={len(atoms)} or more"
        )


def check_reachable(data: Array, parameters: Parameters, comm: Comm) -> None:
    """Refuse data of which nonnegative codes and atoms reach nothing; warn if they cannot reach a part.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        This rank's samples.
    parameters : Parameters
    comm : Comm
    """
    if not (parameters.positive_code and parameters.positive_dict):
        return
    share = negative_share(data, comm)
    remedy = "leave positive_code or positive_dict out, or remove negative values from X"
    if share == 1:
        raise ValueError(f"X has no positive entry, so that nonnegative codes and atoms reach nothing of it; {remedy}")
    if share > 0 and comm.rank == 0:
        warn_user(
            f"negative entries, {share:.2%} of the norm of X, cannot be reached by nonnegative codes and atoms: the "
            f"relative error is at least {share:.3g}; {remedy}"
        )
