"""Training samples for super-resolution: features of patches enlarged by bicubic, and their missing detail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roadict.pictures.dtypes import Plane
from roadict.pictures.features import derivatives, patch_features, principal_axes
from roadict.pictures.patches import bands, extract, starts
from roadict.pictures.resize import resize
from roadict.progress.terminal import Progress, silent

BAND = 1 << 15
"""Patches held at a time."""
DERIVATIVES = 4
"""Maps of ``derivatives``."""
AXES, GATHERING = "finding the axes of the features", "gathering patches"
"""Stages of the training."""
LOW_PIXELS = 3
"""Side of a patch in pixels of the small picture."""


@dataclass(frozen=True)
class Sampling:
    """How samples are extracted from a picture.

    Attributes
    ----------
    scale : int
    size, stride : int
        Of patches, in pixels of the large picture.
    features : {"derivatives", "pixels"}
    edges : {"mirrored", "zero"}
        What lies beyond the border of training pictures.
    """

    scale: int
    size: int
    stride: int
    features: str
    edges: str


class Samples(NamedTuple):
    """Pairs of features of enlarged patches and their missing detail.

    Attributes
    ----------
    low : array of shape (n_samples, n_features)
    high : array of shape (n_samples, size * size)
    """

    low: Plane
    high: Plane


def enlarge(picture: Plane, scale: int) -> Plane:
    """Enlarge by bicubic."""
    return resize(picture, (picture.shape[0] * scale, picture.shape[1] * scale))


def shrink(picture: Plane, scale: int) -> Plane:
    """Shrink by bicubic with antialiasing."""
    return resize(picture, (picture.shape[0] // scale, picture.shape[1] // scale))


def cropped(picture: Plane, scale: int) -> Plane:
    """Cut so that the sides are multiples of the scale."""
    height, width = picture.shape[:2]
    return picture[: height // scale * scale, : width // scale * scale]


def layers(enlarged: Plane, scale: int, features: str, edges: str = "mirrored") -> Plane:
    """Maps that features are extracted from: derivatives, or the pixels themselves."""
    return enlarged[None] if features == "pixels" else derivatives(enlarged, scale, edges)


def pairs(picture: Plane, sampling: Sampling) -> Iterator[Samples]:
    """Features and missing detail of all patches of a picture, a band at a time."""
    scale, size = sampling.scale, sampling.size
    picture = cropped(picture, scale)
    enlarged = enlarge(shrink(picture, scale), scale)
    maps, detail = layers(enlarged, scale, sampling.features, sampling.edges), picture - enlarged
    rows, columns = (starts(length, size, sampling.stride) for length in picture.shape)
    for band in bands(rows, len(columns), BAND):
        yield Samples(patch_features(maps, size, band, columns), extract(detail, size, band, columns))


def find_axes(pictures: Sequence[Plane], sampling: Sampling, report: Progress = silent) -> Plane:
    """Principal axes of the features, shape (n_features, n_axes); ``report`` as for ``gather``."""
    moment = np.zeros((DERIVATIVES * sampling.size**2,) * 2)
    for done, picture in enumerate(pictures, 1):
        for low, _ in pairs(picture, sampling):
            moment += low.T @ low
        report(done, len(pictures), AXES)
    return principal_axes(moment).astype(np.float32)


def gather(
    pictures: Sequence[Plane],
    sampling: Sampling,
    *,
    axes: Plane | None,
    augment: bool,
    max_samples: int,
    min_norm: float,
    rng: np.random.Generator,
    report: Progress = silent,
) -> Samples:
    """Training samples of several pictures.

    Parameters
    ----------
    pictures : arrays of shape (height, width)
    sampling : Sampling
    axes : array of shape (n_features, n_axes), or None
        Axes that the features are projected on.
    augment : bool
        Add the mirrored and transposed pictures: eight views in all.
    max_samples : int
        About this many are drawn at random where there are more.
    min_norm : float
        Patches with features of a smaller norm are skipped.
    rng : Generator
    report : callable, default=silent
        Called with steps done, steps in all, and a text.

    Returns
    -------
    Samples
    """
    views = [view for picture in pictures for view in (_views(picture) if augment else [picture])]
    n_patches = sum((view.shape[0] // sampling.stride) * (view.shape[1] // sampling.stride) for view in views)
    share = min(1.0, max_samples / n_patches)
    lows, highs = [], []
    for done, view in enumerate(views, 1):
        for low, high in pairs(view, sampling):
            projected = low if axes is None else low @ axes
            selected = np.linalg.norm(projected, axis=1) >= min_norm
            if share < 1:
                selected &= rng.random(len(selected)) < share
            lows.append(projected[selected])
            highs.append(high[selected])
        report(done, len(views), GATHERING)
    return Samples(np.concatenate(lows), np.concatenate(highs))


def _views(picture: Plane) -> list[Plane]:
    return [turned[::up, ::left] for turned in (picture, picture.T) for up in (1, -1) for left in (1, -1)]
