"""BLOTLESS: blocks of atoms with their codes, by total least squares."""

import numpy as np

from roadict.linalg import unit_rows
from roadict.updates.sparse import Array, energies, refit, residual

ROUNDS = 20
"""Total least squares steps per block."""
REGULAR = 1e-6
"""Smallest over largest singular value for which the block of codes counts as of full rank."""


def blotless(data: Array, dictionary: Array, codes: Array) -> tuple[Array, Array]:
    left = residual(data, dictionary, codes)
    dictionary, codes = dictionary.copy(), codes.copy()
    n_components, n_features = dictionary.shape
    n_blocks = -(-n_components // n_features)
    for block in range(n_blocks):
        members = np.arange(block, n_components, n_blocks)
        _update_block(left, dictionary, codes, members)
    return dictionary, codes


def _update_block(left, dictionary, codes, members):
    old_codes = codes[:, members]
    used = np.flatnonzero(old_codes.any(axis=1))
    active = members[old_codes.any(axis=0)]
    if len(active)==0: return
    values = codes[np.ix_(used, active)]
    target = left[used] + values @ dictionary[active]
    atoms = total_least_squares(target, dictionary[active], values)
    new = refit(target, atoms, values, 0.0)
    rest = residual(target, atoms, new)
    if energies(rest).sum() < energies(left[used]).sum():
        dictionary[active] = atoms
        codes[np.ix_(used, active)] = new
        left[used] = rest


def total_least_squares(target, atoms, codes, rounds=ROUNDS, mode=0):
    mask = codes != 0
    M = target.shape[1]
    best = atoms
    for _ in range(rounds):
        joint = np.concatenate([target, codes], axis=1)
        vals, vecs = np.linalg.eigh(joint.T @ joint)
        top = vecs[:, -codes.shape[1]:]
        VR, VX = top[:M], top[M:]
        s = np.linalg.svd(VX, compute_uv=False)
        if s[-1] < REGULAR * s[0]: break
        D = np.linalg.solve(VX.T, VR.T)          # (B, M): target ~ codes @ D
        if mode == 0:
            X = (joint @ top) @ VX.T
        else:
            X = target @ np.linalg.pinv(D)
        D, lengths = unit_rows(D)
        codes = np.where(mask, X * lengths, 0)
        best = D
    return best
