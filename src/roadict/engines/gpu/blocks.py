"""The steps of the sparse and the rank-one blocks on a GPU, by name.

Each has two implementations: functions compiled into the kernels of ``passes``, and PyTorch operations for the inexact
form.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from roadict.engines import columns
from roadict.engines.gpu import passes
from roadict.engines.gpu.eigen import power_steps, top_eigenvectors
from roadict.engines.gpu.images import add_images, step_by_images
from roadict.engines.gpu.layout import GRAM_TILE, Layout
from roadict.engines.gpu.wide import wide_eigenvectors, wide_grams, wide_images, wide_power_steps
from roadict.formulation import POWER_STEPS, RankOne, Sparse

STEP_TOLERANCE = {4: 1e-8, 8: 1e-13}
"""Length of the last power step, by itemsize."""


@triton.jit
def _shrink_tile(square, threshold):  # type: ignore[no-untyped-def]
    """Return the factors of Â's columns from their squared norms, which are not zero, and the terms of Σ‖A‖."""
    norm = tl.sqrt(square)
    lives = norm > threshold
    scale = tl.where(lives, (norm - threshold) / tl.where(lives, norm, 1.0), 0.0)
    return scale, lives, scale * norm


def _shrink_blocks(a_hat: torch.Tensor, threshold: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the factors of Â's columns, and the terms of Σ‖A‖."""
    norm = torch.linalg.vector_norm(a_hat, dim=-1, keepdim=True)
    lives = norm > threshold
    scale = torch.where(lives, (norm - threshold) / torch.where(lives, norm, 1), 0)
    return scale, scale * norm


class Shrinkage(NamedTuple):
    """A sparse step that scales columns."""

    of_tile: Any
    of_blocks: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@triton.jit
def _unconstrained_codes(inner):  # type: ignore[no-untyped-def]
    """Return the codes v from the products of u with B̂: equal, as nothing (such as a sign) is imposed on them."""
    return inner


@triton.jit
def _nonnegative_codes(inner):  # type: ignore[no-untyped-def]
    """Return the codes v ≥ 0 from the products of u with B̂."""
    return tl.maximum(inner, 0.0)


class NearestRankOne:
    """B = v uᵀ with u the top eigenvector of B̂ᵀB̂ and v = B̂u (eq. X2-solution).

    Parameters
    ----------
    layout : Layout
    atoms, atoms_before : tensors of shape (problem, atom, feature)
        The batch's, which ``update`` overwrites.
    control : tensor of shape (problem, column)
    n_fixed : int
        Number of first atoms that stay.

    Attributes
    ----------
    shape : tuple of int
        Of an atom's sums over samples: its Gram matrix.
    """

    of_tile = _unconstrained_codes
    """v of a tile's samples, from the products of u with B̂."""

    def __init__(
        self, layout: Layout, atoms: torch.Tensor, atoms_before: torch.Tensor, control: torch.Tensor, n_fixed: int
    ) -> None:
        self._layout, self._atoms, self._atoms_before, self._control = layout, atoms, atoms_before, control
        n_problems, n_atoms, n_features = atoms.shape
        self._n_fixed, self._grid = n_fixed, (n_atoms - n_fixed, n_problems)
        self.shape: tuple[int, ...] = (n_features, n_features)

    def sum_tiles(self, mixed: torch.Tensor, shift: torch.Tensor, grams: torch.Tensor) -> None:
        """Sum over the samples of every chunk, where B̂ = D + F, into (problem, chunk, atom, feature, feature)."""
        layout, (n_problems, n_chunks, n_atoms, _, _) = self._layout, grams.shape
        if layout.wide:
            return wide_grams(mixed, shift, grams)
        passes.add_grams[(-(-n_atoms // 2), n_chunks, n_problems)](
            mixed, shift, self._control, grams, n_atoms, layout.rows, layout.chunk,
            STRIDE=layout.stride, MAIN=layout.main, REST=layout.rest, TILE=GRAM_TILE, num_warps=layout.gram_warps,
        )  # fmt: skip

    def sum_blocks(self, b_hat: torch.Tensor) -> torch.Tensor:
        """Sum over all samples, as one chunk."""
        return (b_hat.transpose(2, 3) @ b_hat)[:, None].contiguous()

    def of_blocks(self, inner: torch.Tensor) -> torch.Tensor:
        """Return v of all samples, from the products of u with B̂."""
        return inner

    def update(self, grams: torch.Tensor) -> None:
        """Replace the atoms of active problems, given the sums over samples."""
        if self._layout.wide:
            return self._replace(wide_eigenvectors(grams[:, 0], self._atoms))
        top_eigenvectors[self._grid](
            grams, self._atoms_before, self._atoms, self._control, grams.shape[2], self._n_fixed, grams.shape[1],
            STEP_TOLERANCE[self._atoms.itemsize],
            STRIDE=grams.shape[-1], PADDED=self._layout.padded, num_warps=self._layout.eigen_warps,
        )  # fmt: skip

    def _replace(self, new: torch.Tensor) -> None:
        """Replace the atoms of active problems by those of ``new``, except for fixed ones."""
        active = self._control[:, columns.ACTIVE, None, None] != 0
        self._atoms_before.copy_(torch.where(active, self._atoms, self._atoms_before))
        self._atoms[:, self._n_fixed :] = torch.where(active, new, self._atoms)[:, self._n_fixed :]


class PositiveAtoms(NearestRankOne):
    """Power steps with the Gram matrix, u = max(B̂ᵀB̂u, 0) / ‖·‖."""

    def update(self, grams: torch.Tensor) -> None:
        """Replace the atoms of active problems, given the sums over samples."""
        if self._layout.wide:
            return self._replace(wide_power_steps(grams[:, 0], self._atoms))
        power_steps[self._grid](
            grams, self._atoms_before, self._atoms, self._control, grams.shape[2], self._n_fixed, grams.shape[1],
            STRIDE=grams.shape[-1], PADDED=self._layout.padded, COUNT=POWER_STEPS, num_warps=self._layout.eigen_warps,
        )  # fmt: skip


class PositiveCodes(NearestRankOne):
    """A power step for codes v ≥ 0: u = B̂ᵀ max(B̂u, 0) / ‖·‖. The image B̂ᵀ max(B̂u, 0) takes the place of B̂ᵀB̂."""

    of_tile = _nonnegative_codes
    positive_dict = False

    def __init__(self, layout: Layout, atoms: torch.Tensor, *others: Any) -> None:
        super().__init__(layout, atoms, *others)
        self.shape = atoms.shape[-1:]

    def sum_tiles(self, mixed: torch.Tensor, shift: torch.Tensor, images: torch.Tensor) -> None:
        """Sum over the samples of every chunk, where B̂ = D + F, into (problem, chunk, atom, feature)."""
        layout, (n_problems, n_chunks, n_atoms, _) = self._layout, images.shape
        if layout.wide:
            return wide_images(mixed, shift, self._atoms, images)
        add_images[(-(-n_atoms // 2), n_chunks, n_problems)](
            mixed, shift, self._atoms, self._control, images, n_atoms, layout.rows, layout.chunk,
            STRIDE=layout.stride, WIDTH=layout.width, PARTS=layout.n_parts, TILE=layout.tile, PROJECT=self.of_tile,
            num_warps=layout.warps,
        )  # fmt: skip

    def sum_blocks(self, b_hat: torch.Tensor) -> torch.Tensor:
        """Sum over all samples, as one chunk."""
        codes = self.of_blocks(b_hat @ self._atoms[..., None])
        return (codes.transpose(2, 3) @ b_hat).transpose(1, 2).contiguous()

    def of_blocks(self, inner: torch.Tensor) -> torch.Tensor:
        """Return v of all samples, from the products of u with B̂."""
        return inner.clamp(min=0)

    def update(self, images: torch.Tensor) -> None:
        """Replace the atoms of active problems, given the sums over samples."""
        step_by_images[self._grid](
            images, self._atoms_before, self._atoms, self._control, images.shape[2], self._n_fixed, images.shape[1],
            STRIDE=images.shape[-1], PADDED=self._layout.padded, POSITIVE=self.positive_dict, num_warps=1,
        )  # fmt: skip


class Positive(PositiveCodes):
    """A power step for codes and atoms that are both nonnegative: u = max(B̂ᵀ max(B̂u, 0), 0) / ‖·‖."""

    positive_dict = True


SPARSE = {Sparse.GROUP_NORM: Shrinkage(_shrink_tile, _shrink_blocks)}
RANK_ONE = {
    RankOne.NEAREST: NearestRankOne,
    RankOne.POSITIVE_CODES: PositiveCodes,
    RankOne.POSITIVE_ATOMS: PositiveAtoms,
    RankOne.POSITIVE: Positive,
}
