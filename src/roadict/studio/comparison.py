"""A picture before and after, at one size, for the slider."""

from pathlib import Path

import numpy as np
from PIL import Image

from roadict.pictures import dtypes, files
from roadict.pictures.inpainting import missing_pixels
from roadict.studio import inputs
from roadict.studio.jobs import Job
from roadict.studio.marks import mark_colour

MAX_SIDE = 2400
"""Pixels of the longer side on the page; the download has full size."""


def before_and_after(source: Path, job: Job, task: str) -> tuple[str, str]:
    """Write both pictures to the job's folder and return their paths.

    A small picture is enlarged by bicubic, and missing pixels get a colour of their own.
    """
    picture = inputs.read_picture(source)
    after = opaque(inputs.for_screen(files.read_picture(job.result)))
    before = opaque(inputs.for_screen(picture))
    if task == "upscale":
        before = before.resize(after.size, Image.Resampling.BICUBIC)
    elif task == "inpaint":
        mask = None if job.mask is None else files.read_mask(job.mask)
        before = _marked(before, missing_pixels(picture, mask))
    names = []
    for name, shown in (("before.png", before), ("after.png", after)):
        shown.thumbnail((MAX_SIDE, MAX_SIDE))
        shown.save(job.folder / name)
        names.append(str(job.folder / name))
    return names[0], names[1]


def opaque(image: Image.Image) -> Image.Image:
    """Convert to RGB, on white where the picture is transparent."""
    if image.mode not in ("LA", "RGBA"):
        return image.convert("RGB")
    full = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", full.size, "white"), full).convert("RGB")


def _marked(image: Image.Image, missing: dtypes.Array) -> Image.Image:
    stencil = Image.fromarray(np.where(missing, np.uint8(255), np.uint8(0)))
    return Image.composite(Image.new("RGB", image.size, mark_colour(image)), image, stencil)
