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
from roadict.engines.gpu.eigen import top_eigenvectors
from roadict.engines.gpu.layout import GRAM_TILE, Layout
from roadict.engines.gpu.wide import wide_eigenvectors, wide_grams
from roadict.formulation import RankOne, Sparse

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


class NearestRankOne:
    """B = v uᵀ with u the top eigenvector of B̂ᵀB̂ and v = B̂u (eq. X2-solution).

    Parameters
    ----------
    layout : Layout
    atoms, atoms_before : tensors of shape (problem, atom, feature)
        The batch's, which ``update`` overwrites.
    control : tensor of shape (problem, column)

    Attributes
    ----------
    shape : tuple of int
        Of an atom's sums over samples: its Gram matrix.
    """

    of_tile = _unconstrained_codes
    """v of a tile's samples, from the products of u with B̂."""

    def __init__(self, layout: Layout, atoms: torch.Tensor, atoms_before: torch.Tensor, control: torch.Tensor) -> None:
        self._layout, self._atoms, self._atoms_before, self._control = layout, atoms, atoms_before, control
        self.shape = (atoms.shape[-1], atoms.shape[-1])

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

    def of_blocks(self, b_hat: torch.Tensor) -> torch.Tensor:
        """Return v of all samples, shape (problem, atom, sample, 1)."""
        return b_hat @ self._atoms[..., None]

    def update(self, grams: torch.Tensor) -> None:
        """Replace the atoms of active problems, given the sums over samples."""
        n_problems, n_chunks, n_atoms, stride, _ = grams.shape
        if self._layout.wide:
            active = self._control[:, columns.ACTIVE, None, None] != 0
            new = wide_eigenvectors(grams[:, 0], self._atoms)
            self._atoms_before.copy_(torch.where(active, self._atoms, self._atoms_before))
            self._atoms.copy_(torch.where(active, new, self._atoms))
            return
        top_eigenvectors[(n_atoms, n_problems)](
            grams, self._atoms_before, self._atoms, self._control, n_atoms, n_chunks,
            STEP_TOLERANCE[self._atoms.itemsize],
            STRIDE=stride, PADDED=self._layout.padded, num_warps=self._layout.eigen_warps,
        )  # fmt: skip


SPARSE = {Sparse.GROUP_NORM: Shrinkage(_shrink_tile, _shrink_blocks)}
RANK_ONE = {RankOne.NEAREST: NearestRankOne}
