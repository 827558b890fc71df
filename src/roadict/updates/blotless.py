"""BLOTLESS: blocks of atoms with their codes, by total least squares."""

import numpy as np
from numpy.typing import NDArray

from roadict.linalg import unit_rows
from roadict.updates.sparse import Array, energies, refit, residual

ROUNDS = 20
"""Total least squares steps per block."""
FULL_RANK = 1e-6
"""Minimum ratio of smallest to largest singular value for a block of full rank."""


def blotless(data: Array, dictionary: Array, codes: Array) -> tuple[Array, Array]:
    """Update by block total least squares (Yu, Dai, Cvetković and Zhu 2020).

    For blocks B of at most n_features atoms in turn, with R = data - Σ_{j∉B} codes_j atom_j on the samples that use
    the block, seeks atoms and codes with R = codes_B @ atoms_B and the support of codes_B. The product is bilinear, but
    ``[R, codes_B]`` has the rank of the block: its nearest matrix of that rank (an SVD) gives the atoms and, restricted
    to the support, new codes. A block retains its old atoms and codes unless the new ones, with codes refitted on their
    support, lower ``‖R - codes_B @ atoms_B‖_F²``: the data error never rises.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    """
    atoms, values = dictionary.astype(np.float64), codes.astype(np.float64)
    residuals = residual(data.astype(np.float64, copy=False), atoms, values)
    n_components, n_features = atoms.shape
    n_blocks = -(-n_components // n_features)
    for first in range(n_blocks):
        block = np.arange(first, n_components, n_blocks)
        _update_block(residuals, atoms, values, block[values[:, block].any(axis=0)])
    return atoms, values


def _update_block(residuals: Array, dictionary: Array, codes: Array, block: NDArray[np.intp]) -> None:
    """Update the atoms of a block, all of them in use, in place, with the residuals."""
    used = np.flatnonzero(codes[:, block].any(axis=1))
    if len(used) == 0:
        return
    values = codes[np.ix_(used, block)]
    target = residuals[used] + values @ dictionary[block]
    atoms = total_least_squares(target, dictionary[block], values)
    values = refit(target, atoms, values, 0.0, False)
    rest = residual(target, atoms, values)
    if energies(rest).sum() < energies(residuals[used]).sum():
        dictionary[block] = atoms
        codes[np.ix_(used, block)] = values
        residuals[used] = rest


def total_least_squares(target: Array, atoms: Array, codes: Array) -> Array:
    """Seek unit atoms with ``target = codes @ atoms`` for some codes on the support of the given ones.

    Repeats: the nearest matrix to ``[target, codes]`` of rank n_atoms is ``[target, codes] V V'`` with the top right
    singular vectors V = [V_t; V_c]; its parts satisfy target = codes @ atoms for atoms = (V_t V_c⁻¹)'; then the codes
    are restricted to their support. Stops if V_c is not of full rank.

    Parameters
    ----------
    target : array of shape (n_samples, n_features)
    atoms : array of shape (n_atoms, n_features)
        Returned if the first step fails.
    codes : array of shape (n_samples, n_atoms)

    Returns
    -------
    array of shape (n_atoms, n_features), rows of unit norm
    """
    n_features, n_atoms = target.shape[1], codes.shape[1]
    allowed = codes != 0
    for _ in range(ROUNDS):
        joint = np.concatenate([target, codes], axis=1)
        top = np.linalg.eigh(joint.T @ joint)[1][:, -n_atoms:]
        of_target, of_codes = top[:n_features], top[n_features:]
        sizes = np.linalg.svd(of_codes, compute_uv=False)
        if not sizes[-1] > FULL_RANK * sizes[0]:
            break
        found, lengths = unit_rows(np.linalg.solve(of_codes.T, of_target.T))
        if not lengths.all():
            break
        atoms = found
        codes = np.where(allowed, (joint @ top) @ of_codes.T * lengths, 0)
    return atoms
