"""Samples for the page, made from pictures of scikit-image and planted signals."""

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadict.pictures import files
from roadict.pictures.patches import all_patches
from roadict.synthetic import planted

SIGMA = 20


@dataclass(frozen=True)
class Sample:
    """A file to try something on.

    Attributes
    ----------
    title : str
    task : str
        "upscale", "denoise", "inpaint" or "learn".
    file : Path
    n_components, epsilon : number or None
        For "learn".
    truth : Path or None
        Picture without damage, or planted atoms.
    """

    title: str
    task: str
    file: Path
    n_components: int | None = None
    epsilon: float | None = None
    truth: Path | None = None


def find_truth(samples: Sequence[Sample], file: Path) -> Path | None:
    """Return the truth of a file that equals a sample; None for all others."""
    found = (sample.truth for sample in samples if filecmp.cmp(sample.file, file, shallow=False))
    return next(found, None)


def picture_samples(folder: Path) -> list[Sample]:
    """Write small pictures, one for every task, to a folder."""
    import skimage.data

    rng = np.random.default_rng(0)
    # Not a training picture of the default model: the result would be too good.
    large = skimage.data.immunohistochemistry()[100:388, 100:388]
    small = np.asarray(Image.fromarray(large).resize((96, 96), Image.Resampling.BICUBIC))
    grey = skimage.data.camera()[60:188, 160:288]
    noisy = np.clip(np.rint(grey + rng.normal(0, SIGMA, grey.shape)), 0, 255).astype(np.uint8)
    cat = skimage.data.chelsea()[40:168, 90:218]
    pictures = {
        "upscale": ("Upscale", "tissue-small.png", small, large),
        "denoise": ("Denoise", "camera-noisy.png", noisy, grey),
        "inpaint": ("Inpaint", "cat-scratched.png", _scratched(cat, rng), cat),
    }
    samples = []
    for task, (title, name, pixels, original) in pictures.items():
        truth = folder / f"original-of-{name}"
        files.write_picture(folder / name, pixels)
        files.write_picture(truth, original)
        samples.append(Sample(title, task, folder / name, truth=truth))
    return samples


def signal_samples(folder: Path) -> list[Sample]:
    """Write two small matrices to a folder: planted atoms, and patches of a picture."""
    import skimage.data

    made = planted(400, 16, 32, sparsity=3, random_state=0)
    np.savetxt(folder / "planted.csv", made.data, fmt="%.17g", delimiter=",")
    np.save(folder / "planted-atoms.npy", made.dictionary)
    grey = Image.fromarray(skimage.data.camera()).resize((128, 128), Image.Resampling.BICUBIC)
    patches = all_patches(np.asarray(grey).astype(np.float32) / 255, 8, 8)
    np.save(folder / "patches.npy", patches - patches.mean(axis=1, keepdims=True))
    return [
        Sample("400 planted signals", "learn", folder / "planted.csv", 32, truth=folder / "planted-atoms.npy"),
        Sample(f"{len(patches)} patches of a photo", "learn", folder / "patches.npy", 48, 0.3),
    ]


def _scratched(picture: NDArray[Any], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Make thin curves across a picture transparent."""
    height, width = picture.shape[:2]
    y, x = np.mgrid[:height, :width]
    hidden = np.zeros((height, width), bool)
    for _ in range(7):
        start, slope, bend = rng.uniform(-0.2, 1.2), rng.uniform(-0.8, 0.8), rng.uniform(4, 10)
        curve = start * height + slope * x + bend * np.sin(x / rng.uniform(10, 25))
        hidden |= np.abs(y - curve) < 1.6
    return np.dstack([np.where(hidden[..., None], 0, picture), np.where(hidden, 0, 255)]).astype(np.uint8)
