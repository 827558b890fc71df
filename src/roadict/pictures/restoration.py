"""Learn a dictionary from the damaged picture itself, refine it on more patches, and code patches in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from roadict import checks
from roadict.coders.registry import encode
from roadict.linalg import solve_ridge
from roadict.pictures.dictionaries import LEARNING, learn_dictionary
from roadict.pictures.dtypes import Plane
from roadict.pictures.patches import PatchMean, bands, extract, starts
from roadict.precompile import prepare
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import silent
from roadict.runs.signals import stop_requested
from roadict.runs.snapshot import Callback
from roadict.seeds import RandomStateLike, seed_sequence

Mask = NDArray[np.bool_]
REFINING, CODING = "refining the dictionary", "coding patches"
"""Stages after ``LEARNING``."""
ITERATION_COST, REFINING_COST = 4.0, 3.0
"""Cost of an iteration of ROAD with 256 atoms per patch, and of a refinement per patch, where coding one patch costs 1;
by `benchmarks/progress.py`."""
BAND = 1 << 14
"""Patches coded at a time."""
TRAINING_PATCHES = 2000
"""Patches that ROAD learns from: it takes most of the time, and its atoms are refined on more."""
PATCHES_PER_ATOM = 4
"""With fewer patches per atom, atoms overfit single patches and their noise."""
RHO_PER_RATIO = 20.0
"""ρ per unit of atoms / features for patches of rms norm 1: noisy samples need twice the ρ of clean ones."""
MIN_OBSERVED = 4
"""A patch with fewer observed pixels is coded by all its pixels, the filled ones included."""
_RIDGE = 1e-4
"""Weight of the ridge when atoms are refined, in units of the mean energy of an atom's codes."""


@dataclass(frozen=True)
class Options:
    """Parameters of the learning, and its progress callbacks.

    Attributes
    ----------
    n_components : int
        Number of atoms.
    max_iter : int
        Iterations of ROAD.
    seed : SeedSequence
    n_jobs : int or None
    report : callable
        Called with steps of the whole job done, steps in all, and a text.
    callback : callable or None
        As for ``ROAD``.
    stages : Stages or None
        Of the job; None: each stage reports its own steps.
    """

    n_components: int
    max_iter: int
    seed: np.random.SeedSequence
    n_jobs: int | None
    report: Progress
    callback: Callback | None
    stages: Stages | None = None

    @classmethod
    def checked(
        cls,
        n_components: int,
        max_iter: int,
        random_state: RandomStateLike,
        n_jobs: int | None,
        progress: Progress | None,
        callback: Callback | None = None,
    ) -> Self:
        """Check the parameters that users pass."""
        checks.whole_number("n_components", n_components)
        checks.whole_number("max_iter", max_iter)
        checks.threads("n_jobs", n_jobs)
        return cls(n_components, max_iter, seed_sequence(random_state), n_jobs, progress or silent, callback)

    def staged(self, pool: "Patches", sweeps: int, costs: Mapping[str, float]) -> Self:
        """Return the options of a job that learns from a pool, refines in sweeps, and goes on with further stages."""
        n_patches = len(pool.values)
        iterations = self.max_iter * min(TRAINING_PATCHES, n_patches) * _n_atoms(self.n_components, n_patches) / 256
        first = {LEARNING: ITERATION_COST * iterations, REFINING: REFINING_COST * sweeps * n_patches}
        return replace(self, stages=Stages({**first, **costs}))

    def part(self, stage: str) -> Progress:
        """Return the callback for the steps of a stage."""
        return self.report if self.stages is None else self.stages.part(stage, self.report)

    def coding_progress(self, step: int, steps: int, stage: str = CODING) -> Callable[[float], None]:
        """Progress callback of ``code_plane`` for plane ``step`` of ``steps``."""
        report = self.part(stage)
        return lambda share: report(round(100 * (step + share)), 100 * steps, stage)


