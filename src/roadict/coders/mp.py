"""Matching pursuit: one atom and one product per step."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    NEGLIGIBLE,
    atom_weights,
    best_atom,
    correlate,
    dot,
    gram_row,
    split_features,
)
from roadict.coders.scaling import ScaledProblem, encode_chunks
from roadict.kernels import kernel

Array = NDArray[np.floating]

MAX_STEPS = 10_000


@kernel
def _mp_chunk(rows, columns, gram, observed, samples, codes, sparsity, epsilon):
    n_components, n_features = rows.shape
    correlations, weights, row = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    for n in range(len(samples)):
        seen, missing = split_features(observed, n, n_features)
        atom_weights(columns, gram, seen, weights)
        residual, used = samples[n].copy(), np.zeros(n_components, np.bool_)
        norm = np.sqrt(dot(residual, residual))
        correlate(columns, seen, residual, correlations)
        size, misfit, excluded = 0, norm, used.copy()
        for _ in range(MAX_STEPS):
            if misfit <= epsilon[n] * norm:
                break
            best, correlation = best_atom(correlations, weights, excluded)
            if best < 0 or correlation <= NEGLIGIBLE * norm:
                break
            value = correlations[best] * weights[best] ** 2
            codes[n, best] += value
            gram_row(rows, columns, gram, seen, best, row)
            for k in range(n_components):
                correlations[k] -= value * row[k]
            for m in range(n_features):
                residual[m] -= value * rows[best, m]
            for m in missing:
                residual[m] = 0.0
            misfit = np.sqrt(dot(residual, residual))
            size += not used[best]
            used[best] = True
            if size == sparsity[n]:
                excluded[:] = ~used
    return 0


def mp(
    problem: ScaledProblem, sparsity: NDArray[np.integer], epsilon: Array, n_jobs: int | None, sparse: bool = False
) -> Any:
    """Repeatedly subtract from the residual its projection onto the atom that correlates best with it.

    Atoms are compared at unit norm. Once ``sparsity`` atoms are in use, only these are refined, to convergence: their
    codes are then those of least squares, as in orthogonal matching pursuit.

    Parameters
    ----------
    problem : ScaledProblem
    sparsity : int array of shape (n_samples,)
        Maximum number of atoms.
    epsilon : array of shape (n_samples,)
        Relative error at which the coding of a sample stops.
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.

    Returns
    -------
    array or CSR array of shape (n_samples, n_components)

    References
    ----------
    S. Mallat and Z. Zhang, "Matching pursuits with time-frequency dictionaries", 1993.
    """
    return encode_chunks(_mp_chunk, problem, sparsity, epsilon, sparse=sparse, n_jobs=n_jobs)[0]
