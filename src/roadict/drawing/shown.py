"""Pictures on the pages."""

import io
from dataclasses import dataclass

from roadict.drawing.raster import data_uri

SMALL = 100
"""Pictures narrower than this are shown in full, without interpolation."""
ZOOM = 4
"""The close-up of others shows this part of the height and of the width."""


@dataclass(frozen=True)
class Shown:
    """A picture and its atoms ("": none) as data URIs; the PSNR of the original is None."""

    label: str
    psnr: float | None
    whole: str
    atoms: str
    width: int
    height: int

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
