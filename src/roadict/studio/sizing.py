"""Pictures above the studio's limit: shrunk to it, or cut out."""

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadict.studio.inputs import MAX_PIXELS, read_mask

Picture = NDArray[Any]


class Resized(NamedTuple):
    """How a photo was made to fit.

    Attributes
    ----------
    name : str
        Of the file of the smaller picture; "": none was made.
    shape : tuple of int
        Of the photo.
    centre : (float, float) or None
        Of the part that was cut out, in shares of height and width; None: it was shrunk.
    """

    name: str = ""
    shape: tuple[int, ...] = ()
    centre: tuple[float, float] | None = None

    def mask(self, path: str | os.PathLike[str], picture: str) -> NDArray[np.uint8]:
        """Read a mask of the photo, and shrink or cut it as the photo was; ``picture`` is the file to use it for.

        A pixel of a shrunk mask is marked if any part of it was.
        """
        marked = np.where(read_mask(path) > 0, np.uint8(255), np.uint8(0))
        if picture != self.name or marked.shape != self.shape[:2]:
            raise ValueError(
                f"{Path(path).name} has more than {MAX_PIXELS:,} pixels, and {picture} has not; drop a mask of its "
                "size, or of that of the photo it was made from, draw a mask, or make the pixels transparent"
            )
        if self.centre is not None:
            return cropped(marked, self.centre)
        height, width = fitted(marked.shape)
        shares = Image.fromarray(marked).convert("F").resize((width, height), Image.Resampling.BOX)
        return np.where(np.asarray(shares) > 0, np.uint8(255), np.uint8(0))


def fitted(shape: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of the same ratio with at most ``MAX_PIXELS`` pixels.

    Examples
    --------
    >>> fitted((3024, 4032, 3)), fitted((10, 20))
    ((1732, 2309), (10, 20))
    """
    height, width = shape[:2]
    factor = min(1.0, math.sqrt(MAX_PIXELS / (height * width)))
    narrow = max(1, min(math.floor(factor * min(height, width)), MAX_PIXELS))
    wide = min(math.floor(factor * max(height, width)), MAX_PIXELS // narrow)
    return (narrow, wide) if height <= width else (wide, narrow)


def crop_corner(shape: tuple[int, ...], centre: tuple[float, float]) -> tuple[int, int]:
    """Top and left of the part of fitting size around a centre, given in shares of height and width."""
    size = fitted(shape)
    top, left = (
        round(min(max(share * whole - part / 2, 0), whole - part))
        for share, whole, part in zip(centre, shape[:2], size, strict=True)
    )
    return top, left


def cropped(picture: Picture, centre: tuple[float, float] = (0.5, 0.5)) -> Picture:
    """Cut the part of fitting size around a centre out of a picture."""
    height, width = fitted(picture.shape)
    top, left = crop_corner(picture.shape, centre)
    return picture[top : top + height, left : left + width]


def shrunk(picture: Picture) -> Picture:
    """Shrink a picture of 8 or 16 bits to the fitting size."""
    height, width = fitted(picture.shape)
    if picture.dtype == np.uint8:
        image = Image.fromarray(np.ascontiguousarray(picture))
        return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
    channels = np.atleast_3d(picture)
    small = [
        np.asarray(
            Image.fromarray(channels[..., i].astype(np.float32)).resize((width, height), Image.Resampling.LANCZOS)
        )
        for i in range(channels.shape[2])
    ]
    whole: Picture = np.clip(np.rint(np.stack(small, axis=-1)), 0, np.iinfo(picture.dtype).max).astype(picture.dtype)
    return whole.reshape(height, width, *picture.shape[2:])
