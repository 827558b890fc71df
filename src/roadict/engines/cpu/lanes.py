"""Gram matrices and top eigenvectors of many small matrices at once, one per SIMD lane.

A *bundle* is an array whose last axis runs over ``width`` atoms, one vector register of them (or a few). Products
of bundles then need no shuffles and no horizontal sums, whatever the size of the matrices.
"""

import numpy as np
from numpy.typing import NDArray

from roadict.aligned import LINE_BYTES
from roadict.engines.cpu.vectors import VECTOR_BYTES, load, prefetch, splat, store, vector_kernel
from roadict.kernels import inlined

Array = NDArray[np.floating]

TILE = 4
"""Rows and columns of Gram entries that a tile keeps in registers."""

DOMINANT = 0.75
"""Share of the trace at which the top eigenvalue is known to be the top one, and power steps settle in a few."""
MAX_SQUARINGS = 10
MAX_STEPS = 100


def padded(n_features: int) -> int:
    """Features rounded up to whole tiles."""
    return -(-n_features // TILE) * TILE


@inlined
def _add_row(gram, at, width, s0, s1, s2, s3):
    store(gram, at, load(gram, at) + s0)
    store(gram, at + width, load(gram, at + width) + s1)
    store(gram, at + 2 * width, load(gram, at + 2 * width) + s2)
    store(gram, at + 3 * width, load(gram, at + 3 * width) + s3)


@inlined
def add_gram(panel, gram, count, ahead, start, n_lines):
    """Add ``Σ_{n < count} panel[n, i] * panel[n, j]`` to ``gram[i, j]`` for all j ≤ i (and some above).

    Both arrays are contiguous: panel (block, padded, width) and gram (padded, padded, width). A tile's sixteen sums
    stay in registers over all n. The work needs no memory, so with every tile ``n_lines`` cache lines of ``ahead``
    are asked for, from flat index ``start`` on.
    """
    _, size, width = panel.shape
    zero = splat(panel.dtype.type(0))
    for lane in range(0, width, max(1, VECTOR_BYTES // panel.itemsize)):
        for i in range(0, size, TILE):
            for j in range(0, i + 1, TILE):
                s00, s01, s02, s03 = zero, zero, zero, zero
                s10, s11, s12, s13 = zero, zero, zero, zero
                s20, s21, s22, s23 = zero, zero, zero, zero
                s30, s31, s32, s33 = zero, zero, zero, zero
                for n in range(count):
                    row, column = (n * size + i) * width + lane, (n * size + j) * width + lane
                    a0, a1 = load(panel, row), load(panel, row + width)
                    a2, a3 = load(panel, row + 2 * width), load(panel, row + 3 * width)
                    b0, b1 = load(panel, column), load(panel, column + width)
                    b2, b3 = load(panel, column + 2 * width), load(panel, column + 3 * width)
                    s00, s01, s02, s03 = s00 + a0 * b0, s01 + a0 * b1, s02 + a0 * b2, s03 + a0 * b3
                    s10, s11, s12, s13 = s10 + a1 * b0, s11 + a1 * b1, s12 + a1 * b2, s13 + a1 * b3
                    s20, s21, s22, s23 = s20 + a2 * b0, s21 + a2 * b1, s22 + a2 * b2, s23 + a2 * b3
                    s30, s31, s32, s33 = s30 + a3 * b0, s31 + a3 * b1, s32 + a3 * b2, s33 + a3 * b3
                for _ in range(n_lines):
                    prefetch(ahead, start)
                    start += LINE_BYTES // ahead.itemsize
                at = (i * size + j) * width + lane
                _add_row(gram, at, width, s00, s01, s02, s03)
                _add_row(gram, at + size * width, width, s10, s11, s12, s13)
                _add_row(gram, at + 2 * size * width, width, s20, s21, s22, s23)
                _add_row(gram, at + 3 * size * width, width, s30, s31, s32, s33)


@inlined
def n_tiles(size):
    """Tiles that ``add_gram`` goes through, for panels of one vector's width."""
    rows = size // TILE
    return rows * (rows + 1) // 2


@inlined
def mirror(gram):
    """Copy the entries below the diagonal to those above."""
    size, _, width = gram.shape
    for i in range(size):
        for j in range(i):
            for w in range(width):
                gram[j, i, w] = gram[i, j, w]


@inlined
def _normalise_trace(gram, factor):
    """Divide each lane's matrix by its trace; ``factor`` receives one over the traces, 0 for zero matrices."""
    size, _, width = gram.shape
    for w in range(width):
        factor[w] = 0
    for i in range(size):
        for w in range(width):
            factor[w] += gram[i, i, w]
    for w in range(width):
        factor[w] = 1 / factor[w] if factor[w] > 0 else 0.0
    for i in range(size):
        for j in range(size):
            for w in range(width):
                gram[i, j, w] *= factor[w]


@inlined
def _power_step(gram, atoms, image, share, change, length):
    """Replace atoms by normalised ``gram @ atoms``; zero matrices keep theirs.

    ``share`` receives the Rayleigh quotients, ``change`` the squared lengths of the steps.
    """
    n_features, width = atoms.shape
    for w in range(width):
        share[w] = change[w] = length[w] = 0
    for i in range(n_features):
        for w in range(width):
            image[i, w] = 0
        for j in range(n_features):
            for w in range(width):
                image[i, w] += gram[i, j, w] * atoms[j, w]
        for w in range(width):
            share[w] += atoms[i, w] * image[i, w]
            length[w] += image[i, w] * image[i, w]
    for w in range(width):
        length[w] = 1 / np.sqrt(length[w]) if length[w] > 0 else 0.0
    for i in range(n_features):
        for w in range(width):
            moved = image[i, w] * length[w] if length[w] > 0 else atoms[i, w]
            step = moved - atoms[i, w]
            change[w] += step * step
            atoms[i, w] = moved


@vector_kernel
def _power_steps(gram, squared, atoms, image, lanes, tolerance):
    """Take the power steps of ``top_eigenvectors``; return whether all lanes have settled."""
    share, change, length, alive = lanes[0], lanes[1], lanes[2], lanes[3]
    size, _, width = gram.shape
    squarings, normalised, factor = 0, False, alive
    for _ in range(MAX_STEPS):
        if not normalised:
            _normalise_trace(gram, factor)
            normalised, factor = True, length
        _power_step(gram, atoms, image, share, change, length)
        unsure = False
        settled = True
        for w in range(width):
            if alive[w] > 0:
                unsure |= share[w] < DOMINANT
                settled &= change[w] <= tolerance * tolerance
        if settled and not unsure:
            return True
        if unsure and squarings < MAX_SQUARINGS:
            for i in range(size):
                for j in range(size):
                    for w in range(width):
                        squared[i, j, w] = 0
            add_gram(gram, squared, size, gram, 0, 0)
            mirror(squared)
            gram, squared, normalised = squared, gram, False
            squarings += 1
    return False


def top_eigenvectors(gram: Array, atoms: Array, tolerance: float) -> None:
    """Replace each atom by the top eigenvector of its positive semidefinite matrix.

    Power steps start from the atoms given. An eigenvector that is not the top one is a fixed point of them too, so
    a result is trusted only where its Rayleigh quotient is above 3/4 of the trace, as no other eigenvector's can
    then be. Where it is not, the matrix is squared, which squares all ratios of eigenvalues, and the steps go on;
    the few lanes that ten squarings do not separate go to LAPACK. A zero matrix leaves its atom alone.
    ``updates.ksvd.top_eigenvector`` is for one matrix at a time; its BLAS calls would change the last bits here.

    Parameters
    ----------
    gram : float64 array of shape (padded, padded, width), symmetric
    atoms : float64 array of shape (n_features, width)
    tolerance : float
        Length of the last power step.
    """
    lanes = np.empty((4, atoms.shape[1]))
    if _power_steps(gram.copy(), np.empty_like(gram), atoms, np.empty_like(atoms), lanes, tolerance):
        return
    n_features, (share, change, _, alive) = len(atoms), lanes
    for w in np.flatnonzero((alive > 0) & ((share < DOMINANT) | (change > tolerance * tolerance))):
        atoms[:, w] = np.linalg.eigh(gram[:n_features, :n_features, w])[1][:, -1]
