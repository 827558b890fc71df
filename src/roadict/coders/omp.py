"""Orthogonal matching pursuit as Batch-OMP: correlations from Gram rows, a growing Cholesky factor."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.active import (
    append_atom,
    best_atom,
    correlate_sample,
    enter_atom,
    leaf,
    project_atom,
    scatter,
    solve_support,
    take_atom,
    update_correlations,
    workspace,
    write_support,
)
from roadict.coders.kernels import NEGLIGIBLE
from roadict.coders.scaling import CHUNK, MAX_CHUNK, ScaledProblem, empty_supports, encode_supports
from roadict.kernels import Workers, inlined

Array = NDArray[np.floating]

VANISHING = 1e-20
"""Atoms of a smaller squared norm over the observed features, of order one in all, are not used."""
MAX_ENTRIES = 20
"""Maximum number of entries into the support, per atom of the dictionary, if codes must not be negative."""


@inlined
def _reset(work, columns, seen, weights):
    """Set correlations to those of the sample, weights to one over the norms of atoms over the seen features, or 0."""
    scores = work.scores
    for k in range(len(weights)):
        work.correlations[k], work.weights[k] = work.start[k], weights[k]
    if seen.size == 0:
        return
    for k in range(len(weights)):
        scores[k] = 0
    for m in range(len(columns)):
        if seen[m]:
            column = columns[m]
            for k in range(len(weights)):
                scores[k] += column[k] * column[k]
    for k in range(len(weights)):
        work.weights[k] = 1 / np.sqrt(scores[k]) if scores[k] > VANISHING else 0.0


@leaf
def _fit(work, size, rows, seen, sample, exact):
    """Set the codes to those of least squares, free of earlier rounding errors; return the squared misfit, if exact."""
    for i in range(size):
        work.products[i] = work.start[work.atoms[i]]
    solve_support(work, size)
    for i in range(size):
        work.codes[i] = work.steps[i]
    square = 0.0
    if exact:
        for m in range(len(sample)):
            left = 0.0 + sample[m]
            for i in range(size):
                left -= work.codes[i] * rows[work.atoms[i], m]
            square += left * left if seen.size == 0 or seen[m] else 0.0
    return square


@leaf
def _omp_chunk(rows, columns, gram, observed, samples, squares, signs, work, out, sparsity, epsilon, weights, rounding):
    position, codes = np.int64(0), work.codes
    negligible = max(NEGLIGIBLE, rounding / 10)
    for n in range(len(samples)):
        size, square, seen = np.int64(0), squares[n], observed[n]
        correlate_sample(work, columns, samples[n])
        bound = epsilon[n] * epsilon[n] * square
        _reset(work, columns, seen, weights[0])
        while size < sparsity[n] and square > bound:
            new = best_atom(work)
            if not work.scores[new] > negligible * np.sqrt(squares[n]):
                break
            work.weights[new] = 0
            take_atom(work, size, rows, columns, gram, seen, new)
            left = project_atom(work, size)
            if left == 0:
                continue
            step = work.correlations[new] / left
            append_atom(work, size, left)
            codes[size] = 0.0
            for i in range(size + 1):
                work.before[i] = codes[i]
                codes[i] -= step * work.steps[i] if i < size else -step
            size += 1
            square -= step * work.correlations[new]
            if bound > 0 and square <= bound + rounding * squares[n]:
                square = _fit(work, size, rows, seen, samples[n], True)
            if size < sparsity[n]:
                update_correlations(work, size, 0)
        _fit(work, size, rows, seen, samples[n], False)
        position = write_support(work, size, n, position, out)
    return 0


@leaf
def _nonnegative_chunk(
    rows, columns, gram, observed, samples, squares, signs, work, out, sparsity, epsilon, weights, rounding
):
    """Code samples like ``_omp_chunk``, with codes that are not negative; what the refit sets to zero may return."""
    position, codes = np.int64(0), work.codes
    negligible = max(NEGLIGIBLE, rounding / 10)
    for n in range(len(samples)):
        size, square, seen = np.int64(0), squares[n], observed[n]
        least, bound = negligible * np.sqrt(square), epsilon[n] * epsilon[n] * square
        correlate_sample(work, columns, samples[n])
        _reset(work, columns, seen, weights[0])
        for k in range(len(work.weights)):
            work.outside[k] = work.weights[k]
        for _ in range(MAX_ENTRIES * len(work.weights)):
            new = best_atom(work)
            if size >= sparsity[n] or square <= bound or not work.scores[new] > least:
                break
            work.weights[new] = 0
            take_atom(work, size, rows, columns, gram, seen, new)
            if project_atom(work, size) == 0:
                continue
            size, n_left = enter_atom(work, size, 0.0, 1.0)
            update_correlations(work, size, n_left)
            square = _fit(work, size, rows, seen, samples[n], True)
        for i in range(size):
            codes[i] = max(codes[i], 0.0)
        position = write_support(work, size, n, position, out)
    return 0


def omp(
    problem: ScaledProblem,
    sparsity: NDArray[np.integer],
    epsilon: Array,
    n_jobs: int | None,
    sparse: bool = False,
    positive: bool = False,
) -> Any:
    """Add, one at a time, the atom that correlates best with the residual, and refit all by least squares.

    Atoms are compared at unit norm. Atoms that depend on those in use are skipped. If codes must not be negative, only
    an atom of positive correlation is added, and the refit is nonnegative: codes that it sets to zero leave the
    support, and coding ends where no correlation is positive.

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
    positive : bool
        Whether codes must not be negative.

    Returns
    -------
    array or CSR array of shape (n_samples, n_components)

    References
    ----------
    R. Rubinstein, M. Zibulevsky and M. Elad, "Efficient implementation of the K-SVD algorithm using batch orthogonal
    matching pursuit", 2008. T. Nguyen, J. Idier, C. Soussen and E.-H. Djermoune, "Non-negative orthogonal greedy
    algorithms", 2019.
    """
    chunk, given = _nonnegative_chunk if positive else _omp_chunk, (sparsity, epsilon, *_constants(problem.rows))
    return encode_supports(chunk, problem, *given, sparse=sparse, n_jobs=n_jobs, positive=positive)[0]


def _constants(rows: Array) -> tuple[tuple[Array], float]:
    """Return weights that make norms one, in a tuple as they are not per sample, and the share that is rounding."""
    squares = np.square(rows, dtype=np.float64).sum(axis=1)
    weights = np.divide(1, np.sqrt(squares), out=np.zeros(len(rows)), where=squares > VANISHING)
    return (weights.astype(rows.dtype),), 100 * float(np.finfo(rows.dtype).eps)


def omp_of_order_one(
    data: Array, dictionary: Array, n_nonzero_coefs: int, workers: Workers, positive: bool = False
) -> Array:
    """Code like ``omp``, with less overhead: data and atoms must be float64 of order one.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features)
    n_nonzero_coefs : int
        At most n_features and n_components.
    workers : Workers
    positive : bool

    Returns
    -------
    array of shape (n_samples, n_components)
    """
    columns, gram = np.ascontiguousarray(dictionary.T), dictionary @ dictionary.T
    constants = _constants(dictionary)
    codes = np.zeros((len(data), len(dictionary)))
    code: Any = _nonnegative_chunk if positive else _omp_chunk
    chunk = MAX_CHUNK if workers.n_threads == 1 else CHUNK

    def task(i: int) -> None:
        samples = data[i * chunk : (i + 1) * chunk]
        shape = dictionary.shape[0], dictionary.shape[1]
        work, out = workspace(gram, *shape, np.float64, positive), empty_supports(len(samples), *shape)
        nothing = np.empty((len(samples), 0))
        given = np.square(samples).sum(axis=1), nothing, work, out
        sparsity, epsilon = np.full(len(samples), n_nonzero_coefs), np.zeros(len(samples))
        code(dictionary, columns, gram, nothing != 0, samples, *given, sparsity, epsilon, *constants)
        scatter(*out, codes[i * chunk : (i + 1) * chunk])

    workers.run(task, -(-len(data) // chunk))
    return codes
