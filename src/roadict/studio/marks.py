"""A colour for missing pixels that stands out from the picture."""

import numpy as np
from PIL import Image

COLOURS = ("#d1601f", "#1f6fd1", "#d11fb0", "#1fae4b", "#20c9d6")
"""In the order of preference."""
_CLEAR = 90.0
"""Distance of RGB values at which a colour is told from another at a glance."""
_NEAREST = 2.0
"""Per cent of the pixels that may be closer."""


def mark_colour(image: Image.Image) -> str:
    """Return the first colour that stands out from nearly all pixels, or the one that stands out most.

    Examples
    --------
    >>> mark_colour(Image.new("RGB", (4, 4), "grey")), mark_colour(Image.new("RGB", (4, 4), "orange"))
    ('#d1601f', '#1f6fd1')
    """
    small = image.convert("RGB").resize((64, 64), Image.Resampling.NEAREST)
    pixels = np.asarray(small, np.float64).reshape(-1, 3)
    distances = {
        colour: float(np.percentile(np.linalg.norm(pixels - _rgb(colour), axis=1), _NEAREST)) for colour in COLOURS
    }
    return next(
        (colour for colour in COLOURS if distances[colour] >= _CLEAR), max(distances, key=distances.__getitem__)
    )


def _rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
