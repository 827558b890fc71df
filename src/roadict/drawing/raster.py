"""Atoms and pictures as pixels: mosaics, PNG files and data URIs."""

import base64
import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.extras import require

Atoms = NDArray[np.floating]

SHEET = 8
"""Maximum rows and columns of a picture of atoms."""
BRIGHTER, DARKER = (214, 64, 44), (52, 120, 235)
"""Colours of differences, visible on light and on dark pages."""


def own_scale(atoms: Atoms) -> Atoms:
    """Scale every atom to a largest magnitude of one; zero stays zero."""
    largest = np.abs(atoms).max(axis=1, keepdims=True)
    scaled: Atoms = atoms / np.where(largest > 0, largest, 1)
    return scaled


def mosaic(atoms: Atoms, columns: int, zoom: int = 1, gap: tuple[int, int] = (1, 1)) -> NDArray[np.float64]:
    """Lay square atoms out in rows, each on its own scale, its pixels zoomed, with gaps between rows and columns.

    The values are between -1 and 1, and NaN where there is no atom.

    Examples
    --------
    >>> mosaic(np.array([[2.0], [-1.0], [0.0]]), 2)
    array([[ 1., nan, -1.],
           [nan, nan, nan],
           [ 0., nan, nan]])
    """
    side, rows = math.isqrt(atoms.shape[1]), math.ceil(len(atoms) / columns)
    height, width = (side * zoom + space for space in gap)
    cells = np.full((rows * columns, height, width), np.nan)
    tiles = own_scale(atoms).reshape(-1, side, side).repeat(zoom, axis=1).repeat(zoom, axis=2)
    cells[: len(atoms), : side * zoom, : side * zoom] = tiles
    sheet = cells.reshape(rows, columns, height, width).swapaxes(1, 2).reshape(rows * height, columns * width)
    return sheet[: len(sheet) - gap[0], : sheet.shape[1] - gap[1]]


def grey(values: Atoms) -> NDArray[np.uint8]:
    """Greys of values between -1 and 1, zero in the middle, and opacities: NaN is transparent."""
    finite = np.isfinite(values)
    levels = np.where(finite, np.rint(127.5 + 127.5 * np.nan_to_num(values)), 0)
    return np.stack([levels, 255 * finite], axis=-1).astype(np.uint8)


def atom_sheet(atoms: NDArray[Any]) -> NDArray[np.uint8]:
    """Square atoms side by side, the largest first, as greys and opacities; each on its own scale, grey is zero.

    Examples
    --------
    >>> atom_sheet(np.eye(4)).shape
    (5, 5, 2)
    """
    columns = min(SHEET, math.isqrt(len(atoms)))
    largest = np.argsort(-np.linalg.norm(atoms, axis=1), kind="stable")[: columns**2]
    return grey(mosaic(atoms[largest], columns))


def difference(picture: NDArray[Any], original: NDArray[Any], full: float) -> NDArray[np.uint8]:
    """Colours and opacities of a difference: red where the picture is brighter, blue where darker, clear where equal.

    Examples
    --------
    >>> difference(np.array([[1.0, 0.0, 0.5]]), np.array([[0.5, 0.5, 0.5]]), 0.5)[0, :, 3]
    array([255, 255,   0], dtype=uint8)
    """
    signed = np.clip((np.asarray(picture, np.float64) - original) / full, -1, 1)
    colours = np.where(signed[..., None] > 0, BRIGHTER, DARKER)
    return np.concatenate([colours, np.rint(255 * np.abs(signed))[..., None]], axis=-1).astype(np.uint8)


def png(picture: NDArray[Any]) -> bytes:
    """Pixels as a PNG file: integers of 8 bits as they are, floats from 0 (black) to 1."""
    require("a PNG file", "PIL")
    from PIL import Image

    pixels = picture if picture.dtype == np.uint8 else np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "png", optimize=True)
    return file.getvalue()


def data_uri(raw: bytes, kind: str = "png") -> str:
    """A picture file as a data URI."""
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"
