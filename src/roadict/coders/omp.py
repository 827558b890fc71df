"""Orthogonal matching pursuit as Batch-OMP: correlations from Gram rows, a growing Cholesky factor."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    NEGLIGIBLE,
    atom_weights,
    best_atom,
    correlate,
    gram_row,
    grow_factor,
    split_features,
    subtract_atoms,
)
from roadict.coders.scaling import CHUNK, ScaledProblem, encode_chunks
from roadict.kernels import Workers, kernel, solve_factor

Array = NDArray[np.floating]


@kernel
def _omp_chunk(rows, columns, gram, observed, samples, codes, sparsity, epsilon):
    n_components, n_features = rows.shape
    max_atoms = sparsity.max()
    start, correlations, weights = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    gram_rows, factor = np.empty((max_atoms, n_components)), np.empty((max_atoms, max_atoms))
    support, values, products = np.empty(max_atoms, np.int64), np.empty(max_atoms), np.empty(max_atoms)
    residual = np.empty(n_features)
    if observed.size == 0:
        atom_weights(columns, gram, np.arange(n_features), weights)
    for n in range(len(samples)):
        sample = samples[n]
        seen, missing = split_features(observed, n, n_features)
        if observed.size > 0:
            atom_weights(columns, gram, seen, weights)
        norm = np.sqrt(subtract_atoms(rows, support[:0], values, sample, missing, residual))
        correlate(columns, seen, sample, start)
        correlations[:] = start
        taken = np.zeros(n_components, np.bool_)
        size, misfit = 0, norm
        while size < sparsity[n] and misfit > epsilon[n] * norm:
            best, correlation = best_atom(correlations, weights, taken)
            if best < 0 or correlation <= NEGLIGIBLE * norm:
                break
            taken[best] = True
            gram_row(rows, columns, gram, seen, best, gram_rows[size])
            for i in range(size):
                products[i] = gram_rows[size, support[i]]
            products[size] = gram_rows[size, best]
            if not grow_factor(factor, size, products):
                continue
            support[size] = best
            size += 1
            for i in range(size):
                values[i] = start[support[i]]
            solve_factor(factor, size, values)
            if size < sparsity[n]:
                correlations[:] = start
                for i in range(size):
                    value, row = values[i], gram_rows[i]
                    for k in range(n_components):
                        correlations[k] -= value * row[k]
            if epsilon[n] > 0:
                misfit = np.sqrt(subtract_atoms(rows, support[:size], values, sample, missing, residual))
        for i in range(size):
            codes[n, support[i]] = values[i]
    return 0


def omp(problem: ScaledProblem, sparsity: NDArray[np.integer], epsilon: Array, n_jobs: int | None) -> Array:
    """Add, one at a time, the atom that correlates best with the residual, and refit all by least squares.

    Atoms are compared at unit norm. Atoms that depend on those in use are skipped.

    Parameters
    ----------
    problem : ScaledProblem
    sparsity : int array of shape (n_samples,)
        Maximum number of atoms.
    epsilon : array of shape (n_samples,)
        Relative error at which the coding of a sample stops.
    n_jobs : int or None

    Returns
    -------
    array of shape (n_samples, n_components)

    References
    ----------
    R. Rubinstein, M. Zibulevsky and M. Elad, "Efficient implementation of the K-SVD algorithm using batch orthogonal
    matching pursuit", 2008.
    """
    return encode_chunks(_omp_chunk, problem, sparsity, epsilon, n_jobs=n_jobs)[0]


def omp_of_order_one(data: Array, dictionary: Array, n_nonzero_coefs: int, workers: Workers) -> Array:
    """Code like ``omp``, with less overhead: data and atoms must be float64 of order one.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features)
    n_nonzero_coefs : int
        At most n_features and n_components.
    workers : Workers

    Returns
    -------
    array of shape (n_samples, n_components)
    """
    columns, gram = np.ascontiguousarray(dictionary.T), dictionary @ dictionary.T
    codes = np.zeros((len(data), len(dictionary)))
    all_observed = np.empty((0, 0), np.bool_)
    chunk = len(data) if workers.n_threads == 1 else CHUNK

    def task(i: int) -> None:
        samples = data[i * chunk : (i + 1) * chunk]
        sparsity, epsilon = np.full(len(samples), n_nonzero_coefs), np.zeros(len(samples))
        part = codes[i * chunk : (i + 1) * chunk]
        _omp_chunk(dictionary, columns, gram, all_observed, samples, part, sparsity, epsilon)

    workers.run(task, -(-len(data) // chunk))
    return codes
