"""Dtypes, value ranges and channels of pictures: four dtypes, grey or colour, with or without alpha."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Plane = NDArray[np.float32]
Array = NDArray[Any]
_DTYPES = ("uint8", "uint16", "float32", "float64")
_WHITE_LEVELS = (1.0, 255.0, 1023.0, 4095.0, 65535.0)


class Parts(NamedTuple):
    """Colour and alpha of a picture as float32, with white at 1."""

    colour: Plane
    """Shape (height, width) or (height, width, 3)."""
    alpha: Plane | None
    """Shape (height, width)."""


def check_picture(name: str, picture: ArrayLike, min_side: int = 1) -> Array:
    """Return the picture as an array of a known dtype and shape, finite, with sides of at least ``min_side`` pixels."""
    array = np.asarray(picture)
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"{name} has dtype {array.dtype}; it must be one of {', '.join(_DTYPES)}: convert it first")
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (2, 3, 4)):
        raise ValueError(
            f"{name} has shape {array.shape}; it must be (height, width), or (height, width, channels) with "
            "2 (grey, alpha), 3 (RGB) or 4 (RGB, alpha) channels"
        )
    if min(array.shape[:2]) < min_side:
        height, width = array.shape[:2]
        raise ValueError(f"{name} has {width} x {height} pixels; each side must have at least {min_side}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite pixels; replace them first")
    return array


def white(picture: Array) -> float:
    """White level in the picture's units: the largest integer; for floats 1, or that of 8, 10, 12 or 16 bits.

    Values may exceed it by up to a factor of two, as noise and filters overshoot.

    Examples
    --------
    >>> white(np.array([[7]], np.uint8)), white(np.array([[1.3]])), white(np.array([[200.0]])), white(np.array([[4e4]]))
    (255.0, 1.0, 255.0, 65535.0)
    """
    if picture.dtype.kind == "u":
        return float(np.iinfo(picture.dtype).max)
    largest = max(-float(picture.min()), float(picture.max())) if picture.size else 1.0
    return next((level for level in _WHITE_LEVELS if largest <= 2 * level), largest)


def split(picture: Array, unit: float) -> Parts:
    """Split a picture whose white level is ``unit`` into colour and alpha."""
    floats = picture.astype(np.float32) if picture.dtype.kind == "u" else picture
    parts = (floats / unit).astype(np.float32)
    if parts.ndim == 2:
        return Parts(parts, None)
    channels = parts.shape[2]
    colour = parts[..., 0] if channels == 2 else parts[..., :3]
    return Parts(colour, parts[..., -1] if channels in (2, 4) else None)


def bounds(picture: Array) -> tuple[float, float]:
    """Smallest and largest value of a result: 0 and 1, or wider where the floats of the picture already are."""
    if picture.dtype.kind == "u" or picture.size == 0:
        return 0.0, 1.0
    unit = white(picture)
    return min(float(picture.min()) / unit, 0.0), max(float(picture.max()) / unit, 1.0)


def join(parts: Parts, dtype: np.dtype[Any], unit: float, limits: tuple[float, float]) -> Array:
    """Undo ``split``: clip, scale and round to the dtype."""
    layers = [parts.colour if parts.colour.ndim == 3 else parts.colour[..., None]]
    if parts.alpha is not None:
        layers.append(parts.alpha[..., None])
    clipped = np.clip(np.concatenate(layers, axis=2) if len(layers) > 1 else layers[0], *limits)
    result = np.rint(clipped * np.float32(unit)).astype(dtype) if dtype.kind == "u" else clipped.astype(dtype) * unit
    return result[..., 0] if result.shape[2] == 1 else result


# Orthonormal, so that white noise stays white and equally strong: sum, red-blue, green-magenta.
_OPPONENT = np.array(
    [[1, 1, 1], [1, 0, -1], [1, -2, 1]] / np.sqrt([[3.0], [2.0], [6.0]]),
    dtype=np.float32,
)


def to_planes(colour: Plane) -> list[Plane]:
    """Return one plane for a grey picture, also if stored as RGB, or else the three opponent colours."""
    if colour.ndim == 2:
        return [colour]
    if (colour[..., 1:] == colour[..., :1]).all():  # the noise is that of one plane, not of three
        return [np.ascontiguousarray(colour[..., 0])]
    return [np.ascontiguousarray(plane) for plane in np.moveaxis(colour @ _OPPONENT.T, 2, 0)]


def from_planes(planes: list[Plane], like: Plane) -> Plane:
    """Undo ``to_planes``, to as many colours as ``like`` has."""
    if len(planes) == 1:
        return planes[0] if like.ndim == 2 else np.repeat(planes[0][..., None], 3, axis=2)
    return np.stack(planes, axis=2) @ _OPPONENT


def side_by_side(pictures: list[Array], gap: int = 8) -> NDArray[np.uint8]:
    """Pictures of equal height next to each other, as 8-bit RGB."""
    shown = []
    for picture in pictures:
        colour, _ = split(picture, white(picture))
        rgb = colour if colour.ndim == 3 else np.repeat(colour[..., None], 3, axis=2)
        shown.append(np.rint(np.clip(rgb, 0, 1) * 255).astype(np.uint8))
        shown.append(np.full((rgb.shape[0], gap, 3), 255, np.uint8))
    return np.concatenate(shown[:-1], axis=1)