@dataclass(frozen=True)
class Patches:
    """Patches less their mean over the observed pixels.

    Attributes
    ----------
    values : array of shape (n_patches, n_pixels)
        Zero where not observed.
    observed : bool array like values, or None
        None: all are.
    means : array of shape (n_patches, 1)
    """

    values: Plane
    observed: Mask | None
    means: Plane

    def energy(self) -> Plane:
        """Mean square of the observed pixels of every patch."""
        n_observed = self.values.shape[1] if self.observed is None else np.maximum(self.observed.sum(axis=1), 1)
        energy: Plane = np.square(self.values).sum(axis=1) / n_observed
        return energy

    def chosen(self, index: NDArray[np.integer]) -> "Patches":
        """Some of the patches."""
        observed = None if self.observed is None else self.observed[index]
        return Patches(self.values[index], observed, self.means[index])

    def codes(self, atoms: Plane, level: float, max_atoms: int | None, n_jobs: int | None) -> Plane:
        """Code by OMP until the rms error over the observed pixels is at most ``level``."""
        rms = np.sqrt(self.energy())
        relative = np.divide(level, rms, out=np.ones_like(rms), where=rms > level)
        codes: Plane = encode(
            self.values,
            self.observed,
            atoms,
            algorithm="omp",
            n_nonzero_coefs=max_atoms,
            epsilon=relative,
            n_jobs=n_jobs,
        )
        return codes


def centred(values: Plane, observed: Mask | None) -> Patches:
    """Subtract the mean of the observed pixels."""
    if observed is None:
        means = values.mean(axis=1, keepdims=True)
        return Patches(values - means, None, means)
    means = np.where(observed, values, 0).sum(axis=1, keepdims=True) / np.maximum(observed.sum(axis=1), 1)[:, None]
    means = means.astype(np.float32)
    return Patches(np.where(observed, values - means, 0).astype(np.float32), observed, means)


