"""Polish of codes: refit on their support, discard what becomes negligible."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.scaling import MAX_GRAM_ATOMS
from roadict.constraints import FREE, Constraints
from roadict.kernels import Workers, inlined, kernel, solve_nonnegative, solve_positive
from roadict.linalg import unit_rows

Array = NDArray[np.floating]

MAX_ROUNDS = 5
MAX_GROWTH = 2.0
"""A refit that multiplies Σ|codes| of a sample by more is rejected: its atoms are nearly dependent."""
CHUNK = 256
SAME = 1e-10
"""Atoms whose cosine differs from ±1 by less are duplicates."""


VALUES, REFITTED, SAMPLE, ATOM = range(4)
"""Rows of scratch: per atom of the support, then per feature."""


@inlined
def _begin(data, observed, codes, n, vectors, support):
    """Put support, codes and observed entries of a sample into scratch; return size, Σ|codes|, norm, entries seen."""
    size, total, square, n_seen = np.int64(0), 0.0, 0.0, np.int64(0)
    for k in range(codes.shape[1]):
        if codes[n, k] != 0:
            support[size], vectors[VALUES, size] = k, codes[n, k]
            size += 1
    for m in range(data.shape[1]):
        seen = observed.size == 0 or observed[n, m]
        vectors[SAMPLE, m] = data[n, m] if seen else 0.0
        n_seen += seen
    for i in range(size):
        total += abs(vectors[VALUES, i])
    for m in range(data.shape[1]):
        square += vectors[SAMPLE, m] * vectors[SAMPLE, m]
    return size, total, np.sqrt(square), n_seen


@inlined
def _fill_gram(dictionary, gram, observed, n, size, vectors, support, matrix):
    """Set the lower triangle of a matrix to the support's Gram matrix over the observed entries of a sample."""
    for i in range(size):
        if gram.size == 0:
            for m in range(dictionary.shape[1]):
                seen = observed.size == 0 or observed[n, m]
                vectors[ATOM, m] = dictionary[support[i], m] if seen else 0.0
        for j in range(i + 1):
            product = 0.0
            if gram.size > 0:
                product = gram[support[i], support[j]]
            else:
                for m in range(dictionary.shape[1]):
                    product += vectors[ATOM, m] * dictionary[support[j], m]
            matrix[i, j] = product


@inlined
def _fill_target(dictionary, alpha, size, vectors, support, target):
    """Set the target to the sample's products with the support, less alpha times the signs of the codes."""
    for i in range(size):
        product = 0.0
        for m in range(dictionary.shape[1]):
            product += dictionary[support[i], m] * vectors[SAMPLE, m]
        target[i] = product - alpha * np.sign(vectors[VALUES, i])


@inlined
def _fill_dual(dictionary, observed, n, size, vectors, support, matrix, target):
    """Set matrix and target to those of the smallest change of codes that fits: zero where nothing is observed."""
    n_features = dictionary.shape[1]
    for m in range(n_features):
        left = vectors[SAMPLE, m]
        for i in range(size):
            left -= vectors[VALUES, i] * dictionary[support[i], m]
        seen = observed.size == 0 or observed[n, m]
        target[m] = left if seen else 0.0
        for other in range(m + 1):
            product = 0.0
            if seen and (observed.size == 0 or observed[n, other]):
                for i in range(size):
                    product += dictionary[support[i], m] * dictionary[support[i], other]
            matrix[m, other] = product


@inlined
def _refit(dictionary, gram, observed, n, alpha, size, n_seen, vectors, support, matrix, target):
    """Minimise ½‖sample - codes @ atoms‖² + alpha Σ sign(old)·codes.

    More atoms than entries fit exactly: the result is the fit nearest to the old codes, or for alpha > 0 the old codes.
    """
    primal, n_features = size <= n_seen, dictionary.shape[1]
    if primal:
        _fill_gram(dictionary, gram, observed, n, size, vectors, support, matrix)
        _fill_target(dictionary, alpha, size, vectors, support, target)
    elif alpha == 0:
        _fill_dual(dictionary, observed, n, size, vectors, support, matrix, target)
    if primal or alpha == 0:
        solve_positive(matrix, size if primal else n_features, target)
    for i in range(size):
        value = target[i] if primal else vectors[VALUES, i]
        if not primal and alpha == 0:
            for m in range(n_features):
                value += dictionary[support[i], m] * target[m]
        vectors[REFITTED, i] = value


@inlined
def _shorten(alpha, cut, largest, size, vectors, support):
    """Accept refitted codes, unless their sum exceeds ``largest``, and discard negligible ones; return the new size."""
    total, kept = 0.0, np.int64(0)
    for i in range(size):
        total += abs(vectors[REFITTED, i])
    for i in range(size):
        old = vectors[VALUES, i]
        value = old if total > largest else vectors[REFITTED, i]
        if abs(value) > cut and (alpha == 0 or value * old > 0):
            support[kept], vectors[VALUES, kept] = support[i], value
            kept += 1
    return kept


@inlined
def _write(codes, n, size, vectors, support):
    for k in range(codes.shape[1]):
        codes[n, k] = 0
    for i in range(size):
        codes[n, support[i]] = vectors[VALUES, i]


