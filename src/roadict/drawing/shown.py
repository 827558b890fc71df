"""Pictures on the pages."""

import io
from dataclasses import dataclass, replace

import numpy as np

from roadict.drawing.raster import data_uri, difference, png

SMALL = 100
"""Pictures narrower than this are shown in full, without interpolation."""
ZOOM = 4
"""The close-up of others shows this part of the height and of the width."""


@dataclass(frozen=True)
class Shown:
    """A picture, its atoms and its difference from the original ("": none) as data URIs; the original has no PSNR."""

    label: str
    psnr: float | None
    whole: str
    atoms: str
    width: int
    height: int
    difference: str = ""

    @property
    def zoom(self) -> int:
        """Magnification of the close-up."""
        return 1 if self.width < SMALL else ZOOM


def shown(label: str, psnr: float | None, raw: bytes, atoms: bytes = b"") -> Shown:
    """Prepare a picture (PNG) for the page."""
    from PIL import Image

    with Image.open(io.BytesIO(raw)) as picture:
        width, height = picture.size
    return Shown(label, psnr, data_uri(raw), data_uri(atoms) if atoms else "", width, height)


def with_differences(pictures: dict[str, tuple[Shown, bytes]], original: bytes) -> tuple[dict[str, Shown], float]:
    """Add differences from the original, all on one scale, to small grey pictures that hardly differ to the eye.

    Parameters
    ----------
    pictures : dict
        Pictures by name, with their files (PNG).
    original : bytes
        PNG.

    Returns
    -------
    pictures : dict
    full : float
        Difference from which on the colour is full, half of the largest; 0: there are no differences to show.
    """
    from PIL import Image

    def grey(raw: bytes) -> np.ndarray:
        with Image.open(io.BytesIO(raw)) as picture:
            return np.asarray(picture.convert("L"), np.float64) / 255

    truth, found = grey(original), {name: grey(raw) for name, (_, raw) in pictures.items()}
    gaps = {name: np.abs(values - truth).max() for name, values in found.items() if values.shape == truth.shape}
    full = float(max(gaps.values(), default=0.0)) / 2 if truth.shape[1] < SMALL else 0.0
    if not full:
        return {name: picture for name, (picture, _) in pictures.items()}, 0.0
    drawn = {name: data_uri(png(difference(found[name], truth, full))) for name in gaps}
    return {name: replace(picture, difference=drawn.get(name, "")) for name, (picture, _) in pictures.items()}, full
