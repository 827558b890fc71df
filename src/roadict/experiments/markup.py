"""What our pages share: templates, and pictures that lie inside the page."""

import base64
import io
from dataclasses import dataclass
from typing import Any

SMALL = 100
"""Pictures narrower than this are shown whole, in their pixels."""
ZOOM = 4
"""The close-up of others shows this part of the height and of the width."""


@dataclass(frozen=True)
class Shown:
    """A picture to slide between and to look at closely.

    Attributes
    ----------
    label : str
    psnr : float or None
        None: it is the original.
    whole, atoms : str
        The picture, and the atoms that made it ("": there are none), as data URIs.
    width, height : int
    """

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
    return Shown(label, psnr, uri(raw), uri(atoms) if atoms else "", width, height)


def uri(raw: bytes) -> str:
    """A PNG file as an address that holds all of it."""
    return "data:image/png;base64," + base64.b64encode(raw).decode()


def render(template: str, **values: Any) -> str:
    """Fill a template; a name that it needs and does not get is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("roadict.experiments", "templates"),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template).render(**values)
