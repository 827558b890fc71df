"""MOD, the method of optimal directions: all atoms jointly, by least squares."""

import numpy as np
from scipy.linalg.lapack import dposv

from roadict.updates.sparse import Array, energies, nonnegative_atoms, products

WELL_POSED = 1e-7
"""Minimum ratio of smallest to largest Cholesky pivot for solving the normal equations."""


def mod(
    data: Array, dictionary: Array, codes: Array, *, positive_code: bool = False, positive_dict: bool = False
) -> tuple[Array, Array]:
    """Update by least squares (Engan, Aase and Husøy 1999).

    Minimises ``‖data - codes @ dictionary‖_F²`` over the dictionary, then moves the norms of the atoms to their codes.
    If the codes do not determine the atoms, takes the solution of least norm; unused atoms do not change. If atoms must
    not be negative, this is nonnegative least squares, feature by feature, and exact too.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; those given are not. The codes' signs do not change anyway.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Examples
    --------
    >>> codes = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> dictionary, scaled = mod(codes @ [[0.0, 3.0], [1.0, 0.0]], np.eye(2), codes)
    >>> np.round(dictionary, 12) + 0.0, np.round(scaled[0], 12) + 0.0
    (array([[0., 1.],
           [1., 0.]]), array([6., 0.]))
    """
    samples, values = data.astype(np.float64, copy=False), codes.astype(np.float64, copy=False)
    if positive_dict:
        gram, cross = products(values, samples)
        atoms: Array = nonnegative_atoms(gram, cross, dictionary.astype(np.float64))
    else:
        atoms = _least_squares(values, samples)
    lengths = np.sqrt(energies(atoms))
    unused = lengths == 0
    if unused.any():
        atoms[unused] = dictionary[unused]
        return atoms / np.where(unused, 1, lengths)[:, None], values * lengths
    return atoms / lengths[:, None], values * lengths


def _least_squares(codes: Array, data: Array) -> Array:
    """Atoms of any norm; zero if unused."""
    gram, cross = products(codes, data)
    used = np.flatnonzero(np.diagonal(gram) > 0)
    atoms: Array = np.zeros_like(cross)
    if len(used) == 0:
        return atoms
    if len(used) < len(gram):
        gram, cross = gram[np.ix_(used, used)], cross[used]
    scale = 1 / np.sqrt(np.diagonal(gram))
    # LAPACK directly: for small problems SciPy's wrappers take longer than the solution
    factor, solution, failed = dposv(gram * scale * scale[:, None], scale[:, None] * cross, lower=1)
    pivots = np.diagonal(factor)
    if not failed and pivots.min() > WELL_POSED * pivots.max():
        atoms[used] = scale[:, None] * solution
    else:
        atoms[used] = np.linalg.lstsq(codes[:, used], data, rcond=None)[0]
    return atoms
