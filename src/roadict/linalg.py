"""Small shared matrix functions."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def unit_rows(matrix: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return rows of unit norm and the norms, without overflow or underflow; zero rows stay zero.

    Examples
    --------
    >>> unit_rows(np.array([[3e-200, 4e-200], [0.0, 0.0]]))
    (array([[0.6, 0.8],
           [0. , 0. ]]), array([5.e-200, 0.e+000]))
    """
    rows = np.asarray(matrix, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit = np.divide(scaled, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit, (largest * lengths)[:, 0]


def leading_signs(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the sign of the largest entry of every row, 1 for rows of zeros.

    Examples
    --------
    >>> leading_signs(np.array([[0.6, -0.8], [0.0, 0.0]]))
    array([-1.,  1.])
    """
    largest = np.abs(matrix).argmax(axis=1)
    return np.where(matrix[np.arange(len(matrix)), largest] < 0, -1, 1).astype(matrix.dtype)


def solve_ridge(gram: FloatArray, cross: NDArray[Any], ridge: float, towards: NDArray[Any] | None = None) -> FloatArray:
    """Solve least squares by the normal equations, with a ridge relative to the energy of the codes.

    Minimises ``‖data - codes @ atoms‖_F² + w ‖atoms - towards‖_F²`` over atoms, where w is ``ridge`` times the mean
    of the diagonal of the Gram matrix. Unused atoms equal ``towards``.

    Parameters
    ----------
    gram : array of shape (n_components, n_components)
        ``codes.T @ codes``. Its diagonal is modified.
    cross : array of shape (n_components, n_features)
        ``codes.T @ data``.
    ridge : float, above zero
    towards : array like cross, default=None
        None: zero.

    Examples
    --------
    >>> solve_ridge(np.diag([3.0, 0.0]), np.array([[3.5], [0.0]]), 1 / 3)
    array([[1.],
           [0.]])
    """
    weight = ridge * max(float(np.trace(gram)), 1e-30) / len(gram)  # without any codes there are no atoms either
    gram[np.diag_indices_from(gram)] += weight
    atoms: FloatArray = np.linalg.solve(gram, cross if towards is None else cross + weight * towards)
    return atoms


def of_order_one(data: NDArray[Any], largest: float | None = None) -> tuple[NDArray[Any], float]:
    """Divide nonzero data by the power of two that brings the largest entry into [1, 2); exact.

    ``largest`` is that entry's magnitude, if it may belong to another part of the data.

    Returns
    -------
    data : array like data
    unit : float
        The divisor.

    Examples
    --------
    >>> of_order_one(np.array([[12.0, 1.0]]))
    (array([[1.5  , 0.125]]), 8.0)
    """
    exponent = math.frexp(float(np.abs(data).max()) if largest is None else largest)[1] - 1
    return np.ldexp(data, -exponent), math.ldexp(1.0, exponent)
