"""CoSaMP: compressive sampling matching pursuit."""

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

MAX_ROUNDS = 100


@kernel
def _cosamp_chunk(rows, columns, gram, observed, samples, codes, sparsity):  # type: ignore[no-untyped-def]
    n_components, n_features = rows.shape
    start, correlations, weights = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    residual = np.empty(n_features)
    for n in range(len(samples)):
        sample, count = samples[n], sparsity[n]
        seen, hidden = split_features(observed, n, n_features)
        atom_weights(columns, gram, seen, weights)
        correlate(columns, seen, sample, start)
        support = np.empty(0, np.int64)
        square = np.inf
        correlations[:] = start
        for _ in range(MAX_ROUNDS):
            wide = merged(support, top_atoms(np.abs(correlations) * weights, 2 * count), n_components)
            values = least_squares(rows, gram, hidden, start, wide)
            sizes = np.abs(values)
            for i in range(len(wide)):
                sizes[i] /= weights[wide[i]]
            largest = top_atoms(sizes, count)
            left = subtract_atoms(rows, wide[largest], values[largest], sample, hidden, residual)
            if not left < square:
                break
            support, square = wide[largest], left
            correlate(columns, seen, residual, correlations)
        values = least_squares(rows, gram, hidden, start, support)
        for i in range(len(support)):
            codes[n, support[i]] = values[i]
    return 0


def cosamp(problem: Scaled, sparsity: NDArray[np.integer], n_jobs: int | None) -> Array:
    """Join the support with twice as many atoms that correlate best with the residual, fit, keep the largest.

    Ends when the residual no longer falls; the values on the last support are then fitted once more. Atoms compete
    with unit norm. Needs about three times as many (observed) features as atoms.

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
    D. Needell and J. Tropp, "CoSaMP: iterative signal recovery from incomplete and inaccurate samples", 2009.
    """
    return code_chunks(_cosamp_chunk, problem, sparsity, n_jobs=n_jobs)[0]
