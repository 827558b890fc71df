"""K-SVD: each atom with its codes in turn, by the nearest rank-one matrix on the atom's samples."""

import numpy as np

from roadict.kernels import kernel
from roadict.updates.sparse import Array, csc_structure, residual

DOMINANT = 0.75
"""Share of the trace above which an eigenvalue is the top one, and power steps shrink the rest to a third."""
PATIENCE = 3
"""Power steps after which a matrix without a dominant eigenvector is squared."""
MAX_STEPS = 60
MAX_SQUARINGS = 10
CONVERGED = 1e-28
"""Squared change of a unit vector below which it has converged."""
MAX_NONNEGATIVE_STEPS = 50
"""Maximum number of alternations for an atom and codes that must not be negative."""


@kernel
def top_eigenvector(matrix, start):
    """Maximise ``v @ matrix @ v`` over unit vectors v, for a positive semidefinite matrix.

    Power steps, accepted if their Rayleigh quotient exceeds 3/4 of the trace, as that of only one eigenvector can.
    Otherwise the matrix is squared, which preserves its eigenvectors; LAPACK resolves near ties.
    ``lanes.top_eigenvectors`` of the CPU engine does the same for a vector of atoms at once. K-SVD has one matrix at a
    time, whose products are BLAS calls: 8 µs instead of 97 µs for 34 features.
    """
    size = len(matrix)
    vector = start.copy()
    trace = np.trace(matrix)
    if not trace > 0:
        return vector
    power = matrix / trace
    for _ in range(MAX_SQUARINGS):
        for step in range(MAX_STEPS):
            image = power @ vector
            quotient = np.sum(image * vector)
            length = np.sqrt(np.sum(image * image))
            if length <= 0 or (step >= PATIENCE and quotient <= DOMINANT):
                break
            image /= length
            change = np.sum((image - vector) ** 2)
            vector = image
            if quotient > DOMINANT and change < CONVERGED:
                return vector
        power = power @ power
        power /= np.trace(power)
        largest = 0
        for i in range(size):
            if power[i, i] > power[largest, largest]:
                largest = i
        vector = power[largest] / np.sqrt(np.sum(power[largest] ** 2))
    return np.ascontiguousarray(np.linalg.eigh(matrix)[1][:, -1])


@kernel
def _exact_atom(restricted, atom, values):
    """The top right singular vector, from the smaller of the two Gram matrices."""
    n_used, n_features = restricted.shape
    if n_used >= n_features:
        return top_eigenvector(restricted.T @ restricted, atom)
    size = np.sqrt(np.sum(values * values))
    left = top_eigenvector(restricted @ restricted.T, values / size)
    image = left @ restricted
    length = np.sqrt(np.sum(image * image))
    return image / length if length > 0 else atom


@kernel
def _approximate_atom(restricted, atom, values):
    """One power step: the best atom for the current codes."""
    image = values @ restricted
    length = np.sqrt(np.sum(image * image))
    return image / length if length > 0 else atom


@kernel
def _nonnegative_atom(restricted, atom, values, positive_code, positive_dict, n_steps):
    """The best atom for the current codes, then the best codes for it, in turn; neither step raises the error."""
    for _ in range(n_steps):
        image = values @ restricted
        if positive_dict:
            image = np.maximum(image, 0.0)
        length = np.sqrt(np.sum(image * image))
        if not length > 0:
            break
        image /= length
        change = np.sum((image - atom) ** 2)
        atom, values = image, restricted @ image
        if positive_code:
            values = np.maximum(values, 0.0)
        if change < CONVERGED:
            break
    return atom


@kernel
def _sweep(residuals, dictionary, codes, exact, positive_code, positive_dict):
    """Update all atoms, codes and residuals in place."""
    starts, samples = csc_structure(codes)
    for k in range(len(dictionary)):
        used = samples[starts[k] : starts[k + 1]]
        if len(used) == 0:
            continue
        atom = dictionary[k].copy()
        values = np.empty(len(used))
        restricted = np.empty((len(used), residuals.shape[1]))
        for i in range(len(used)):
            values[i] = codes[used[i], k]
            for m in range(len(atom)):
                restricted[i, m] = residuals[used[i], m] + values[i] * atom[m]
        if positive_code or positive_dict:
            n_steps = MAX_NONNEGATIVE_STEPS if exact else 1
            atom = _nonnegative_atom(restricted, atom, values, positive_code, positive_dict, n_steps)
        else:
            atom = _exact_atom(restricted, atom, values) if exact else _approximate_atom(restricted, atom, values)
        values = restricted @ atom
        if positive_code:
            values = np.maximum(values, 0.0)
        dictionary[k] = atom
        for i in range(len(used)):
            codes[used[i], k] = values[i]
            for m in range(len(atom)):
                residuals[used[i], m] = restricted[i, m] - values[i] * atom[m]


def _update(
    data: Array, dictionary: Array, codes: Array, exact: bool, positive_code: bool, positive_dict: bool
) -> tuple[Array, Array]:
    atoms, values = dictionary.astype(np.float64), codes.astype(np.float64)
    samples = data.astype(np.float64, copy=False)
    _sweep(residual(samples, atoms, values), atoms, values, exact, positive_code, positive_dict)
    return atoms, values


def ksvd(
    data: Array, dictionary: Array, codes: Array, *, positive_code: bool = False, positive_dict: bool = False
) -> tuple[Array, Array]:
    """Update by K-SVD (Aharon, Elad and Bruckstein 2006).

    For every atom k in turn, with E = data - Σ_{j≠k} codes_j atom_j on the samples that use atom k, minimises
    ``‖E - outer(codes_k, atom_k)‖_F²`` over unit atoms and codes: the top singular pair of E. The data error never
    rises, and no code leaves its support. If codes or atoms must not be negative, the pair is a local minimum instead,
    reached from the given one by least squares over the atom and over the codes in turn, without what is negative, as
    in nonnegative K-SVD (Aharon, Elad and Bruckstein 2005). Nor does the error rise then; codes may become zero.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; those given are not.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Examples
    --------
    >>> data = np.outer([1.0, 2.0, -1.0], [0.6, 0.8])
    >>> dictionary, codes = ksvd(data, np.array([[1.0, 0.0]]), np.ones((3, 1)))
    >>> np.round(codes @ dictionary - data, 12).any()
    np.False_
    """
    return _update(data, dictionary, codes, True, positive_code, positive_dict)


def approximate_ksvd(
    data: Array, dictionary: Array, codes: Array, *, positive_code: bool = False, positive_dict: bool = False
) -> tuple[Array, Array]:
    """Update as ``ksvd`` does, with one power step in place of the SVD (Rubinstein, Zibulevsky and Elad 2008).

    For every atom k in turn, minimises ``‖E - outer(codes_k, atom_k)‖_F²`` over the unit atom, then over its codes.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; those given are not.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    """
    return _update(data, dictionary, codes, False, positive_code, positive_dict)
