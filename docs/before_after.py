"""Pictures of the home page: before and after, in colour.

``python docs/before_after.py`` takes a picture from scikit-image, removes pixels, fills them with
`roadict.pictures.inpaint`, and writes _static/home-before.webp and _static/home-after.webp. It prints the PSNR.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage.data import coffee

from roadict.metrics import psnr
from roadict.pictures import inpaint

FOLDER = Path(__file__).parent / "_static"
MISSING = 0.75
ROWS, COLUMNS = slice(30, 280), slice(60, 560)


def main() -> None:
    """Make and save the pictures."""
    whole = coffee()[ROWS, COLUMNS]
    mask = np.random.default_rng(0).random(whole.shape[:2]) < MISSING
    holes = np.where(mask[..., None], 0, whole).astype(np.uint8)
    filled = inpaint(holes, mask, random_state=0)
    for name, picture, quality in (("before", holes, 55), ("after", filled, 85)):
        larger = Image.fromarray(picture).resize((2 * picture.shape[1], 2 * picture.shape[0]), Image.Resampling.BICUBIC)
        larger.save(FOLDER / f"home-{name}.webp", quality=quality)
    print(f"{mask.mean():.0%} of the pixels missing: {psnr(holes, whole, peak=255):.1f} dB", end="")
    print(f", filled {psnr(filled, whole, peak=255):.1f} dB")


if __name__ == "__main__":
    main()
