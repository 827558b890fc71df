"""The smallest data error that a given number of atoms can reach."""

import math

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import FREE, Constraints
from roadict.linalg import of_order_one
from roadict.ranks.collectives import broadcast, counts, joint_triangular_factor, largest, norm
from roadict.ranks.comm import SERIAL, Comm

Array = NDArray[np.floating]

MARGIN = 1.1
"""Error bound of epsilon="auto" over the smallest error."""
IMPUTATIONS = 50
ROUNDING = 1e-7
"""Relative error up to which known atoms count as sufficient."""


def smallest_error(
    data: Array,
    observed: NDArray[np.bool_] | None,
    n_components: int,
    comm: Comm = SERIAL,
    constraints: Constraints = FREE,
    fixed: Array | None = None,
) -> float:
    """Return a bound from below on the relative error of any codes and atoms within the constraints.

    The larger of that of the best approximation of rank ``n_components`` (Eckart-Young), and if neither codes nor atoms
    may be negative, the share of negative data. Of known atoms ``fixed`` the others approximate what these cannot
    represent. With missing entries, where known atoms are not considered, there is no closed form, and iterated
    imputation gives an estimate. The rows are distributed over the ranks.

    Examples
    --------
    >>> data = np.diag([4.0, -3.0])
    >>> smallest_error(data, None, 1), smallest_error(data, None, 2)
    (0.6, 0.0)
    >>> smallest_error(data, None, 2, constraints=Constraints(positive_code=True, positive_dict=True))
    0.6
    """
    if fixed is not None and observed is None:
        error = _error_beside(fixed, data, n_components, comm)
    else:
        error = rank_error(data, observed, n_components, comm)
    if constraints.positive_code and constraints.positive_dict:
        error = max(error, negative_share(data, comm))
    return error


def _error_beside(fixed: Array, data: Array, n_components: int, comm: Comm) -> float:
    """Relative error of known atoms with codes of any sign, and of the best others beside them."""
    data = of_order_one(data, largest(comm, data))[0].astype(np.float64)
    _, sizes, axes = np.linalg.svd(fixed, full_matrices=False)
    axes = axes[sizes > sizes[0] * max(fixed.shape) * np.finfo(float).eps]
    rest = data - data @ axes.T @ axes
    share = norm(comm, rest) / norm(comm, data)
    n_free = n_components - len(fixed)
    if share <= ROUNDING or n_free >= data.shape[1] - len(axes):
        return 0.0
    return share * (rank_error(rest, None, n_free, comm) if n_free else 1.0)


def negative_share(data: Array, comm: Comm = SERIAL) -> float:
    """Norm of the negative entries relative to that of all."""
    data = of_order_one(data, largest(comm, data))[0]  # squares must neither vanish nor overflow
    size = norm(comm, data)
    return norm(comm, np.minimum(data, 0)) / size if size else 0.0


def rank_error(data: Array, observed: NDArray[np.bool_] | None, n_components: int, comm: Comm = SERIAL) -> float:
    """Relative error of the best approximation of rank ``n_components``, 0 if the data have that rank."""
    shape = (sum(counts(comm, len(data))), data.shape[1])
    if n_components >= min(shape):
        return 0.0
    data = of_order_one(data, largest(comm, data))[0]  # squares must neither vanish nor overflow
    filled = data.astype(np.float64)
    if observed is not None:
        for _ in range(IMPUTATIONS):
            axes = np.linalg.svd(joint_triangular_factor(comm, filled), full_matrices=False)[2][:n_components]
            fit = filled @ axes.T @ axes
            filled = np.where(observed, filled, fit)
        return norm(comm, (filled - fit)[observed]) / norm(comm, data)
    # From rank 0: rounding differs between machines, and all ranks must take the same branch.
    sizes = broadcast(comm, np.linalg.svd(joint_triangular_factor(comm, filled), compute_uv=False))
    noise = sizes[0] * max(shape) * float(np.finfo(data.dtype).eps)
    rest = sizes[n_components:][sizes[n_components:] > noise]
    return math.sqrt(float(np.sum(rest**2)) / float(np.sum(sizes**2)))


def auto_epsilon(floor: float) -> float:
    """Error bound for epsilon="auto": 0 if an exact fit exists, else slightly above the smallest error."""
    return min(MARGIN * floor, (1 + floor) / 2)
