"""MOD, the method of optimal directions: all atoms at once, by least squares."""

import numpy as np
import scipy.linalg

from roadict.linalg import unit_rows
from roadict.updates.sparse import Array, products

WELL_POSED = 1e-7
"""Smallest over largest Cholesky pivot for which the normal equations are trusted."""


def mod(data: Array, dictionary: Array, codes: Array) -> tuple[Array, Array]:
    """Update by least squares (Engan, Aase and Husøy 1999).

    Minimises ``‖data - codes @ dictionary‖_F²`` over the dictionary; the length of an atom then goes to its codes.
    Where the codes leave an atom undetermined, the solution of least norm is taken; an unused atom stays.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

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
    atoms, lengths = unit_rows(_least_squares(values, samples))
    gone = lengths == 0
    if gone.any():
        atoms[gone] = dictionary[gone]
    return atoms, values * lengths


def _least_squares(codes: Array, data: Array) -> Array:
    """Atoms of any length; zero where no sample uses one."""
    gram, cross = products(codes, data)
    used = np.flatnonzero(np.diagonal(gram) > 0)
    atoms: Array = np.zeros_like(cross)
    if len(used) == 0:
        return atoms
    if len(used) < len(gram):
        gram, cross = gram[np.ix_(used, used)], cross[used]
    scale = 1 / np.sqrt(np.diagonal(gram))
    try:
        factor = scipy.linalg.cho_factor(gram * scale * scale[:, None], lower=True, check_finite=False)
        pivots = np.diagonal(factor[0])
        posed = pivots.min() > WELL_POSED * pivots.max()
    except scipy.linalg.LinAlgError:
        posed = False
    if posed:
        atoms[used] = scale[:, None] * scipy.linalg.cho_solve(factor, scale[:, None] * cross, check_finite=False)
    else:
        atoms[used] = np.linalg.lstsq(codes[:, used], data, rcond=None)[0]
    return atoms
