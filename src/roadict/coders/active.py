"""Least squares on a support that gains and loses atoms one at a time, shared by the Lasso and OMP."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from roadict.aligned import aligned_zeros
from roadict.coders.kernels import DEPENDENT
from roadict.kernels import inlined, kernel

Array = NDArray[np.floating]


class Workspace(NamedTuple):
    """Arrays of one thread; those of a support have one more entry, for the atom that may join it.

    What is of the size of the support is float64 also for float32 problems: short loops gain little from float32.

    Attributes
    ----------
    lower, upper : array of shape (max_atoms, max_atoms)
        An orthonormal basis of the atoms of the support: row i has the coefficients of vector i on the first i + 1 of
        them. Then its transpose: ``upper @ lower`` is the inverse of the support's Gram matrix.
    atoms, slots, order : int array of shape (max(max_atoms + 1, n_features),)
        Atoms of the support, their rows in the table; 0, 1, 2...
    codes, before, products, halves, steps : array of shape (max_atoms + 1,)
        Codes of the support, those before a change, and scratch.
    factors, changed : array and int array of shape (n_features + 2 * max_atoms,)
        Factors in the dtype of the problem, and rows, of a product with the table.
    table : array of shape (n_components, n_components) or (max_atoms + 1, n_components)
        The Gram matrix, or its rows for the support over the observed features of a sample.
    start, correlations, weights, scores, outside : array of shape (n_components,)
        Correlations of the sample and of the residual with the atoms, weights by which the latter are compared (0:
        excluded), their products; weights that atoms get when they leave the support.
    bits : int array of shape (n_components,)
        The products as integers, which have the same order, and whose maximum vector instructions find.
    scratch : array of shape (7, max(n_components, n_features))
        For the coder that calls.
    dependent : float
        Share of the squared norm below which an atom counts as dependent.
    positive : bool
        Whether codes must not be negative.
    """

    lower: Array
    upper: Array
    atoms: NDArray[np.int64]
    slots: NDArray[np.int64]
    order: NDArray[np.int64]
    codes: Array
    before: Array
    products: Array
    halves: Array
    steps: Array
    factors: Array
    changed: NDArray[np.int64]
    table: Array
    start: Array
    correlations: Array
    weights: Array
    scores: Array
    outside: Array
    bits: NDArray[np.integer]
    scratch: Array
    dependent: float
    positive: bool


def workspace(gram: Array, n_components: int, n_features: int, dtype: DTypeLike, positive: bool = False) -> Workspace:
    """Allocate the arrays; with an empty Gram matrix, its rows are computed for every sample."""
    largest = min(n_components, n_features)
    lower, upper = np.zeros((2, largest, largest))
    atoms, slots, order = np.tile(np.arange(max(largest + 1, n_features)), (3, 1))
    codes, before, products, halves, steps = np.empty((5, largest + 1))
    start, correlations, weights, scores, outside = (aligned_zeros((n_components,), dtype) for _ in range(5))
    outside[:] = 1
    factors, changed = np.empty(n_features + 2 * largest, dtype), np.empty(n_features + 2 * largest, np.int64)
    table = gram if gram.size else aligned_zeros((largest + 1, n_components), dtype)
    bits = scores.view(f"i{scores.itemsize}")
    dependent = max(DEPENDENT, 20 * float(np.finfo(scores.dtype).eps))
    scratch = np.empty((7, max(n_components, n_features)))
    return Workspace(
        *(lower, upper, atoms, slots, order, codes, before, products, halves, steps, factors, changed, table),
        *(start, correlations, weights, scores, outside, bits, scratch, dependent, bool(positive)),
    )


# None of the kernels allocates arrays or calls NumPy on them, as this would multiply the time to compile. Sums are
# short, and ordered: what is called from several places remains a function, which is compiled once. Python calls coders
# only, never a leaf.
coder = partial(kernel, ordered=True, allocates=False, inline=False)
leaf = partial(coder, inner=True)


@partial(leaf, inline=True)
def combine(matrix, rows, factors, size, out, length):
    """Add factors[:size] @ matrix[rows[:size], :length] to out, four rows per pass over it."""
    for i in range(0, size - size % 4, 4):
        f0, f1, f2, f3 = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        r0, r1, r2, r3 = matrix[rows[i]], matrix[rows[i + 1]], matrix[rows[i + 2]], matrix[rows[i + 3]]
        for k in range(length):
            out[k] = (((out[k] + f0 * r0[k]) + f1 * r1[k]) + f2 * r2[k]) + f3 * r3[k]
    for i in range(size - size % 4, size):
        f0, r0 = factors[i], matrix[rows[i]]
        for k in range(length):
            out[k] += f0 * r0[k]


@inlined
def correlate_sample(work, columns, sample):
    """Set work.start to the products of a sample with the atoms; BLAS may sum in another order with other samples."""
    for k in range(len(work.start)):
        work.start[k] = 0
    combine(columns, work.order, sample, len(columns), work.start, len(work.start))


@partial(leaf, inline=True)
def best_atom(work):
    """Return the first atom of largest weighted correlation; writes all of these to work.scores.

    An atom whose code must not be negative scores zero for a negative correlation.
    """
    correlations, weights, scores, bits = work.correlations, work.weights, work.scores, work.bits
    for k in range(len(scores)):
        scores[k] = abs(correlations[k]) * weights[k]
    if work.positive:
        for k in range(len(scores)):
            if correlations[k] < 0:
                scores[k] = 0
    top, best = bits[0], len(bits)
    for k in range(len(bits)):
        top = max(top, bits[k])
    for k in range(len(bits)):
        best = min(best, k if bits[k] == top else len(bits))
    return best


@inlined
def forget_support(work):
    """Set the correlations to those of the sample, and all weights to one."""
    for k in range(len(work.start)):
        work.correlations[k] = work.start[k]
        work.weights[k] = 1


@inlined
def reset(work):
    """Set the correlations to those of the sample, and all weights to one; return the largest score."""
    forget_support(work)
    return work.scores[best_atom(work)]


@inlined
def correlate_atom(work, rows, columns, seen, atom, out):
    """Set out to the products of an atom with all atoms over the seen features; overwrites factors and changed.

    seen: whether each feature is; empty: all are.
    """
    n_seen = np.int64(0)
    for k in range(len(out)):
        out[k] = 0
    for m in range(len(columns)):
        if seen.size == 0 or seen[m]:
            work.factors[n_seen], work.changed[n_seen] = rows[atom, m], m
            n_seen += 1
    combine(columns, work.changed, work.factors, n_seen, out, len(out))


@inlined
def take_atom(work, size, rows, columns, gram, seen, atom):
    """Put an atom next to a support of this size, with its row of the Gram matrix over the seen features."""
    work.atoms[size] = atom
    if gram.size > 0:
        work.slots[size] = atom
    else:
        correlate_atom(work, rows, columns, seen, atom, work.table[work.slots[size]])


@leaf
def solve_support(work, size):
    """Set work.steps to the solution of the support's Gram matrix for work.products."""
    halves, steps, lower, upper = work.halves, work.steps, work.lower, work.upper
    for i in range(size):
        halves[i] = steps[i] = 0.0
    for i in range(size):
        factor = work.products[i]
        for k in range(i, size):
            halves[k] += factor * upper[i, k]
    for i in range(size):
        factor = halves[i]
        for k in range(i + 1):
            steps[k] += factor * lower[i, k]