@partial(kernel, allocates=False)
def _polish_chunk(dictionary, gram, data, observed, codes, alpha, negligible, vectors, support, matrix, target):
    for n in range(len(data)):
        size, before, norm, n_seen = _begin(data, observed, codes, n, vectors, support)
        for _ in range(MAX_ROUNDS):
            if size == 0:
                break
            _refit(dictionary, gram, observed, n, alpha, size, n_seen, vectors, support, matrix, target)
            cut = negligible * norm / np.sqrt(size)
            former, size = size, _shorten(alpha, cut, MAX_GROWTH * before, size, vectors, support)
            if size == former:
                break
        _write(codes, n, size, vectors, support)


@kernel
def _nonnegative_chunk(dictionary, gram, data, observed, codes, alpha, negligible, vectors, support, matrix, target):
    """Polish like ``_polish_chunk``, by nonnegative least squares; a matrix and a target for all atoms."""
    for n in range(len(data)):
        size, before, norm, _ = _begin(data, observed, codes, n, vectors, support)
        for _ in range(MAX_ROUNDS):
            if size == 0:
                break
            _fill_gram(dictionary, gram, observed, n, size, vectors, support, matrix)
            for i in range(size):
                for j in range(i):
                    matrix[j, i] = matrix[i, j]
            _fill_target(dictionary, alpha, size, vectors, support, target)
            refitted = solve_nonnegative(matrix[:size, :size], target[:size], vectors[VALUES, :size])
            for i in range(size):
                vectors[REFITTED, i] = refitted[i]
            cut = negligible * norm / np.sqrt(size)
            former, size = size, _shorten(alpha, cut, MAX_GROWTH * before, size, vectors, support)
            if size == former:
                break
        _write(codes, n, size, vectors, support)


def polish_codes(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    codes: Array,
    *,
    alpha: float = 0.0,
    negligible: float = 1e-3,
    positive: bool = False,
    n_jobs: int | None = None,
) -> Array:
    """Refit every sample's codes on their support and discard coefficients that become negligible.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    observed : bool array like data, or None
        Entries to fit; None: all.
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
    alpha : float
        Lasso weight of the refit; 0: least squares.
    negligible : float
        Maximum share of a sample's norm in the coefficients discarded per round (of up to five), as if atoms were
        orthogonal.
    positive : bool
        Whether codes must not be negative: nonnegative least squares; negative codes given count as zero.
    n_jobs : int or None
        Threads.

    Returns
    -------
    array of shape (n_samples, n_components)

    Examples
    --------
    >>> dictionary = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> polish_codes(np.array([[2.0, 0.0]]), None, dictionary, np.array([[1.8, 0.1]]))
    array([[2., 0.]])
    """
    # Kernels are compiled for one layout: C order.
    atoms, samples = dictionary.astype(np.float64, order="C"), data.astype(np.float64, order="C")
    mask = np.empty((0, 0), bool) if observed is None else np.ascontiguousarray(observed)
    polished = codes.astype(np.float64, order="C")
    if positive:
        np.maximum(polished, 0.0, out=polished)
    n_components, n_features = atoms.shape
    has_gram = observed is None and n_components <= MAX_GRAM_ATOMS
    gram = atoms @ atoms.T if has_gram else np.empty((0, 0))
    polish: Any = _nonnegative_chunk if positive else _polish_chunk
    most = int((polished != 0).sum(axis=1).max(initial=0))
    size = most if positive or (observed is None and most <= n_features) else n_features
    workers = Workers(n_jobs)

    def task(chunk: int) -> Any:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        vectors, support = np.empty((4, max(n_components, n_features))), np.empty(n_components, np.int64)
        scratch = vectors, support, np.empty((size, size)), np.empty(size)
        polish(atoms, gram, samples[part], mask[part], polished[part], float(alpha), float(negligible), *scratch)

    try:
        workers.run(task, -(-len(data) // CHUNK))
    finally:
        workers.close()
    return polished.astype(codes.dtype)


def merge_duplicates(dictionary: Array, codes: Array, constraints: Constraints = FREE) -> Array:
    """Add the codes of duplicate atoms, up to sign, to those of the first; the duplicates become unused.

    With nonnegative codes atoms of opposite sign are no duplicates. Known atoms are not merged with each other.

    Examples
    --------
    >>> merge_duplicates(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.array([[2.0, 1.0, 0.5]]))
    array([[1.5, 1. , 0. ]])
    """
    atoms, _ = unit_rows(dictionary)  # in float64: norms of float32 atoms differ from one by more than SAME
    cosines = np.triu(atoms @ atoms.T, 1)
    pairs = np.argwhere(constraints.likeness(cosines) > 1 - SAME)
    pairs = pairs[pairs[:, 1] >= constraints.n_fixed]
    if not len(pairs):
        return codes
    merged = codes.copy()
    for first, second in pairs:
        merged[:, first] += np.sign(cosines[first, second]).astype(codes.dtype) * merged[:, second]
        merged[:, second] = 0
    return merged
