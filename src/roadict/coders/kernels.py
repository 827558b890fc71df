"""Kernels that several coders are made of. Loops over features skip those that were not observed."""

import numpy as np

from roadict.kernels import kernel

NEGLIGIBLE = 1e-13
"""Correlations of a residual below this share of the sample's norm are rounding."""
DEPENDENT = 1e-10
"""An atom of whose squared norm a smaller share is left outside the span of others is taken for dependent on them."""


@kernel
def split_features(observed, n, n_features):
    """Return the indices of the observed features of sample n, and of the others."""
    if observed.size > 0:
        return np.flatnonzero(observed[n]), np.flatnonzero(~observed[n])
    return np.arange(n_features), np.arange(0)


@kernel
def absolute_weight(alpha, largest):
    """Return a weight as it is, or from minus its share of the smallest one that makes all codes zero."""
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
    """Set out to one over the norm of every atom over the seen features, zero for atoms of no norm there."""
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
        out[k] = 1.0 / np.sqrt(out[k]) if out[k] > 1e-20 else 0.0


@kernel
def subtract_atoms(rows, support, values, sample, hidden, out):
    """Set out to sample - values @ rows[support], zero where hidden as the sample is; return its square."""
    out[:] = sample
    for i in range(len(support)):
        atom, value = rows[support[i]], values[i]
        for m in range(len(out)):
            out[m] -= value * atom[m]
    for m in hidden:
        out[m] = 0.0
    return dot(out, out)


@kernel
def grow_factor(factor, size, products):
    """Append a row to a Cholesky factor; products: of the new atom with the old ones and itself. False: dependent."""
    left = products[size]
    for i in range(size):
        value = products[i]
        for j in range(i):
            value -= factor[size, j] * factor[i, j]
        factor[size, i] = value / factor[i, i]
        left -= factor[size, i] * factor[size, i]
    if not left > DEPENDENT * products[size]:
        return False
    factor[size, size] = np.sqrt(left)
    return True


@kernel
def solve_factor(factor, size, target):
    """Solve factor @ factor.T @ x = target in place; x is zero where the factor has no pivot."""
    for i in range(size):
        value = target[i]
        for j in range(i):
            value -= factor[i, j] * target[j]
        target[i] = value / factor[i, i] if factor[i, i] > 0 else 0.0
    for i in range(size - 1, -1, -1):
        value = target[i]
        for j in range(i + 1, size):
            value -= factor[j, i] * target[j]
        target[i] = value / factor[i, i] if factor[i, i] > 0 else 0.0


@kernel
def best_atom(correlations, weights, taken):
    """Return the atom that is not taken and correlates best once of unit norm, and that correlation; (-1, 0): none."""
    best, most = -1, 0.0
    for k in range(len(correlations)):
        size = abs(correlations[k]) * weights[k]
        if size > most and not taken[k]:
            best, most = k, size
    return best, most


@kernel
def gram_among(rows, gram, hidden, atoms):
    """Return the Gram matrix of some atoms over the features that are not hidden."""
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
            for m in hidden:
                shown[m] = 0.0
            for j in range(i + 1):
                result[i, j] = result[j, i] = dot(shown, rows[atoms[j]])
    return result


@kernel
def top_atoms(sizes, count):
    """Return the indices of the largest sizes, at most so many, zeros left out; sizes is used up."""
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
    """Return the support and then those of the others that are not in it."""
    new = np.ones(n_components, np.bool_)
    new[support] = False
    return np.concatenate((support, more[new[more]]))


@kernel
def least_squares(rows, gram, hidden, correlations, support):
    """Return the values on a support that fit a sample best, from its correlations with all atoms.

    Atoms that depend on earlier ones of the support get zero.
    """
    among = gram_among(rows, gram, hidden, support)
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
