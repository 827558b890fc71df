"""A picture before and after: at one size for the slider, and pixel by pixel in a loupe."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import uniform_filter

from roadict.drawing.markup import render
from roadict.drawing.raster import data_uri, png
from roadict.metrics import psnr
from roadict.pictures import dtypes, files
from roadict.pictures.inpainting import missing_pixels
from roadict.pictures.resize import luma
from roadict.studio import inputs
from roadict.studio.jobs import Job
from roadict.studio.marks import mark_colour

MAX_SHOWN = 16_000_000
"""Pixels of a picture on the page; the download has full size."""
WINDOW = 48
"""Side in pixels of the region that changed most."""
BEFORE = {"upscale": "Bicubic", "denoise": "Before", "inpaint": "Before"}
"""Names of what a result is compared with."""


@dataclass(frozen=True)
class Comparison:
    """Both pictures, opaque, in RGB and of one size; missing pixels if there were any; the original if it is known.

    ``mark`` is the colour of missing pixels before.
    """

    task: str
    before: Image.Image
    after: Image.Image
    missing: NDArray[np.bool_] | None = None
    truth: Image.Image | None = None
    mark: str = ""

    @property
    def shrink(self) -> float:
        """Size on the page, relative to that of the result."""
        return min(1.0, math.sqrt(MAX_SHOWN / (self.after.width * self.after.height)))

    def save(self, folder: Path) -> tuple[str, str]:
        """Write before and after to a folder, shrunk where they are too large for a page, and return their paths."""
        names = []
        for name, picture in ((f"before-{folder.name}.png", self.before), (f"after-{folder.name}.png", self.after)):
            shown = picture if self.shrink == 1 else picture.resize([int(self.shrink * side) for side in picture.size])
            shown.save(folder / name, compress_level=1)
            names.append(str(folder / name))
        return names[0], names[1]

    def changed_most(self) -> tuple[float, float]:
        """Middle of the region that changed most, as shares of width and height; of holes, where most is missing."""
        if self.missing is None:
            change = np.abs(np.asarray(self.after, np.float32) - np.asarray(self.before, np.float32)).mean(axis=2)
        else:
            change = self.missing.astype(np.float32)
        near = uniform_filter(change, min(WINDOW, *change.shape), mode="constant")
        y, x = np.unravel_index(np.argmax(near), near.shape)
        return (float(x) + 0.5) / change.shape[1], (float(y) + 0.5) / change.shape[0]

    def decibels(self) -> dict[str, str]:
        """PSNR by the name of the picture, as ``--compare`` prints it; of filled pixels alone where some were missing.

        Without an original there is none.
        """
        if self.truth is None:
            return {}
        chosen = slice(None) if self.missing is None else self.missing
        names = {"before": self.before, "after": self.after} if self.missing is None else {"after": self.after}
        truth = self._measured(self.truth)[chosen]
        values = {name: psnr(self._measured(shown)[chosen], truth) for name, shown in names.items()}
        return {name: f"{value:.2f} dB" for name, value in values.items() if math.isfinite(value)}

    def loupe(self, slider: str, folder: Path) -> str:
        """The loupe as HTML; it takes the pictures that were saved in a folder from those of the element ``slider``."""
        x, y = self.changed_most()
        return render(
            "studio",
            "loupe.html",
            slider=slider,
            run=folder.name,
            task=self.task,
            mark=self.mark,
            before=BEFORE[self.task],
            truth="" if self.truth is None else data_uri(png(np.asarray(self.truth))),
            decibels=self.decibels(),
            percent=round(100 * self.shrink),
            x=round(x, 4),
            y=round(y, 4),
        )

    def _measured(self, picture: Image.Image) -> NDArray[Any]:
        pixels = np.asarray(picture, np.float64) / 255
        return luma(pixels) if self.task == "upscale" else pixels


def compare(source: Path, job: Job, task: str, truth: Path | None = None) -> Comparison:
    """Read a picture and its result; a truth of another size than the result is ignored.

    A small picture is enlarged by bicubic, and missing pixels get a colour of their own.
    """
    picture = inputs.read_picture(source)
    after = opaque(inputs.for_screen(files.read_picture(job.result)))
    before = opaque(inputs.for_screen(picture))
    missing, mark = None, ""
    if task == "upscale":
        before = before.resize(after.size, Image.Resampling.BICUBIC)
    elif task == "inpaint":
        missing = missing_pixels(picture, None if job.mask is None else files.read_mask(job.mask))
        mark = mark_colour(before)
        before = _marked(before, missing, mark)
    original = None if truth is None else opaque(inputs.for_screen(files.read_picture(truth)))
    known = original is not None and original.size == after.size
    return Comparison(task, before, after, missing, original if known else None, mark)


def opaque(image: Image.Image) -> Image.Image:
    """Convert to RGB, on white where the picture is transparent."""
    if image.mode not in ("LA", "RGBA"):
        return image.convert("RGB")
    full = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", full.size, "white"), full).convert("RGB")


def _marked(image: Image.Image, missing: dtypes.Array, mark: str) -> Image.Image:
    stencil = Image.fromarray(np.where(missing, np.uint8(255), np.uint8(0)))
    return Image.composite(Image.new("RGB", image.size, mark), image, stencil)
