"""Proximal operators and projections: each docstring states the objective that is minimised."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def shrink_groups(points: Array, threshold: float | Array) -> Array:
    """Shrink vectors along the last axis towards zero (eq. X1-solution).

    Minimises ``Σ threshold_n ‖z_n‖₂ + ½ Σ‖z_n - points_n‖²`` over z, where n runs over all axes but the last.

    Parameters
    ----------
    points : array of shape (..., n_features)
    threshold : float or array of shape (..., 1)
        Vectors no longer than this become exactly zero.

    Returns
    -------
    array of shape (..., n_features)

    Examples
    --------
    >>> shrink_groups(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(points, axis=-1, keepdims=True)
    shrunk = np.maximum(lengths - threshold, 0)
    factors: Array = np.divide(shrunk, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return points * factors


def group_norm(points: Array, weights: float | Array = 1.0) -> float:
    """Sum of the norms along the last axis, times their weights: the penalty of ``shrink_groups`` (eq. l-21-norm).

    Examples
    --------
    >>> group_norm(np.array([[3.0, 4.0], [0.3, 0.4]]))
    5.5
    """
    return float((np.linalg.norm(points, axis=-1, keepdims=True) * weights).sum())


def nearest_rank_one(matrix: Array) -> tuple[Array, Array]:
    """Find the nearest matrices of rank at most one (eq. X2-solution, Eckart-Young-Mirsky).

    Minimises ``‖outer(codes, atom) - matrix‖_F²`` over unit atoms and all codes.

    Parameters
    ----------
    matrix : array of shape (..., n_samples, n_features)
        One matrix, or a stack of them.

    Returns
    -------
    codes : array of shape (..., n_samples)
    atom : array of shape (..., n_features)
        Of unit norm.

    Examples
    --------
    >>> codes, atom = nearest_rank_one(np.array([[0.0, 2.0], [0.0, 1.0], [0.1, 0.0]]))
    >>> np.round(np.abs(np.outer(codes, atom)), 12)
    array([[0., 2.],
           [0., 1.],
           [0., 0.]])
    """
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return left[..., 0] * sizes[..., :1], right[..., 0, :]


def project_ball(points: Array, radius: float, length: float | None = None) -> Array:
    """Project onto a ball in the Frobenius norm; points inside stay (eq. W-solution, corrected).

    Minimises ``‖z - points‖_F²`` subject to ``‖z‖_F ≤ radius``. ``length`` is the norm of all rows, if the points
    are only a part of them.

    Examples
    --------
    >>> project_ball(np.array([[3.0, 4.0]]), 1.0), project_ball(np.array([[0.3, 0.4]]), 1.0)
    (array([[0.6, 0.8]]), array([[0.3, 0.4]]))
    """
    length = float(np.linalg.norm(points)) if length is None else length
    return points * (radius / length) if length > radius else points.copy()


def ridge(points: Array, weight: float) -> Array:
    """Shrink towards zero by a squared penalty (eqs. Z1-solver to Z3-solver).

    Minimises ``(weight/2) ‖z‖_F² + ½ ‖z - points‖_F²``. An infinite weight gives zero.

    Examples
    --------
    >>> ridge(np.array([3.0]), 2.0), ridge(np.array([3.0]), np.inf)
    (array([1.]), array([0.]))
    """
    return points / (1 + weight)
