"""Inpainting with a dictionary learned from the observed pixels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, maximum_filter

from roadict.pictures import dtypes
from roadict.pictures.dtypes import Plane
from roadict.pictures.restoration import (
    CODING,
    REFINING_COST,
    Mask,
    Options,
    Patches,
    code_plane,
    learned_atoms,
    refined,
    sample_patches,
)
from roadict.progress.stages import Progress
from roadict.runs.signals import stop_requested
from roadict.runs.snapshot import Callback
from roadict.seeds import INPAINTING, RandomStateLike, streams

PATCH = 8
LEVEL = 0.01
"""Rms error that codes may leave on the observed pixels; white is 1."""
MAX_ATOMS = 10
"""Atoms per patch when coding by observed pixels alone: more would overfit them."""
MAX_ATOMS_FILLED = 16
"""Atoms per patch of the filled picture: the cost of OMP grows with the cube of their number."""
SWEEPS = 10
"""Refinements of the atoms after ROAD, by the observed pixels."""
SWEEPS_FILLED = 2
"""Refinements in every round on the filled picture."""
POOL = 8000
"""Patches that the atoms are refined on; coding by the observed pixels alone is slow."""
FILLED_COST = 0.5
"""Cost of coding a patch of the filled picture, where that of a patch by its observed pixels is 1."""
LEVELS = (0.03, 0.02, 0.015, 0.012, 0.01, 0.01, 0.01, 0.008, 0.008)
"""Rms errors of the rounds on the filled picture; decreasing, so that bad fillings are discarded first."""
FILLED = "coding the filled picture"
"""Stage after the others."""
_MIN_OBSERVED = 0.25
"""Share of a patch that must be observed for it to be learned from."""
_MIN_CONTRAST = 0.02
"""Rms contrast that a patch must exceed to be learned from; white is 1."""


def inpaint(
    picture: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    n_components: int = 256,
    max_iter: int = 120,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
) -> NDArray[Any]:
    """Fill in missing pixels.

    ROAD learns atoms from the observed pixels of some patches, and patches are coded by their observed pixels. The
    filled picture is then coded and averaged in a few more rounds. Observed pixels are unchanged.

    Parameters
    ----------
    picture : array of shape (height, width) or (height, width, channels)
        uint8, uint16, float32 or float64, with sides of at least 8 pixels. Missing pixels may have any value.
    mask : array of shape (height, width), default=None
        Nonzero where a pixel is missing. None: fully transparent pixels are missing.
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
        Filled pixels are opaque.

    Examples
    --------
    >>> whole = np.add.outer(np.arange(24), np.arange(24)).astype(np.uint8) * 5
    >>> missing = np.random.default_rng(0).random(whole.shape) < 0.3
    >>> filled = inpaint(np.where(missing, 0, whole).astype(np.uint8), missing, n_components=16, random_state=0)
    >>> bool(np.abs(filled[missing].astype(int) - whole[missing]).mean() < 1)
    True
    """
    array = dtypes.check_picture("picture", _hidden_as_zero(picture, mask), PATCH)
    options = Options.checked(n_components, max_iter, random_state, n_jobs, progress, callback)
    missing = missing_pixels(array, mask)
    unit = dtypes.white(array)
    parts = dtypes.split(array, unit)
    planes = [rough_filling(plane, missing) for plane in dtypes.to_planes(parts.colour)]
    colour = dtypes.from_planes(_filled(planes, missing, options), parts.colour)
    result = dtypes.join(dtypes.Parts(colour, parts.alpha), array.dtype, unit, dtypes.bounds(array))
    if parts.alpha is not None:
        # Alpha of 0 to 1 may come with colours of 0 to 255.
        result[..., -1] = 1 if array.dtype.kind == "f" and array[..., -1].max() <= 1 else unit
    result[~missing] = array[~missing]
    return result


def _hidden_as_zero(picture: ArrayLike, mask: ArrayLike | None) -> NDArray[Any]:
    """Set missing pixels of floats to zero: NaN or a marker value must not decide what white is."""
    array = np.asarray(picture)
    transparent = array.ndim == 3 and array.shape[2] in (2, 4)
    if array.dtype.kind != "f" or (np.shape(mask) != array.shape[:2] if mask is not None else not transparent):
        return array
    hidden = array[..., -1] == 0 if mask is None else np.asarray(mask) != 0
    return np.where(hidden.reshape(*hidden.shape, *(1,) * (array.ndim - 2)), 0, array).astype(array.dtype)


def missing_pixels(picture: NDArray[Any], mask: ArrayLike | None) -> Mask:
    """Boolean mask of the missing pixels: by the mask, or else by transparency."""
    shape = picture.shape[:2]
    if mask is not None:
        given = np.asarray(mask)
        if given.shape != shape:
            raise ValueError(f"mask has shape {given.shape} and the picture {shape} (height, width); they must agree")
        if given.dtype.kind not in "buif":
            raise ValueError(f"mask has dtype {given.dtype}; it must hold numbers or bools")
        missing: Mask = given != 0
    elif picture.ndim == 3 and picture.shape[2] in (2, 4):
        missing = picture[..., -1] == 0
    else:
        raise ValueError("there is no mask, and the picture has no alpha channel that could be one; pass a mask")
    if missing.all():
        raise ValueError("all pixels are missing by the mask; there is nothing to learn from")
    if not missing.any():
        raise ValueError(
            "no pixel is missing by the mask; mark what is to be filled by nonzero (or transparent) pixels"
        )
    return missing


def rough_filling(plane: Plane, missing: Mask) -> Plane:
    """Fill missing pixels by a local mean, or by the nearest observed pixel where none is near."""
    weight = (~missing).astype(np.float32)
    near = gaussian_filter(weight, 1.5)
    mean = gaussian_filter(np.where(missing, 0, plane).astype(np.float32), 1.5) / np.maximum(near, 1e-30)
    _, nearest = distance_transform_edt(missing, return_indices=True)
    return np.where(missing, np.where(near > 1e-3, mean, plane[tuple(nearest)]), plane)


def _filled(planes: list[Plane], missing: Mask, options: Options) -> list[Plane]:
    """Fill by the observed pixels, then in rounds on the filled picture.

    Parameters
    ----------
    planes : list of arrays of shape (height, width)
        Roughly filled; returned as they are where there is nothing to learn from.
    missing : bool array of shape (height, width)
    options : Options
    """
    (rng,) = streams(options.seed, INPAINTING, 1)
    pool = _learnable(sample_patches(planes, ~missing, PATCH, 2 * POOL, rng))
    if len(pool.values) < 2:
        return planes
    wanted = len(planes) * float(maximum_filter(missing, PATCH).sum())
    later = len(LEVELS) * (wanted + REFINING_COST * SWEEPS_FILLED * len(pool.values))
    options = options.staged(pool, SWEEPS, {CODING: wanted, FILLED: FILLED_COST * later})
    atoms = learned_atoms(pool, options, level=LEVEL, code_level=LEVEL, max_atoms=MAX_ATOMS, sweeps=SWEEPS)
    planes = _coded(planes, ~missing, missing, atoms, LEVEL, MAX_ATOMS, 0, options)
    for round_, level in enumerate(LEVELS, 1):
        if stop_requested():
            break
        pool = _learnable(sample_patches(planes, None, PATCH, POOL, rng))
        if len(pool.values):
            for _ in range(SWEEPS_FILLED):
                atoms = refined(atoms, pool, level, MAX_ATOMS_FILLED, options.n_jobs)
        planes = _coded(planes, None, missing, atoms, level, MAX_ATOMS_FILLED, round_, options)
    return planes


def _coded(
    planes: list[Plane],
    observed: Mask | None,
    missing: Mask,
    atoms: Plane,
    level: float,
    max_atoms: int,
    round_: int,
    options: Options,
) -> list[Plane]:
    """Replace the missing pixels by the coded ones; ``round_`` counts the calls, for the progress."""
    stage, before, steps = (FILLED, round_ - 1, len(LEVELS)) if round_ else (CODING, 0, 1)
    found = []
    for index, plane in enumerate(planes):
        coded = code_plane(
            plane,
            observed,
            atoms,
            PATCH,
            level=level,
            max_atoms=max_atoms,
            n_jobs=options.n_jobs,
            advance=options.coding_progress(before * len(planes) + index, steps * len(planes), stage),
            wanted=missing,
        )
        found.append(np.where(missing, coded, plane))
    return found


def _learnable(patches: Patches) -> Patches:
    """Patches with enough contrast and observed pixels."""
    enough = patches.energy() > _MIN_CONTRAST**2
    if patches.observed is not None:
        enough &= patches.observed.mean(axis=1) >= _MIN_OBSERVED
    return patches.chosen(np.flatnonzero(enough)[:POOL])