@inlined
def project_atom(work, size):
    """Set work.steps to the coefficients of the next atom on the support; return its squared distance, 0: dependent."""
    row, atoms, products, halves = work.table[work.slots[size]], work.atoms, work.products, work.halves
    for i in range(size):
        products[i] = row[atoms[i]]
    solve_support(work, size)
    square, inside = row[atoms[size]], 0.0
    for i in range(size):
        inside += halves[i] * halves[i]
    left = square - inside
    return left if left > work.dependent * square and size < len(work.lower) else 0.0


@inlined
def append_atom(work, size, left):
    """Extend the basis by the next atom, from the results of ``project_atom``."""
    lower, upper, steps = work.lower, work.upper, work.steps
    last = 1 / np.sqrt(left)
    for i in range(size):
        lower[size, i] = upper[i, size] = -last * steps[i]
        lower[i, size] = upper[size, i] = 0.0
    lower[size, size] = upper[size, size] = last


@leaf
def remove_atom(work, size, place):
    """Remove an atom from the support and the basis; all after it, and the next atom, move up."""
    lower, upper = work.lower, work.upper
    # Rotations of two vectors each leave the atom to the last one only.
    for i in range(place + 1, size):
        cosine, sine = lower[i - 1, place], lower[i, place]
        norm = 1 / np.sqrt(cosine * cosine + sine * sine)
        cosine, sine = cosine * norm, sine * norm
        for j in range(i + 1):
            first, second = lower[i - 1, j], lower[i, j]
            lower[i - 1, j] = cosine * second - sine * first
            lower[i, j] = cosine * first + sine * second
    for i in range(place, size - 1):
        for j in range(place, i + 1):
            lower[i, j] = lower[i, j + 1]
        lower[i, i + 1] = 0.0
        for j in range(i + 1):
            upper[i, j] = 0.0
            upper[j, i] = lower[i, j]
    slot = work.slots[place]
    for i in range(place, size):
        work.atoms[i], work.slots[i] = work.atoms[i + 1], work.slots[i + 1]
        work.codes[i], work.before[i] = work.codes[i + 1], work.before[i + 1]
    work.slots[size] = slot


