"""The smallest data error that a number of atoms can reach."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

MARGIN = 1.1
"""Relative error that "auto" allows, over the smallest one."""
IMPUTATIONS = 50


def smallest_error(data: Array, observed: NDArray[np.bool_] | None, n_components: int) -> float:
    """Relative error of the best fit of rank ``n_components`` (Eckart-Young), 0 where the rank is no larger.

    With missing entries the best fit is not known in closed form; an estimate from repeated imputation is given.

    Examples
    --------
    >>> data = np.diag([4.0, 3.0])
    >>> smallest_error(data, None, 1), smallest_error(data, None, 2)
    (0.6, 0.0)
    """
    if n_components >= min(data.shape):
        return 0.0
    filled = data.astype(np.float64)
    if observed is not None:
        for _ in range(IMPUTATIONS):
            left, sizes, right = np.linalg.svd(filled, full_matrices=False)
            fit = (left[:, :n_components] * sizes[:n_components]) @ right[:n_components]
            filled = np.where(observed, filled, fit)
        return float(np.linalg.norm((filled - fit)[observed]) / np.linalg.norm(data))
    sizes = np.linalg.svd(filled, compute_uv=False)
    noise = sizes[0] * max(data.shape) * float(np.finfo(data.dtype).eps)
    rest = sizes[n_components:][sizes[n_components:] > noise]
    return math.sqrt(float(np.sum(rest**2)) / float(np.sum(sizes**2)))


def auto_epsilon(floor: float) -> float:
    """Relative error to allow: none where none is needed, else a little above the smallest."""
    return min(MARGIN * floor, (1 + floor) / 2)
