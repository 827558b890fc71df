"""Operations on sparse codes, shared by the updates: structure, residuals, products, refits on a fixed support."""

import numpy as np
from numpy.typing import NDArray

from roadict.kernels import kernel, solve_nonnegative, solve_positive

Array = NDArray[np.floating]
Indices = NDArray[np.int64]


@kernel
def csr_structure(codes):
    """Return the CSR structure: row i has its nonzeros in columns[starts[i]:starts[i + 1]]."""
    n_rows, n_columns = codes.shape
    starts = np.zeros(n_rows + 1, np.int64)
    for i in range(n_rows):
        count = 0
        for j in range(n_columns):
            count += codes[i, j] != 0
        starts[i + 1] = starts[i] + count
    columns = np.empty(starts[-1], np.int64)
    position = 0
    for i in range(n_rows):
        for j in range(n_columns):
            if codes[i, j] != 0:
                columns[position] = j
                position += 1
    return starts, columns


@kernel
def atom_usage(codes):
    """Return the number of samples that use each atom."""
    usage = np.zeros(codes.shape[1], np.int64)
    for n in range(len(codes)):
        for k in range(codes.shape[1]):
            usage[k] += codes[n, k] != 0
    return usage


@kernel
def csc_structure(codes):
    """Return the CSC structure: atom k is used by samples[starts[k]:starts[k + 1]], in increasing order."""
    n_samples, n_components = codes.shape
    row_starts, atoms = csr_structure(codes)
    starts = np.zeros(n_components + 1, np.int64)
    for position in range(len(atoms)):
        starts[atoms[position] + 1] += 1
    for k in range(n_components):
        starts[k + 1] += starts[k]
    following = starts.copy()
    samples = np.empty(len(atoms), np.int64)
    for n in range(n_samples):
        for position in range(row_starts[n], row_starts[n + 1]):
            k = atoms[position]
            samples[following[k]] = n
            following[k] += 1
    return starts, samples


@kernel
def residual(data, dictionary, codes):
    """Compute data - codes @ dictionary from the nonzeros of the codes."""
    difference = data.copy()
    n_samples, n_components = codes.shape
    for n in range(n_samples):
        row = difference[n]
        for k in range(n_components):
            value = codes[n, k]
            if value != 0:
                atom = dictionary[k]
                for m in range(len(row)):
                    row[m] -= value * atom[m]
    return difference


@kernel
def energies(rows):
    """Squared norm of every row."""
    sums = np.empty(len(rows))
    for n in range(len(rows)):
        row = rows[n]
        total = 0.0
        for m in range(len(row)):
            total += row[m] * row[m]
        sums[n] = total
    return sums


@kernel
def relative_change(before, after):
    """Compute ‖after - before‖_F / ‖after‖_F, 0 if after is zero."""
    difference, size = 0.0, 0.0
    for n in range(len(after)):
        old, new = before[n], after[n]
        for m in range(len(new)):
            difference += (new[m] - old[m]) ** 2
            size += new[m] * new[m]
    return np.sqrt(difference / size) if size > 0 else 0.0


@kernel
def products(codes, data):
    """Compute ``codes.T @ codes`` and ``codes.T @ data`` from the nonzeros of the codes."""
    n_samples, n_components = codes.shape
    gram = np.zeros((n_components, n_components))
    cross = np.zeros((n_components, data.shape[1]))
    starts, atoms = csr_structure(codes)
    for n in range(n_samples):
        sample = data[n]
        for i in range(starts[n], starts[n + 1]):
            k = atoms[i]
            value = codes[n, k]
            row = cross[k]
            for m in range(len(row)):
                row[m] += value * sample[m]
            for j in range(starts[n], starts[n + 1]):
                gram[k, atoms[j]] += value * codes[n, atoms[j]]
    return gram, cross


@kernel
def nonnegative_atoms(gram, cross, dictionary):
    """Minimise ``‖data - codes @ dictionary‖`` over nonnegative atoms, from given ones; unused ones become zero.

    gram, cross: the ``products`` of codes and data. Features are independent of each other.
    """
    atoms = np.zeros_like(cross)
    used = np.flatnonzero(np.diag(gram))
    among = np.ascontiguousarray(gram[used][:, used])
    for m in range(cross.shape[1]):
        found = solve_nonnegative(among, cross[:, m][used], dictionary[:, m][used])
        for i in range(len(used)):
            atoms[used[i], m] = found[i]
    return atoms


@kernel
def refit(data, dictionary, codes, ridge, positive):
    """Minimise ``‖data - codes @ dictionary‖² + ridge ‖codes‖²`` over the codes on their support.

    ``positive``: over codes that are not negative, from the given ones. Nearly dependent, redundant atoms get zero
    codes, and so may leave the support.
    """
    n_samples, n_components = codes.shape
    gram = dictionary @ dictionary.T
    starts, atoms = csr_structure(codes)
    fitted = np.zeros((n_samples, n_components))
    for n in range(n_samples):
        size = starts[n + 1] - starts[n]
        support = atoms[starts[n] : starts[n + 1]]
        matrix = np.empty((size, size))
        target = np.empty(size)
        for i in range(size):
            atom = dictionary[support[i]]
            total = 0.0
            for m in range(len(atom)):
                total += atom[m] * data[n, m]
            target[i] = total
            for j in range(size):
                matrix[i, j] = gram[support[i], support[j]]
            matrix[i, i] += ridge
        if positive:
            start = np.empty(size)
            for i in range(size):
                start[i] = codes[n, support[i]]
            target = solve_nonnegative(matrix, target, start)
        else:
            solve_positive(matrix, len(target), target)
        for i in range(size):
            fitted[n, support[i]] = target[i]
    return fitted