@inlined
def enter_atom(work, size, alpha, sign):
    """Add the next atom to the support and minimise over it; atoms whose codes reach zero leave.

    The correlations with the support have the size alpha, and retain it along the way: only that with the new atom
    shrinks. An atom that depends on the support replaces one of its atoms, which lowers Σ|codes|. A sign of 0: the atom
    only joins the support, if it is independent. Returns the size of the support and the number of atoms that have
    left, whose rows of the table and former codes are at the ends of work.changed and work.factors.
    """
    codes, before, steps = work.codes, work.before, work.steps
    n_left, excess = 0, sign * work.correlations[work.atoms[size]] - alpha
    codes[size] = 0.0
    for i in range(size + 1):
        before[i] = codes[i]
    while True:
        left = project_atom(work, size)
        if sign == 0 and left == 0:
            return size, n_left
        step = excess / left if left > 0 else np.inf
        leaving: Any = np.int64(-1)
        n_crossing = 0
        for i in range(size):
            n_crossing += not codes[i] * (codes[i] - sign * step * steps[i]) > 0
        if sign != 0 and (n_crossing > 0 or left == 0):
            for i in range(size):
                rate = sign * steps[i]
                if codes[i] * rate > 0 and abs(codes[i]) < step * abs(rate):
                    step, leaving = codes[i] / rate, i
            if step == np.inf:
                return size, n_left
        for i in range(size):
            codes[i] -= sign * step * steps[i]
        codes[size] += sign * step
        excess -= step * left
        if leaving < 0:
            append_atom(work, size, left)
            return size + 1, n_left
        n_left += 1
        work.factors[len(work.factors) - n_left] = before[leaving]
        work.changed[len(work.changed) - n_left] = work.slots[leaving]
        work.weights[work.atoms[leaving]] = work.outside[work.atoms[leaving]]
        remove_atom(work, size, leaving)
        size -= 1


@inlined
def update_correlations(work, size, n_left):
    """Subtract from the correlations what codes have changed: those of the support, and of atoms that have left it.

    Rows of the table and former codes of the latter are at the ends of work.changed and work.factors.
    """
    factors, changed = work.factors, work.changed
    for i in range(size):
        factors[i], changed[i] = work.before[i] - work.codes[i], work.slots[i]
    for i in range(n_left):
        factors[size + i], changed[size + i] = factors[len(factors) - 1 - i], changed[len(changed) - 1 - i]
    combine(work.table, changed, factors, size + n_left, work.correlations, len(work.correlations))


@inlined
def write_support(work, size, n, position, out):
    """Write the number of atoms of sample n, and from the given position on, its atoms and codes.

    Codes that must not be negative, but are by rounding, become zero.
    """
    counts, atoms, codes = out
    counts[n] = size
    for i in range(size):
        code = work.codes[i]
        atoms[position + i], codes[position + i] = work.atoms[i], 0.0 if work.positive and code < 0 else code
    return position + size


@coder
def scatter(counts, atoms, codes, out):
    """Write the codes of supports to a dense array of zeros; unlike an assignment of NumPy's, without the GIL."""
    position = 0
    for n in range(len(counts)):
        for i in range(position, position + counts[n]):
            out[n, atoms[i]] = codes[i]
        position += counts[n]
