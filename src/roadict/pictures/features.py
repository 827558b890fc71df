"""Features of patches of an enlarged picture: gradients and curvatures, reduced by PCA."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.pictures.patches import Indices, extract

Array = NDArray[Any]
ENERGY = 0.999
"""Share of the energy of the features that PCA retains."""


def derivatives(picture: Array, step: int, edges: str = "mirrored") -> Array:
    """First and second differences over ``step`` pixels, across and down.

    The filters are (1, 0, ..., 0, -1) and (1, 0, ..., -2, ..., 0, 1) / 2 with step - 1 zeros in each gap. An even
    filter has no middle; as in MATLAB's conv2(..., "same") it reaches one pixel further ahead than back.

    Parameters
    ----------
    picture : array of shape (height, width)
    step : int
        The scale by which the picture was enlarged.
    edges : {"mirrored", "zero"}
        What lies beyond the border; "zero" as in conv2.

    Returns
    -------
    array of shape (4, height, width)

    Examples
    --------
    >>> derivatives(np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]), 3)[0]
    array([[ 0.,  1.,  0.,  0., -1.,  0.]])
    """
    ahead = (step + 1) // 2
    padded = np.pad(picture, step, mode="symmetric" if edges == "mirrored" else "constant")
    height, width = picture.shape

    def shifted(down: int, right: int) -> Array:
        return padded[step + down : step + down + height, step + right : step + right + width]

    return np.stack(
        [
            shifted(0, ahead) - shifted(0, ahead - step),
            shifted(ahead, 0) - shifted(ahead - step, 0),
            (shifted(0, step) + shifted(0, -step)) / 2 - picture,
            (shifted(step, 0) + shifted(-step, 0)) / 2 - picture,
        ]
    )


def patch_features(layers: Array, size: int, rows: Indices, columns: Indices) -> Array:
    """Patches of several layers side by side.

    Parameters
    ----------
    layers : array of shape (n_layers, height, width)
    size : int
    rows, columns : arrays of int

    Returns
    -------
    array of shape (len(rows) * len(columns), n_layers * size * size)
    """
    return np.concatenate([extract(layer, size, rows, columns) for layer in layers], axis=1)


def principal_axes(second_moment: Array, energy: float = ENERGY) -> Array:
    """Orthonormal directions that retain this share of the energy, the strongest first.

    Parameters
    ----------
    second_moment : array of shape (n_features, n_features)
        Σ_n x_n x_n^T of the features. They are differences, so their mean is near zero and is not removed.
    energy : float

    Returns
    -------
    array of shape (n_features, n_axes)
    """
    values, vectors = np.linalg.eigh(second_moment)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    n_axes = int(np.searchsorted(np.cumsum(values), energy * values.sum())) + 1
    axes: Array = np.ascontiguousarray(vectors[:, : min(n_axes, len(values))])
    return axes
