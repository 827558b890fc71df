"""Small matrix functions that the rest shares."""

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
