"""Pictures as the pages show them."""

import io
from dataclasses import dataclass

from roadict.drawing.raster import data_uri

SMALL = 100
"""Pictures narrower than this are shown whole, in their pixels."""
ZOOM = 4
"""The close-up of others shows this part of the height and of the width."""


@dataclass(frozen=True)
class Shown:
    """A picture and the atoms that made it ("": none), as data URIs; a PSNR of None: it is the original."""

    label: str
    psnr: float | None
    whole: str
    atoms: str
    width: int
    height: int

    @property
    def zoom(self) -> int:
        """How many times larger the close-up is."""
        return 1 if self.width < SMALL else ZOOM


def shown(label: str, psnr: float | None, raw: bytes, atoms: bytes = b"") -> Shown:
    """Make what the page needs of a picture (PNG)."""
    from PIL import Image

    with Image.open(io.BytesIO(raw)) as picture:
        width, height = picture.size
    return Shown(label, psnr, data_uri(raw), data_uri(atoms) if atoms else "", width, height)
