"""Iterated exchange of a support of fixed size, shared by subspace pursuit and CoSaMP."""

import numpy as np

from roadict.coders.kernels import (
    atom_weights,
    correlate,
    least_squares,
    merged,
    split_features,
    subtract_atoms,
    top_atoms,
)
from roadict.kernels import kernel

MAX_ROUNDS = 100


@kernel
def exchange_chunk(rows, columns, gram, observed, samples, codes, sparsity, joining, fit_again):
    """Code samples; returns 0 unconverged samples.

    joining: atoms added per round, relative to the size of the support. fit_again: whether the retained atoms are
    refitted in every round (subspace pursuit) or only at the end (CoSaMP).
    """
    n_components, n_features = rows.shape
    start, correlations, weights = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    residual = np.empty(n_features)
    for n in range(len(samples)):
        sample, count = samples[n], sparsity[n]
        seen, missing = split_features(observed, n, n_features)
        atom_weights(columns, gram, seen, weights)
        correlate(columns, seen, sample, start)
        support, found = np.empty(0, np.int64), np.empty(0)
        square = np.inf
        correlations[:] = start
        for _ in range(MAX_ROUNDS):
            wide = merged(support, top_atoms(np.abs(correlations) * weights, joining * count), n_components)
            values = least_squares(rows, gram, missing, start, wide)
            sizes = np.abs(values)
            for i in range(len(wide)):
                sizes[i] /= weights[wide[i]]
            largest = top_atoms(sizes, count)
            trial, fitted = wide[largest], values[largest]
            if fit_again:
                fitted = least_squares(rows, gram, missing, start, trial)
            new_square = subtract_atoms(rows, trial, fitted, sample, missing, residual)
            if not new_square < square:
                break
            support, found, square = trial, fitted, new_square
            correlate(columns, seen, residual, correlations)
        if not fit_again:
            found = least_squares(rows, gram, missing, start, support)
        for i in range(len(support)):
            codes[n, support[i]] = found[i]
    return 0
