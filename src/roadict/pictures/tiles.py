"""Tiles of a large picture, each with a halo of the pixels that it depends on."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.pictures.patches import Indices

Window = tuple[slice, slice]
SIDE = 256
"""Pixels of the small picture along a tile."""


class Tile(NamedTuple):
    """A part of a small picture: rows from ``top`` to before ``bottom``, columns from ``left`` to before ``right``.

    ``halo`` is the number of pixels around it that processing needs.
    """

    top: int
    left: int
    bottom: int
    right: int
    halo: int

    def inside(self, scale: int) -> Window:
        """Where the tile lies in the large picture."""
        return slice(self.top * scale, self.bottom * scale), slice(self.left * scale, self.right * scale)

    def without_halo(self, scale: int) -> Window:
        """Where the tile lies in the enlarged tile with halo."""
        margin = self.halo * scale
        height, width = (self.bottom - self.top) * scale, (self.right - self.left) * scale
        return slice(margin, margin + height), slice(margin, margin + width)

    def within(self, first: Indices, size: int, axis: int, scale: int) -> Indices:
        """First pixels, relative to the enlarged tile with halo, of the patches that lie in it, along one axis."""
        begin, end = (self.top, self.bottom) if axis == 0 else (self.left, self.right)
        shifted = first - (begin - self.halo) * scale
        length = (end - begin + 2 * self.halo) * scale
        return shifted[(shifted >= 0) & (shifted + size <= length)]


def tiles(shape: tuple[int, ...], halo: int) -> Iterator[Tile]:
    """Tiles that cover a picture of this height and width."""
    height, width = shape
    for top in range(0, height, SIDE):
        for left in range(0, width, SIDE):
            yield Tile(top, left, min(top + SIDE, height), min(left + SIDE, width), halo)


def mirrored(picture: NDArray[Any], tile: Tile) -> NDArray[Any]:
    """The tile with its halo; beyond the border the picture is mirrored."""
    rows = _mirror(np.arange(tile.top - tile.halo, tile.bottom + tile.halo), picture.shape[0])
    columns = _mirror(np.arange(tile.left - tile.halo, tile.right + tile.halo), picture.shape[1])
    return picture[rows[:, None], columns]


def _mirror(index: Indices, length: int) -> Indices:
    """Mirror indices at the ends of a side: ... 1 0 0 1 2 ...

    Examples
    --------
    >>> _mirror(np.arange(-2, 5), 3).tolist()
    [1, 0, 0, 1, 2, 2, 1]
    """
    folded = index % (2 * length)
    return np.where(folded < length, folded, 2 * length - 1 - folded)
