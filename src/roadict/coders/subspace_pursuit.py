"""Subspace pursuit: a support of fixed size, exchanged as a whole."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    atom_weights,
    correlate,
    least_squares,
    merged,
    split_features,
    subtract_atoms,
    top_atoms,
)
from roadict.coders.scaling import Scaled, code_chunks
from roadict.parallel import kernel

Array = NDArray[np.floating]

MAX_EXCHANGES = 100


@kernel
def _sp_chunk(rows, columns, gram, observed, samples, codes, sparsity):  # type: ignore[no-untyped-def]
    n_components, n_features = rows.shape
    start, correlations, weights = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    residual = np.empty(n_features)
    for n in range(len(samples)):
        sample, count = samples[n], sparsity[n]
        seen, hidden = split_features(observed, n, n_features)
        atom_weights(columns, gram, seen, weights)
        correlate(columns, seen, sample, start)
        support, values = np.empty(0, np.int64), np.empty(0)
        square = np.inf
        correlations[:] = start
        for _ in range(MAX_EXCHANGES):
            wide = merged(support, top_atoms(np.abs(correlations) * weights, count), n_components)
            sizes = np.abs(least_squares(rows, gram, hidden, start, wide))
            for i in range(len(wide)):
                sizes[i] /= weights[wide[i]]
            trial = wide[top_atoms(sizes, count)]
            fitted = least_squares(rows, gram, hidden, start, trial)
            left = subtract_atoms(rows, trial, fitted, sample, hidden, residual)
            if not left < square:
                break
            support, values, square = trial, fitted, left
            correlate(columns, seen, residual, correlations)
        for i in range(len(support)):
            codes[n, support[i]] = values[i]
    return 0


def subspace_pursuit(problem: Scaled, sparsity: NDArray[np.integer], n_jobs: int | None) -> Array:
    """Join the support with as many atoms that correlate best with the residual, fit, keep the largest, fit again.

    Ends when the residual no longer falls. Atoms compete with unit norm.

    Parameters
    ----------
    problem : Scaled
    sparsity : int array of shape (n_samples,)
        Number of atoms.
    n_jobs : int or None

    Returns
    -------
    array of shape (n_samples, n_components)

    References
    ----------
    W. Dai and O. Milenkovic, "Subspace pursuit for compressive sensing signal reconstruction", 2009.
    """
    return code_chunks(_sp_chunk, problem, sparsity, n_jobs=n_jobs)[0]
