"""Denoising with a dictionary learned from the noisy picture itself."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.extras import require
from roadict.pictures import dtypes
from roadict.pictures.restoration import CODING, Options, Patches, code_plane, learned_atoms, sample_patches
from roadict.progress.stages import Progress
from roadict.runs.snapshot import Callback
from roadict.seeds import DENOISING, RandomStateLike, streams

PATCH = 8
GAIN = 1.1
"""Rms error of the codes over σ: a little more than the noise, else some of it is coded as well."""
MIN_VARIANCE = 1.1
"""Patches whose variance is below this many σ² are pure noise, and are not learned from."""
SWEEPS = 15
"""Refinements of the atoms after ROAD: 0.3 dB on the house at σ = 20; more sweeps gain nothing."""
NOISE_COST = 0.2
"""Cost of coding a patch of pure noise, where that of others is 1."""
POOL = 40_000
"""Patches that the atoms are refined on, at most, out of twice as many."""


def denoise(
    picture: ArrayLike,
    sigma: float | str = "auto",
    *,
    n_components: int = 256,
    max_iter: int = 120,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
) -> NDArray[Any]:
    """Remove white noise from a picture.

    ROAD learns atoms from some of the noisy patches, with the noise level as its error bound. All patches are coded
    down to that error and averaged. Colours are processed as their sum and differences; alpha is unchanged.

    Parameters
    ----------
    picture : array of shape (height, width) or (height, width, channels)
        uint8, uint16, float32 or float64, with sides of at least 8 pixels.
    sigma : float or "auto", default="auto"
        Standard deviation of the noise in the units of the picture: of floats in [0, 1], 0.1 and not 25. "auto":
        estimated from its wavelets.
    n_components : int, default=256
        Number of atoms; less where the picture has fewer than four patches for each.
    max_iter : int, default=120
        Iterations of ROAD.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
    n_jobs : int, default=None
        Threads. None: all cores.
    progress : callable, default=None
        Called with steps of the whole job done, steps in all (1000), and the name of the stage.
    callback : callable, default=None
        As for ``ROAD``, while the dictionary is learned.

    Returns
    -------
    array of the shape and dtype of the picture

    Examples
    --------
    >>> from roadict.metrics import psnr
    >>> clean = np.add.outer(np.arange(32.0), np.arange(32.0)) * 2
    >>> noisy = clean + np.random.default_rng(0).normal(0, 10, clean.shape)
    >>> better = denoise(noisy, 10, n_components=16, random_state=0)
    >>> psnr(better, clean, 255) > psnr(noisy, clean, 255) + 6
    True
    """
    array = dtypes.check_picture("picture", picture, PATCH)
    options = Options.checked(n_components, max_iter, random_state, n_jobs, progress, callback)
    level = noise_level(array, sigma)
    if level == 0:
        return array.copy()
    unit = dtypes.white(array)
    parts = dtypes.split(array, unit)
    colour = dtypes.from_planes(_denoised(dtypes.to_planes(parts.colour), level, options), parts.colour)
    result = dtypes.join(dtypes.Parts(colour, parts.alpha), array.dtype, unit, dtypes.bounds(array))
    if parts.alpha is not None:
        result[..., -1] = array[..., -1]
    return result


def noise_level(picture: NDArray[Any], sigma: float | str) -> float:
    """Noise level σ with white at 1, given or estimated.

    Parameters
    ----------
    picture : array of shape (height, width) or (height, width, channels)
    sigma : float or "auto"
        In the units of the picture, and not more than white.
    """
    unit = dtypes.white(picture)
    if isinstance(sigma, str):
        checks.one_of("sigma", sigma, ["auto"], "a number")
        planes = dtypes.to_planes(dtypes.split(picture, unit).colour)
        require('denoise(sigma="auto")', "skimage", "pywt")
        return float(np.mean([_estimated(plane) for plane in planes]))
    level = checks.real_number("sigma", sigma, zero=True) / unit
    if level > 1:
        raise ValueError(f"sigma={sigma:g} is more than white, {unit:g}; give it in the units of the picture")
    return level


def _estimated(plane: dtypes.Plane) -> float:
    from skimage.restoration import estimate_sigma

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an empty median, where all coefficients are zero
        return float(np.nan_to_num(estimate_sigma(plane)))


def _denoised(planes: list[dtypes.Plane], level: float, options: Options) -> list[dtypes.Plane]:
    """Learn one dictionary from all planes, and code each plane."""
    (rng,) = streams(options.seed, DENOISING, 1)
    sample = sample_patches(planes, None, PATCH, 2 * POOL, rng)
    pool = _active(sample, level)
    options = options.staged(pool, SWEEPS, {CODING: _coding_cost(planes, sample, level)})
    code_level = GAIN * level
    if len(pool.values) < 2:
        atoms = np.zeros((1, PATCH * PATCH), np.float32)  # pure noise: only the patch means remain
    else:
        atoms = learned_atoms(pool, options, level=level, code_level=code_level, max_atoms=None, sweeps=SWEEPS)
    return [
        code_plane(
            plane,
            None,
            atoms,
            PATCH,
            level=code_level,
            max_atoms=None,
            n_jobs=options.n_jobs,
            advance=options.coding_progress(index, len(planes)),
        )
        for index, plane in enumerate(planes)
    ]


def _coding_cost(planes: list[dtypes.Plane], sample: Patches, level: float) -> float:
    """Number of patches, of which those of pure noise count less."""
    height, width = (length - PATCH + 1 for length in planes[0].shape)
    active = float(np.mean(sample.energy() > MIN_VARIANCE * level**2))
    return float(len(planes) * height * width * (NOISE_COST + (1 - NOISE_COST) * active))


def _active(patches: Patches, level: float) -> Patches:
    """Patches with more than noise."""
    active = np.flatnonzero(patches.energy() > MIN_VARIANCE * level**2)
    return patches.chosen(active[:POOL])
