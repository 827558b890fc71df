"""Small matrix functions that the rest shares."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def unit_rows(matrix: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Rows of unit norm, and the norms, however small or large the rows are; zero rows stay zero.

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
    """Sign of the largest entry of every row, 1 for a row of zeros: rows times their sign lead with a positive entry.

    Examples
    --------
    >>> leading_signs(np.array([[0.6, -0.8], [0.0, 0.0]]))
    array([-1.,  1.])
    """
    largest = np.abs(matrix).argmax(axis=1)
    return np.where(matrix[np.arange(len(matrix)), largest] < 0, -1, 1).astype(matrix.dtype)


def of_order_one(data: NDArray[Any], largest: float | None = None) -> tuple[NDArray[Any], float]:
    """Divide data that are not all zero by the power of two that brings the largest entry into [1, 2); exact.

    ``largest`` is that entry's size, where the data are a part of those it belongs to.

    Returns
    -------
    data : array like data
    unit : float
        What it was divided by.

    Examples
    --------
    >>> of_order_one(np.array([[12.0, 1.0]]))
    (array([[1.5  , 0.125]]), 8.0)
    """
    exponent = math.frexp(float(np.abs(data).max()) if largest is None else largest)[1] - 1
    return np.ldexp(data, -exponent), math.ldexp(1.0, exponent)
