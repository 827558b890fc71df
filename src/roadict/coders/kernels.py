"""Kernels shared by several coders. Loops over features skip missing ones."""

import numpy as np

from roadict.kernels import inlined, kernel, solve_factor

NEGLIGIBLE = 1e-13
"""Correlations of a residual below this share of the sample's norm are rounding errors."""
VANISHING = 1e-20
"""Atoms of a smaller squared norm over the observed features, of order one in all, are not used."""
DEPENDENT = 1e-10
"""An atom with less than this share of its squared norm outside the span of others counts as dependent on them."""


@kernel
def split_features(observed, n, n_features):
    """Return the indices of the observed and of the missing features of sample n."""
    if observed.size > 0:
        return np.flatnonzero(observed[n]), np.flatnonzero(~observed[n])
    return np.arange(n_features), np.arange(0)


@inlined
def absolute_weight(alpha, largest):
    """Return alpha; if negative, that share of the smallest weight that makes all codes zero."""
    return alpha if alpha >= 0 else -alpha * largest


@kernel
def correlate(columns, seen, values, out):
    """Set out to the inner products of all atoms with values over the seen features."""
    out[:] = 0.0
    for m in seen:
        value = values[m]
        column = columns[m]
        for k in range(len(out)):
            out[k] += value * column[k]


@kernel
def gram_row(rows, columns, gram, seen, k, out):
    """Set out to the inner products of all atoms with atom k over the seen features."""
    if gram.size > 0:
        out[:] = gram[k]
    else:
        correlate(columns, seen, rows[k], out)


@kernel
def dot(left, right):
    """Return the inner product."""
    total = 0.0
    for m in range(len(left)):
        total += left[m] * right[m]
    return total


@kernel
def atom_weights(columns, gram, seen, out):
    """Set out to one over the norm of every atom over the seen features, 0 for atoms that vanish there."""
    out[:] = 0.0
    if gram.size > 0:
        for k in range(len(out)):
            out[k] = gram[k, k]
    else:
        for m in seen:
            column = columns[m]
            for k in range(len(out)):
                out[k] += column[k] * column[k]
    for k in range(len(out)):
        out[k] = 1.0 / np.sqrt(out[k]) if out[k] > VANISHING else 0.0


@kernel
def subtract_atoms(rows, support, values, sample, missing, out):
    """Set out to sample - values @ rows[support], zero at missing features; return its squared norm."""
    out[:] = sample
    for i in range(len(support)):
        atom, value = rows[support[i]], values[i]
        for m in range(len(out)):
            out[m] -= value * atom[m]
    for m in missing:
        out[m] = 0.0
    return dot(out, out)


@kernel
def grow_factor(factor, size, products):
    """Append a row to a Cholesky factor, from the new atom's products with the others and itself; False: dependent."""
    pivot = products[size]
    for i in range(size):
        value = products[i]
        for j in range(i):
            value -= factor[size, j] * factor[i, j]
        factor[size, i] = value / factor[i, i]
        pivot -= factor[size, i] * factor[size, i]
    if not pivot > DEPENDENT * products[size]:
        return False
    factor[size, size] = np.sqrt(pivot)
    return True


@kernel
def best_atom(correlations, weights, taken):
    """Return the atom, not taken yet, of largest normalised correlation, and that correlation; (-1, 0): none."""
    best, largest = -1, 0.0
    for k in range(len(correlations)):
        size = abs(correlations[k]) * weights[k]
        if size > largest and not taken[k]:
            best, largest = k, size
    return best, largest


@kernel
def gram_among(rows, gram, missing, atoms):
    """Return the Gram matrix of the given atoms over the observed features."""
    size = len(atoms)
    result = np.empty((size, size))
    shown = np.empty(rows.shape[1])
    for i in range(size):
        if gram.size > 0:
            row = gram[atoms[i]]
            for j in range(size):
                result[i, j] = row[atoms[j]]
        else:
            shown[:] = rows[atoms[i]]
            for m in missing:
                shown[m] = 0.0
            for j in range(i + 1):
                result[i, j] = result[j, i] = dot(shown, rows[atoms[j]])
    return result


@kernel
def top_atoms(sizes, count):
    """Return the indices of the ``count`` largest sizes, without zeros; overwrites sizes."""
    chosen = np.empty(min(count, len(sizes)), np.int64)
    for i in range(len(chosen)):
        best = np.argmax(sizes)
        if not sizes[best] > 0:
            return chosen[:i]
        chosen[i] = best
        sizes[best] = 0.0
    return chosen


@kernel
def merged(support, more, n_components):
    """Return the support, followed by the atoms of ``more`` that are not in it."""
    new = np.ones(n_components, np.bool_)
    new[support] = False
    return np.concatenate((support, more[new[more]]))


@kernel
def least_squares(rows, gram, missing, correlations, support):
    """Return the least-squares codes on a support, from the sample's correlations with all atoms.

    Atoms that depend on earlier ones of the support get zero.
    """
    among = gram_among(rows, gram, missing, support)
    factor, products = np.empty_like(among), np.empty(len(support))
    kept, size = np.empty(len(support), np.int64), 0
    for j in range(len(support)):
        for i in range(size):
            products[i] = among[j, kept[i]]
        products[size] = among[j, j]
        if grow_factor(factor, size, products):
            kept[size] = j
            size += 1
    for i in range(size):
        products[i] = correlations[support[kept[i]]]
    solve_factor(factor, size, products)
    values = np.zeros(len(support))
    values[kept[:size]] = products[:size]
    return values
