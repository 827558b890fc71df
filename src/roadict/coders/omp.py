"""Orthogonal matching pursuit as Batch-OMP: correlations from Gram rows, a growing Cholesky factor."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.active import (
    best_atom,
    coder,
    correlate_atom,
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
from roadict.coders.kernels import NEGLIGIBLE, VANISHING
from roadict.coders.scaling import CHUNK, MAX_CHUNK, ScaledProblem, empty_supports, encode_supports
from roadict.kernels import Workers, inlined

Array = NDArray[np.floating]

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


@inlined
def _start_image(work, size, rows, columns, gram, seen, atom):
    """Set the next image to the products of an atom with all atoms, over the seen features."""
    image = work.table[size]
    if gram.size > 0:
        for k in range(len(image)):
            image[k] = gram[atom, k]
    else:
        correlate_atom(work, rows, columns, seen, atom, image)


@leaf
def _solve_lower(work, size):
    """Overwrite work.products with the solution of the triangular system of the support's Cholesky factor."""
    products, upper = work.products, work.upper
    for i in range(size):
        products[i] *= upper[i, i]
        value = products[i]
        for j in range(i + 1, size):
            products[j] -= value * upper[i, j]


@inlined
def _extend(work, size, atom):
    """Extend the Cholesky factor of the support's Gram matrix by an atom; return its squared distance, 0: dependent.

    work.upper is the transposed factor, and work.lower the factor, both with one over its diagonal.
    """
    products, image = work.products, work.table[size]
    for i in range(size):
        products[i] = image[work.atoms[i]]
    _solve_lower(work, size)
    square, inside = image[atom], 0.0
    for i in range(size):
        work.lower[size, i] = work.upper[i, size] = products[i]
        inside += products[i] * products[i]
    left = square - inside
    if not left > work.dependent * square or size == len(work.lower):
        return 0.0
    work.atoms[size] = atom
    work.lower[size, size] = work.upper[size, size] = 1 / np.sqrt(left)
    return left


@inlined
def _subtract_projection(work, size, step):
    """Turn the next image into that of the next vector of the basis, and subtract it, times step, from correlations.

    The basis is orthonormal, and an image has its products with all atoms. Four rows per pass, with zeros at the end.
    """
    table, factors = work.table, work.factors
    out, last = table[size], work.upper[size, size]
    for i in range(size):
        factors[i] = -last * work.lower[size, i]
    factors[size], factors[size + 1], factors[size + 2] = 0, 0, 0
    factors[size + 3], factors[size + 4] = last, -step
    scale, change = factors[size + 3], factors[size + 4]  # in the dtype of the problem
    for k in range(len(out)):
        out[k] *= scale
    for i in range(0, size, 4):
        f0, f1, f2, f3 = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        r0, r1 = table[i], table[min(i + 1, size - 1)]
        r2, r3 = table[min(i + 2, size - 1)], table[min(i + 3, size - 1)]
        for k in range(len(out)):
            out[k] = (((out[k] + f0 * r0[k]) + f1 * r1[k]) + f2 * r2[k]) + f3 * r3[k]
    for k in range(len(out)):
        work.correlations[k] += change * out[k]


@inlined
def _fit(work, size):
    """Set the codes to those of least squares, free of earlier rounding errors, by the Cholesky factor."""
    codes = work.codes
    for i in range(size):
        work.products[i] = work.start[work.atoms[i]]
    _solve_lower(work, size)
    for i in range(size):
        codes[i] = work.products[i]
    for i in range(size - 1, -1, -1):
        codes[i] *= work.lower[i, i]
        value = codes[i]
        for j in range(i):
            codes[j] -= value * work.lower[i, j]


@leaf
def _misfit(work, size, rows, seen, sample):
    """Return the squared norm of what the support leaves of the sample."""
    square = 0.0
    for m in range(len(sample)):
        left = 0.0 + sample[m]
        for i in range(size):
            left -= work.codes[i] * rows[work.atoms[i], m]
        square += left * left if seen.size == 0 or seen[m] else 0.0
    return square


@coder
def _omp_chunk(rows, columns, gram, observed, samples, squares, signs, work, out, sparsity, epsilon, weights, rounding):
    position = np.int64(0)
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
            _start_image(work, size, rows, columns, gram, seen, new)
            if _extend(work, size, new) == 0:
                continue
            step = work.correlations[new] * work.upper[size, size]
            square -= step * step
            if size + 1 < sparsity[n]:
                _subtract_projection(work, size, step)
            size += 1
            if bound > 0 and square <= bound + rounding * squares[n]:
                _fit(work, size)
                square = _misfit(work, size, rows, seen, samples[n])
        _fit(work, size)
        position = write_support(work, size, n, position, out)
    return 0


@coder
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
            for i in range(size):
                work.products[i] = work.start[work.atoms[i]]
            solve_support(work, size)
            for i in range(size):
                codes[i] = work.steps[i]
            square = _misfit(work, size, rows, seen, samples[n])
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
    return encode_supports(
        chunk, problem, *given, sparse=sparse, n_jobs=n_jobs, positive=positive, own_table=not positive
    )[0]


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
        table = gram if positive else np.empty((0, 0))
        work, out = workspace(table, *shape, np.float64, positive), empty_supports(len(samples), *shape)
        nothing = np.empty((len(samples), 0))
        given = np.square(samples).sum(axis=1), nothing, work, out
        sparsity, epsilon = np.full(len(samples), n_nonzero_coefs), np.zeros(len(samples))
        code(dictionary, columns, gram, nothing != 0, samples, *given, sparsity, epsilon, *constants)
        scatter(*out, codes[i * chunk : (i + 1) * chunk])

    workers.run(task, -(-len(data) // chunk))
    return codes
