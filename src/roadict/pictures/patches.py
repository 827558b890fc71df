"""Square patches of a picture on a regular grid, and back by averaging."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from roadict.checks import whole_number
from roadict.wording import plural

Array = NDArray[Any]
Scalar = TypeVar("Scalar", bound=np.generic)
Indices = NDArray[np.intp]


def starts(length: int, size: int, stride: int) -> Indices:
    """First pixels of the patches along one side: every ``stride``-th, the last one clamped to the border.

    Examples
    --------
    >>> starts(10, 4, 3), starts(11, 4, 3)
    (array([0, 3, 6]), array([0, 3, 6, 7]))
    """
    whole_number("size", size)
    whole_number("stride", stride)
    if length < size:
        raise ValueError(f"a side of {plural(length, 'pixel')} is shorter than a patch of {size}; use a larger picture")
    if stride > size:
        raise ValueError(f"stride={stride} must be at most size={size}, else pixels between patches are skipped")
    last = length - size
    return np.array([*range(0, last, stride), last])


def extract(picture: NDArray[Scalar], size: int, rows: Indices, columns: Indices) -> NDArray[Scalar]:
    """Patches whose first pixels are at all pairs of these rows and columns.

    Only these patches are copied: with a few rows at a time a picture of any size fits in memory.

    Parameters
    ----------
    picture : array of shape (height, width)
    size : int
    rows, columns : arrays of int
        From ``starts``.

    Returns
    -------
    array of shape (len(rows) * len(columns), size * size)
    """
    windows = sliding_window_view(picture, (size, size))
    return windows[np.ix_(rows, columns)].reshape(-1, size * size)


def all_patches(picture: NDArray[Scalar], size: int, stride: int) -> NDArray[Scalar]:
    """All patches of the grid, row by row; shape (n_patches, size * size)."""
    height, width = picture.shape
    return extract(picture, size, starts(height, size, stride), starts(width, size, stride))


def bands(rows: Indices, n_columns: int, n_patches: int) -> Iterator[Indices]:
    """Rows of the grid in bands of about ``n_patches`` patches, to bound the memory.

    Examples
    --------
    >>> [band.tolist() for band in bands(np.arange(5), n_columns=100, n_patches=250)]
    [[0, 1], [2, 3], [4]]
    """
    step = max(1, n_patches // n_columns)
    for first in range(0, len(rows), step):
        yield rows[first : first + step]


class PatchMean:
    """A picture as the mean of overlapping patches, given a few at a time.

    The mean is a running one, m += (x - m) / count: equal values average to themselves to the last bit, so that
    unchanged patches give back the picture exactly.

    Parameters
    ----------
    shape : (height, width)
    size : int
    dtype : floating dtype

    Attributes
    ----------
    mean : array of shape (height, width)
    count : array of shape (height, width)
        Patches that cover each pixel so far.
    """

    def __init__(self, shape: tuple[int, int], size: int, dtype: np.dtype[np.floating] | type = np.float64) -> None:
        self.size = size
        self.mean: Array = np.zeros(shape, dtype)
        self.count = np.zeros(shape, np.int32)

    def add(self, patches: Array, rows: Indices, columns: Indices) -> None:
        """Add patches of shape (len(rows) * len(columns), size * size), ordered as ``extract`` gives them."""
        blocks = patches.reshape(len(rows), len(columns), self.size, self.size)
        # Starts are distinct, so a fixed position within the patches addresses no pixel twice.
        for y in range(self.size):
            for x in range(self.size):
                pixels = _block(rows + y, columns + x)
                count, mean = self.count[pixels] + 1, self.mean[pixels]
                self.mean[pixels] = mean + (blocks[:, :, y, x] - mean) / count
                self.count[pixels] = count


def _block(rows: Indices, columns: Indices) -> tuple[Indices | slice, Indices | slice]:
    """Index of all pairs of rows and columns; slices, which are faster, where the steps are equal."""
    sliced = [_as_slice(index) for index in (rows, columns)]
    if sliced[0] is not None and sliced[1] is not None:
        return sliced[0], sliced[1]
    open_rows, open_columns = np.ix_(rows, columns)
    return open_rows, open_columns


def _as_slice(index: Indices) -> slice | None:
    steps = np.diff(index)
    if len(steps) == 0:
        return slice(int(index[0]), int(index[0]) + 1)
    step = int(steps[0])
    return slice(int(index[0]), int(index[-1]) + 1, step) if (steps == step).all() else None
