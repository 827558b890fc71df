"""Anchored regression: every atom has a linear map from features to detail, fitted to its neighbourhood.

After R. Timofte, V. De Smet and L. Van Gool, "A+: Adjusted anchored neighborhood regression", 2014.
"""

import numpy as np
from numpy.typing import NDArray

from roadict.blas import one_blas_thread
from roadict.kernels import Workers
from roadict.pictures.dtypes import Plane
from roadict.progress.terminal import Progress, silent

RIDGE = 0.1
"""Weight of the ridge, for samples of unit norm."""
REGRESSORS = "fitting the atoms' regressors"
"""Stage of the training."""
BLOCK = 8
"""Atoms compared with all samples at a time."""
SAMPLED = 50_000
"""Samples that the bound on the similarity of neighbours is estimated from."""


def fit_regressors(
    low: Plane, high: Plane, atoms: Plane, n_neighbours: int, n_jobs: int | None, report: Progress = silent
) -> Plane:
    """Ridge regressors from features to detail, one per atom, each from the samples nearest to it.

    Neighbours have a large |cos| with the atom: both signs, as the maps are linear.

    Parameters
    ----------
    low : array of shape (n_samples, n_features)
        Features of unit norm.
    high : array of shape (n_samples, n_pixels)
        Detail, divided by the norm its features had.
    atoms : array of shape (n_components, n_features)
    n_neighbours : int
        About how many samples each regressor is fitted to.
    n_jobs : int or None
    report : callable, default=silent
        Called with steps done, steps in all, and a text.

    Returns
    -------
    array of shape (n_components, n_features, n_pixels)
        Features @ regressors[k] is the detail.
    """
    n_features = low.shape[1]
    regressors = np.empty((len(atoms), n_features, high.shape[1]), np.float32)
    share = min(1.0, n_neighbours / len(low))
    subset = low[:: max(1, len(low) // SAMPLED)]
    ridge = RIDGE * np.eye(n_features)

    def fit_block(block: int) -> None:
        these = slice(block * BLOCK, (block + 1) * BLOCK)
        # The bound comes from a subset: sorting all samples for every atom would take most of the time.
        bounds = np.quantile(np.abs(subset @ atoms[these].T), 1 - share, axis=0)
        similarity = np.abs(low @ atoms[these].T)
        for k, bound in enumerate(bounds):
            neighbours = np.flatnonzero(similarity[:, k] >= bound)
            x, y = low[neighbours], high[neighbours]
            regressors[block * BLOCK + k] = np.linalg.solve(x.T @ x + ridge, x.T @ y)

    n_blocks = -(-len(atoms) // BLOCK)
    # Before the threads of the workers: one of these alone may set limits, which hold for all.
    with one_blas_thread(), Workers(n_jobs) as workers:
        workers.run(fit_block, n_blocks, lambda done: report(done, n_blocks, REGRESSORS))
    return regressors


def nearest_atoms(low: Plane, atoms: Plane) -> NDArray[np.intp]:
    """Index of the atom most like each sample, or like its negative; arguments as for ``apply_regressors``."""
    nearest: NDArray[np.intp] = np.abs(low @ atoms.T).argmax(axis=1)
    return nearest


def apply_regressors(low: Plane, atoms: Plane, regressors: Plane) -> Plane:
    """Detail of samples, by the regressor of the atom most like each.

    Parameters
    ----------
    low : array of shape (n_samples, n_features)
        Of any norm.
    atoms : array of shape (n_components, n_features)
    regressors : array of shape (n_components, n_features, n_pixels)

    Returns
    -------
    array of shape (n_samples, n_pixels)
    """
    nearest = nearest_atoms(low, atoms)
    order = np.argsort(nearest, kind="stable")
    ends = np.searchsorted(nearest[order], np.arange(len(atoms) + 1))
    detail = np.empty((len(low), regressors.shape[2]), low.dtype)
    for k in np.flatnonzero(np.diff(ends)):
        members = order[ends[k] : ends[k + 1]]
        detail[members] = low[members] @ regressors[k]
    return detail