def sample_patches(
    planes: Sequence[Plane], observed: Mask | None, size: int, max_patches: int, rng: np.random.Generator
) -> Patches:
    """Patches at random positions of all planes, in random order."""
    height, width = (length - size + 1 for length in planes[0].shape)
    count = min(max_patches // len(planes), height * width)
    values, masks = [], []
    for plane in planes:
        places = np.unravel_index(rng.choice(height * width, count, replace=False), (height, width))
        values.append(sliding_window_view(plane, (size, size))[places].reshape(count, -1))
        if observed is not None:
            masks.append(sliding_window_view(observed, (size, size))[places].reshape(count, -1))
    order = rng.permutation(count * len(planes))
    return centred(np.concatenate(values)[order], np.concatenate(masks)[order] if masks else None)


def learned_atoms(
    pool: Patches, options: Options, *, level: float, code_level: float, max_atoms: int | None, sweeps: int
) -> Plane:
    """Learn atoms by ROAD from some of the patches, then refine them on all.

    Parameters
    ----------
    pool : Patches
        In random order; at least two.
    options : Options
    level : float
        ROAD's bound on the rms error over the observed pixels.
    code_level : float
        The same bound for the codes of a patch.
    max_atoms : int or None
        Largest number of atoms for a patch.
    sweeps : int
        Refinements.

    Returns
    -------
    array of shape (n_components, n_pixels)
        Atoms of unit norm; fewer where the pool has fewer than four patches for each.
    """
    atoms = _first_atoms(pool, options, level)
    for sweep in range(sweeps):
        if stop_requested():
            break
        atoms = refined(atoms, pool, code_level, max_atoms, options.n_jobs)
        options.part(REFINING)(sweep + 1, sweeps, REFINING)
    return atoms


def _first_atoms(pool: Patches, options: Options, level: float) -> Plane:
    """Learn atoms by ROAD from the first of the patches, to an rms error of ``level`` over the observed pixels."""
    n_components = _n_atoms(options.n_components, len(pool.values))
    few = pool.chosen(np.arange(min(TRAINING_PATCHES, len(pool.values))))
    data = few.values if few.observed is None else np.where(few.observed, few.values, np.float32(np.nan))
    # The mean of every patch was subtracted: the noise has one degree of freedom less.
    energy, n_pixels = few.energy(), few.values.shape[1]
    n_observed = np.full(len(energy), n_pixels) if few.observed is None else few.observed.sum(axis=1)
    allowed = level**2 * float((n_observed - 1).sum())
    total = float((energy * n_observed).sum())
    prepare(("engine", "omp", "lasso"), data.dtype)
    atoms = learn_dictionary(
        data,
        n_components,
        method="road",
        epsilon=float(np.sqrt(min(allowed / total, 0.9))),
        rho=RHO_PER_RATIO * n_components / float(n_observed.mean()) / float(np.sqrt(total / len(data))),
        max_iter=options.max_iter,
        seed=options.seed,
        n_jobs=options.n_jobs,
        progress=options.part(LEARNING),
        callback=options.callback,
    )
    return atoms.astype(np.float32)


def _n_atoms(wanted: int, n_patches: int) -> int:
    return min(wanted, max(1, n_patches // PATCHES_PER_ATOM))


def refined(atoms: Plane, pool: Patches, level: float, max_atoms: int | None, n_jobs: int | None) -> Plane:
    """Code the pool, fill missing pixels by the codes, and fit the atoms by least squares (MOD).

    Unused atoms are replaced by the worst coded patches.
    """
    codes = pool.codes(atoms, level, max_atoms, n_jobs).astype(np.float64)
    coded = codes @ atoms
    full = pool.values if pool.observed is None else np.where(pool.observed, pool.values, coded)
    gram = codes.T @ codes
    used = np.diag(gram) > 0
    fitted = solve_ridge(gram, codes.T @ full, _RIDGE)
    worst = np.argsort(-np.square(full - coded).sum(axis=1), kind="stable")[: np.count_nonzero(~used)]
    fresh = np.flatnonzero(~used)[: len(worst)]
    fitted[fresh] = full[worst]
    norms = np.linalg.norm(fitted, axis=1, keepdims=True)
    return np.where(norms > 1e-12, fitted / np.maximum(norms, 1e-12), atoms).astype(np.float32)


def code_plane(
    plane: Plane,
    observed: Mask | None,
    atoms: Plane,
    size: int,
    *,
    level: float,
    max_atoms: int | None,
    n_jobs: int | None,
    advance: Callable[[float], None],
    wanted: Mask | None = None,
) -> Plane:
    """Code the patches of a plane and average them.

    Parameters
    ----------
    plane : array of shape (height, width)
    observed : bool array like plane, or None
        The plane must hold a rough filling where it is False.
    atoms : array of shape (n_components, size * size)
    size : int
    level : float
        Rms error that the codes of a patch may leave.
    max_atoms : int or None
        Largest number of atoms for a patch.
    n_jobs : int or None
    advance : callable
        Called with the share done.
    wanted : bool array like plane, or None
        Only patches with wanted pixels are coded; other pixels of the result are undefined.

    Returns
    -------
    array of shape (height, width)
    """
    rows, columns = (starts(length, size, 1) for length in plane.shape)
    mean = PatchMean((plane.shape[0], plane.shape[1]), size, np.float32)
    for band in bands(rows, len(columns), BAND):
        if wanted is None or wanted[band[0] : band[-1] + size].any():
            values = extract(plane, size, band, columns)
            mask = None if observed is None else extract(observed, size, band, columns)
            if mask is not None:
                mask[mask.sum(axis=1) < MIN_OBSERVED] = True
            todo: Any = slice(None) if wanted is None else extract(wanted, size, band, columns).any(axis=1)
            patches = centred(values[todo], None if mask is None else mask[todo])
            values[todo] = patches.codes(atoms, level, max_atoms, n_jobs) @ atoms + patches.means
            mean.add(values, band, columns)
        advance(float((band[-1] + 1) / len(rows)))
    return mean.mean
