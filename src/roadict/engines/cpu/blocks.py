"""The steps of the sparse and the rank-one blocks on CPUs, by name."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.aligned import aligned_zeros
from roadict.engines.cpu import lanes, passes
from roadict.formulation import POWER_STEPS, RankOne, Sparse
from roadict.kernels import Workers

Array = NDArray[np.floating]

MIN_TASK = 30_000
"""Minimum number of Gram entries per task of a thread."""
STEP_TOLERANCE = {4: 1e-8, 8: 1e-13}
"""Length of the last power step, by itemsize."""


class NearestRankOne:
    """The atom of the nearest rank-one matrix is the top eigenvector of B̂ᵀB̂ (eq. X2-solution).

    Parameters
    ----------
    atoms : array of shape (n_bundles, n_features, width)
        The engine's, which ``update`` overwrites.
    n_atoms, n_chunks : int

    Attributes
    ----------
    n_numbers : int
        Size of what ranks exchange: the lower triangles of the Gram matrices.
    """

    least_code = -np.inf

    def __init__(self, atoms: Array, n_atoms: int, n_chunks: int) -> None:
        n_bundles, n_features, width = atoms.shape
        size = lanes.padded(n_features)
        self._grams = aligned_zeros((n_chunks, n_bundles, size, size, width), atoms.dtype)
        self.n_numbers = n_bundles * size * (size + 1) // 2 * width
        self._atoms, self._n_atoms = atoms, n_atoms
        n_groups = max(1, min(n_bundles, n_bundles * size * size * width // MIN_TASK))
        self._groups = np.array_split(np.arange(n_bundles), n_groups)

    def cleared(self, chunk: int) -> Array:
        """Return the Gram matrices of a chunk, set to zero: an output of a pass."""
        grams: Array = self._grams[chunk]
        grams.fill(0)
        return grams

    def sum_chunks(self, workers: Workers, total: Array) -> None:
        """Sum over the chunks into ``total``, of size ``n_numbers``."""
        halves = self._by_bundle(total)
        self._each(workers, lambda bundle: passes.sum_grams(self._grams, bundle, halves[bundle]))

    def update(self, workers: Workers, total: Array) -> None:
        """Replace the atoms."""
        halves = self._by_bundle(total)
        self._each(workers, lambda bundle: self._update_bundle(bundle, halves[bundle]))

    def _update_bundle(self, bundle: int, halves: Array) -> None:
        width = self._atoms.shape[-1]
        total = np.empty(self._grams.shape[2:], np.float64)
        passes.unpack_gram(halves, total)
        total[:, :, min(width, self._n_atoms - bundle * width) :] = 0  # padding: D is zero there, but F was added
        self._atoms[bundle] = self._improved(total, self._atoms[bundle].astype(np.float64))

    def _improved(self, gram: Array, atoms: Array) -> Array:
        """Return the atoms of a bundle; overwrites those given."""
        lanes.top_eigenvectors(gram, atoms, STEP_TOLERANCE[self._atoms.itemsize])
        return atoms

    def _by_bundle(self, total: Array) -> Array:
        return total.reshape(self._grams.shape[1], -1, self._grams.shape[-1])

    def _each(self, workers: Workers, task: Callable[[int], None]) -> None:
        def work(group: int) -> None:
            for bundle in self._groups[group]:
                task(int(bundle))

        workers.run(work, len(self._groups))


class PositiveAtoms(NearestRankOne):
    """Power steps with the Gram matrix, u = max(B̂ᵀB̂u, 0) / ‖·‖."""

    def _improved(self, gram: Array, atoms: Array) -> Array:
        n_features = len(atoms)
        for _ in range(POWER_STEPS):
            images = np.einsum("ijw,jw->iw", gram[:n_features, :n_features], atoms)
            atoms = _normalised(np.maximum(images, 0), atoms)
        return atoms


class PositiveCodes:
    """A power step for codes v ≥ 0: u = B̂ᵀ max(B̂u, 0) / ‖·‖. The image B̂ᵀ max(B̂u, 0) takes the place of B̂ᵀB̂.

    Parameters and attributes are those of ``NearestRankOne``.
    """

    least_code = 0.0
    positive_dict = False

    def __init__(self, atoms: Array, n_atoms: int, n_chunks: int) -> None:
        n_bundles, n_features, width = atoms.shape
        self._images = aligned_zeros((n_chunks, n_bundles, 1, lanes.padded(n_features), width), atoms.dtype)
        self._atoms, self._padding = atoms, n_bundles * width - n_atoms
        self.n_numbers = self._images[0].size

    def cleared(self, chunk: int) -> Array:
        """Return the images of a chunk, set to zero: an output of a pass."""
        images: Array = self._images[chunk]
        images.fill(0)
        return images

    def sum_chunks(self, workers: Workers, total: Array) -> None:
        """Sum over the chunks into ``total``, of size ``n_numbers``."""
        np.sum(self._images.reshape(len(self._images), -1), axis=0, dtype=np.float64, out=total)

    def update(self, workers: Workers, total: Array) -> None:
        """Replace the atoms."""
        n_bundles, n_features, width = self._atoms.shape
        images = total.reshape(n_bundles, -1, width)[:, :n_features].copy()
        images[-1, :, width - self._padding :] = 0
        if self.positive_dict:
            np.maximum(images, 0, out=images)
        self._atoms[:] = _normalised(images, self._atoms)


class Positive(PositiveCodes):
    """A power step for codes and atoms that are both nonnegative: u = max(B̂ᵀ max(B̂u, 0), 0) / ‖·‖."""

    positive_dict = True


def _normalised(images: Array, atoms: Array) -> Array:
    """Unit vectors along the images, shape (..., n_features, width); the atoms where an image is zero."""
    sizes = np.linalg.norm(images, axis=-2, keepdims=True)
    normalised: Array = np.divide(images, sizes, out=atoms.astype(np.float64), where=sizes > 0)
    return normalised


class Passes(NamedTuple):
    """Passes over a chunk, with a sparse step compiled in."""

    exact: Callable[..., None]
    inexact: Callable[..., None]


SPARSE = {Sparse.GROUP_NORM: Passes(passes.exact_chunk, passes.inexact_chunk)}
RANK_ONE: dict[RankOne, type[NearestRankOne] | type[PositiveCodes]] = {
    RankOne.NEAREST: NearestRankOne,
    RankOne.POSITIVE_CODES: PositiveCodes,
    RankOne.POSITIVE_ATOMS: PositiveAtoms,
    RankOne.POSITIVE: Positive,
}
