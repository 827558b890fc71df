"""A batch of problems of one shape on a GPU: every form with S1 = S2 = 0, by the kernels of ``passes``."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roadict.engines import columns
from roadict.engines.blocks import steps_of
from roadict.engines.gpu import passes
from roadict.engines.gpu.blocks import RANK_ONE, SPARSE
from roadict.engines.gpu.layout import SAMPLE_BLOCK, Layout
from roadict.formulation import Problem
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.state import RunState

Array = NDArray[np.floating]

RANK_BLOCK = 256
"""Numbers per program of ``sum_for_ranks``."""
MAX_REPORTS = 16
"""Maximum number of iterations per call: the reports that fit on the device."""


class ExactBatch:
    """State and iterations of ``n_problems`` problems like ``pattern``; ``load`` fills a slot."""

    def __init__(
        self, pattern: Problem, n_atoms: int, n_problems: int, device: torch.device, comm: Comm = SERIAL
    ) -> None:
        self._shrinkage, rank_one_step = steps_of(pattern.formulation, SPARSE, RANK_ONE, "cuda")
        self.n_samples, self.n_features = pattern.data.shape
        self.n_atoms, self.n_problems = n_atoms, n_problems
        self.layout = layout = Layout.of(self.n_samples, self.n_features, n_atoms, pattern.data.itemsize)
        self.device, self.dtype = device, torch.from_numpy(pattern.data[:0]).dtype
        self._comm = comm
        self._ball = pattern.formulation.radius is not None
        self._masked = pattern.observed is not None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stale = False

        def zeros(*shape: int, dtype: torch.dtype = self.dtype) -> torch.Tensor:
            return torch.zeros((n_problems, *shape), dtype=dtype, device=device)

        samples, pairs = (layout.rows, layout.stride), (n_atoms, layout.rows)
        self._sparse, self._mixed = zeros(n_atoms, *samples), zeros(n_atoms, *samples)
        self._rank_one, self._scales, self._codes = zeros(*pairs), zeros(*pairs), zeros(*pairs)
        self._atoms, self._atoms_before = zeros(n_atoms, layout.stride), zeros(n_atoms, layout.stride)
        self._data, self._level, self._shift = zeros(*samples), zeros(*samples), zeros(*samples)
        self._mean, self._misfit, self._rebuilt = zeros(*samples), zeros(*samples), zeros(*samples)
        self._roots = zeros(layout.rows, 1)
        self._observed = zeros(*(samples if self._masked else (1, 1)), dtype=torch.int8)
        self._means = zeros(layout.n_groups, *samples)
        sums = (columns.SUMS_WIDTH,)
        self._block_sums = zeros(layout.n_groups * layout.n_tiles, *sums, dtype=torch.float64)
        self._sample_sums = zeros(-(-layout.rows * layout.stride // SAMPLE_BLOCK), *sums, dtype=torch.float64)
        self._control = zeros(columns.N_CONTROL, dtype=torch.float64)
        self._control_columns = torch.tensor([columns.NEXT_RHO, columns.ACTIVE], device=device)
        self._rank_one_step = rank_one_step(layout, self._atoms, self._atoms_before, self._control, pattern.n_fixed)
        self._products = zeros(layout.n_chunks, n_atoms, *self._rank_one_step.shape)
        shared = 0 if comm is SERIAL else self._products[0, 0].numel() + columns.SUMS_WIDTH
        self._totals = zeros(shared, dtype=torch.float64)
        self._report = torch.zeros((MAX_REPORTS, n_problems, columns.N_REPORT), dtype=torch.float64, device=device)

    def load(self, slot: int, problem: Problem, dictionary: Array, codes: Array) -> None:
        """Start the run of a problem in a slot."""
        n_samples, n_features = self.n_samples, self.n_features
        for tensor in (self._level, self._shift, self._misfit):
            tensor[slot] = 0
        self._data[slot, :n_samples, :n_features] = self._to_device(problem.data)
        self._roots[slot, :n_samples] = self._to_device(problem.threshold_factors)
        for atoms in (self._atoms, self._atoms_before):
            atoms[slot, :, :n_features] = self._to_device(dictionary)
        self._rank_one[slot, :, :n_samples] = self._to_device(codes).T
        self._codes[slot] = self._rank_one[slot]
        self._scales[slot] = (self._codes[slot] != 0).to(self.dtype)
        torch.mul(self._codes[slot, :, :, None], self._atoms[slot, :, None, :], out=self._sparse[slot])
        self._mixed[slot] = self._sparse[slot]
        self._mean[slot] = self._codes[slot].T @ self._atoms[slot]
        if problem.observed is not None:
            self._observed[slot] = 1  # including the padding
            self._observed[slot, :n_samples, :n_features] = self._to_device(problem.observed.astype(np.int8))
            self._misfit[slot] = torch.where(self._observed[slot] != 0, 0, self._mean[slot] - self._data[slot])
        self._control[slot] = self._to_device(_control(problem))
        self._prepare()

    def _to_device(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _prepare(self) -> None:
        """Sum the inputs of the rank-one step; once per rank, however many parts were restored."""
        self._rank_one_step.sum_tiles(self._mixed, self._shift, self._products)
        self._exchange()
        self._stale = False

    def set_rho(self, slot: int, rho: float) -> None:
        """Set the ρ of a slot for the iterations after the next one."""
        self._control[slot, columns.NEXT_RHO] = rho

    def set_control(self, rhos: Array, active: NDArray[np.bool_]) -> None:
        """Set the ρ of every slot for the iterations after the next one, and whether it is active."""
        # One copy to the device for both columns: a batch of small runs waits for each copy.
        values = self._to_device(np.stack([rhos, active.astype(np.float64)], axis=1))
        self._control.index_copy_(1, self._control_columns, values)

    def advance(self, count: int) -> Array:
        """Carry out ``count`` ≤ MAX_REPORTS iterations; returns their reports, shape (count, problem, column)."""
        if self._stale:
            self._prepare()
        self._control[:, columns.COUNT] = 0
        for _ in range(count):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._launch()
                self._capture()
        reports: Array = self._report[:count].to("cpu", copy=True).numpy()
        return reports

    def _capture(self) -> None:
        """Record an iteration as a CUDA graph once its kernels are compiled; nothing is carried out."""
        if self.device.type == "cuda" and self._comm is SERIAL:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._launch()

    def _launch(self) -> None:
        """Launch one iteration."""
        layout, n_atoms, n_problems = self.layout, self.n_atoms, self.n_problems
        self._rank_one_step.update(self._products if self._comm is SERIAL else self._rank_products)
        passes.update_blocks[(layout.n_tiles, layout.n_groups, n_problems)](
            self._sparse, self._mixed, self._rank_one, self._scales, self._codes, self._shift, self._roots,
            self._atoms_before, self._atoms, self._control, self._means, self._block_sums, n_atoms, layout.rows,
            STRIDE=layout.stride, WIDTH=layout.width, PARTS=layout.n_parts, TILE=layout.tile, GROUP=layout.group,
            SHRINK=self._shrinkage.of_tile, PROJECT=self._rank_one_step.of_tile, num_warps=layout.warps,
        )  # fmt: skip
        torch.matmul(self._codes.swapaxes(1, 2), self._atoms, out=self._rebuilt)
        passes.update_samples[(self._sample_sums.shape[1], n_problems)](
            self._data, self._observed, self._level, self._shift, self._mean, self._misfit, self._means,
            self._rebuilt, self._control, self._sample_sums, n_atoms, layout.rows * layout.stride, layout.n_groups,
            BLOCK=SAMPLE_BLOCK, MASKED=self._masked,
        )  # fmt: skip
        self._rank_one_step.sum_tiles(self._mixed, self._shift, self._products)
        self._exchange()
        serial = self._comm is SERIAL
        block_sums, n_sample_sums = (self._block_sums, self._sample_sums.shape[1]) if serial else (self._rank_sums, 0)
        passes.close_iteration[(n_problems,)](
            block_sums, block_sums.shape[1], self._sample_sums, n_sample_sums, self._control, self._report,
            BALL=self._ball, BLOCK=1024, num_warps=8,
        )  # fmt: skip

    def _exchange(self) -> None:
        """Sum the inputs of the rank-one step and the sums over the ranks: one array for one exchange."""
        if self._comm is SERIAL:
            return
        n_numbers = self._products[0, 0].numel()
        passes.sum_for_ranks[(-(-n_numbers // RANK_BLOCK), self.n_problems)](
            self._products, self._block_sums, self._block_sums.shape[1], self._sample_sums, self._sample_sums.shape[1],
            self._totals, n_numbers, self.layout.n_chunks, BLOCK=RANK_BLOCK,
        )  # fmt: skip
        total = self._comm.sum(self._totals)
        self._rank_products = total[:, :n_numbers].view(self.n_problems, 1, *self._products.shape[2:])
        self._rank_sums = total[:, None, n_numbers:]

    def dictionary(self, slot: int) -> Array:
        """Atoms of a slot, shape (atom, feature)."""
        atoms: Array = self._atoms[slot, :, : self.n_features].cpu().numpy()
        return atoms

    def codes(self, slot: int) -> Array:
        """Codes u_k·A_k of a slot, shape (sample, atom)."""
        codes: Array = self._codes[slot, :, : self.n_samples].T.contiguous().cpu().numpy()
        return codes

    def _local(self, slot: int) -> dict[str, torch.Tensor]:
        """Per-sample arrays of a slot, as views with the samples first."""
        blocks = {"sparse": self._sparse, "mixed": self._mixed}
        pairs = {"rank_one": self._rank_one, "scales": self._scales, "codes": self._codes}
        rows = {"level": self._level, "shift": self._shift, "mean": self._mean, "misfit": self._misfit}
        views = {name: tensor[slot].transpose(0, 1) for name, tensor in (blocks | pairs).items()}
        views |= {name: tensor[slot] for name, tensor in rows.items()}
        return {name: view[: self.n_samples] for name, view in views.items()}

    def state(self, slot: int) -> RunState:
        """Return copies of the arrays that an iteration reads; the inputs of the rank-one step follow from them."""
        shared = {"atoms": self._atoms, "atoms_before": self._atoms_before, "control": self._control}
        return RunState(
            {name: view.contiguous().cpu().numpy() for name, view in self._local(slot).items()},
            {name: tensor[slot].cpu().numpy() for name, tensor in shared.items()},
        )

    def restore(self, slot: int, state: RunState, start: int) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        for name, view in self._local(slot).items():
            given = state.local[name]
            view[start : start + len(given)] = self._to_device(given)
        self._atoms[slot] = self._to_device(state.shared["atoms"])
        self._atoms_before[slot] = self._to_device(state.shared["atoms_before"])
        self._control[slot] = self._to_device(state.shared["control"])
        self._stale = True


def _control(problem: Problem) -> Array:
    row = np.zeros(columns.N_CONTROL)
    form, rho = problem.formulation, problem.rhos[0]
    row[columns.RHO] = row[columns.NEXT_RHO] = rho
    row[columns.LIMIT] = form.betas[2] if form.radius is None else form.radius
    row[columns.SHARE] = form.misfit_share(0.0, rho)
    row[columns.STRETCH] = row[columns.ACTIVE] = 1.0
    return row
