"""Polish of codes: refit on their support, discard what becomes negligible."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import FREE, Constraints
from roadict.kernels import Workers, kernel, solve_nonnegative, solve_positive
from roadict.linalg import unit_rows

Array = NDArray[np.floating]

MAX_ROUNDS = 5
MAX_GROWTH = 2.0
"""A refit that multiplies Σ|codes| of a sample by more is rejected: its atoms are nearly dependent."""
CHUNK = 256
SAME = 1e-10
"""Atoms whose cosine differs from ±1 by less are duplicates."""


@kernel
def _refit(atoms, sample, codes, alpha, positive):
    """Minimise ½‖sample - codes @ atoms‖² + alpha Σ sign(old)·codes; ``positive``: over codes that are not negative.

    More atoms than entries fit exactly, unless codes must not be negative: returns the fit nearest to the old codes, or
    for alpha > 0 the old codes.
    """
    size, n_features = atoms.shape
    if positive:
        return solve_nonnegative(atoms @ atoms.T, atoms @ sample - alpha, codes)
    if size <= n_features:
        target = atoms @ sample - alpha * np.sign(codes)
        solve_positive(atoms @ atoms.T, target)
        return target
    if alpha > 0:
        return codes
    correction = sample - codes @ atoms
    solve_positive(atoms.T @ atoms, correction)
    return codes + atoms @ correction


@kernel
def _polish_sample(dictionary, sample, codes, alpha, negligible, positive):
    """Polish the codes of one sample in place; dictionary and sample hold observed entries only."""
    norm = np.sqrt(np.sum(sample * sample))
    if positive:
        codes[:] = np.maximum(codes, 0.0)
    before = np.sum(np.abs(codes))
    support = np.flatnonzero(codes)
    values = codes[support]
    for _ in range(MAX_ROUNDS):
        if len(support) == 0:
            break
        refitted = _refit(dictionary[support], sample, values, alpha, positive)
        if np.sum(np.abs(refitted)) > MAX_GROWTH * before:
            refitted = values
        cut = negligible * norm / np.sqrt(len(support))
        kept = np.abs(refitted) > cut
        if alpha > 0:
            kept &= refitted * values > 0
        support, values = support[kept], refitted[kept]
        if np.all(kept):
            break
    codes[:] = 0
    for i in range(len(support)):
        codes[support[i]] = values[i]


@kernel
def _polish_chunk(dictionary, data, observed, codes, alpha, negligible, positive):
    for n in range(len(data)):
        given = codes[n], alpha, negligible, positive
        if observed.size > 0:
            seen = np.flatnonzero(observed[n])
            _polish_sample(np.ascontiguousarray(dictionary[:, seen]), data[n][seen], *given)
        else:
            _polish_sample(dictionary, data[n], *given)


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
    atoms, samples = dictionary.astype(np.float64), data.astype(np.float64)
    mask = np.empty((0, 0), bool) if observed is None else observed
    polished = codes.astype(np.float64)
    workers = Workers(n_jobs)

    def task(chunk: int) -> Any:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        _polish_chunk(atoms, samples[part], mask[part], polished[part], float(alpha), negligible, positive)

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
