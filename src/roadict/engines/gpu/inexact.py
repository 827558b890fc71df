"""A batch of problems of the inexact form on a GPU, in PyTorch operations; see ``cpu.passes.inexact_chunk``."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roadict.engines import columns
from roadict.engines.blocks import steps_of
from roadict.engines.gpu.blocks import RANK_ONE, SPARSE
from roadict.engines.gpu.layout import Layout
from roadict.formulation import Problem
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.state import RunState

Array = NDArray[np.floating]

LOCAL = ("consensus", "first", "second", "misfit", "codes")


class InexactBatch:
    """State and iterations of ``n_problems`` problems like ``pattern``, each with its own penalties."""

    def __init__(
        self, pattern: Problem, n_atoms: int, n_problems: int, device: torch.device, comm: Comm = SERIAL
    ) -> None:
        self._shrinkage, rank_one_step = steps_of(pattern.formulation, SPARSE, RANK_ONE, "cuda")
        n_samples, n_features = pattern.data.shape
        self.n_problems, self.n_atoms, self.device, self._comm = n_problems, n_atoms, device, comm
        self.dtype = torch.from_numpy(pattern.data[:0]).dtype
        self._stale = False
        self._constants = torch.zeros((7, n_problems, 1, 1, 1), dtype=self.dtype, device=device)
        blocks, samples = (n_problems, n_atoms, n_samples, n_features), (n_problems, n_samples, n_features)
        # C, W1, W2 and H, as in the Numba engine
        self._consensus, self._first, self._second, self._data, self._misfit = (
            torch.zeros(shape, dtype=self.dtype, device=device) for shape in (blocks,) * 3 + (samples,) * 2
        )
        self._roots = torch.zeros((n_problems, 1, n_samples, 1), dtype=self.dtype, device=device)
        self._atoms = torch.zeros((n_problems, n_atoms, n_features), dtype=self.dtype, device=device)
        self._codes = torch.zeros((n_problems, n_samples, n_atoms), dtype=self.dtype, device=device)
        self._active = torch.zeros((n_problems, columns.N_CONTROL), dtype=torch.float64, device=device)
        layout = Layout.of(n_samples, n_features, n_atoms, pattern.data.itemsize)
        self._rank_one_step = rank_one_step(
            layout, self._atoms, torch.zeros_like(self._atoms), self._active, pattern.n_fixed
        )

    def load(self, slot: int, problem: Problem, dictionary: Array, codes: Array) -> None:
        """Start the run of a problem in a slot."""
        for tensor in (self._first, self._second, self._misfit):
            tensor[slot] = 0
        self._data[slot], self._atoms[slot] = self._to_device(problem.data), self._to_device(dictionary)
        self._codes[slot], self._roots[slot] = self._to_device(codes), self._to_device(problem.threshold_factors)
        torch.mul(self._codes[slot].T[:, :, None], self._atoms[slot, :, None, :], out=self._consensus[slot])
        self._active[slot, columns.ACTIVE] = 1.0
        self._constants[:, slot] = self._to_device(_constants(problem, self.n_atoms)).view(-1, 1, 1, 1)
        self._sum_blocks()

    def _to_device(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def set_rho(self, slot: int, rho: float) -> None:
        """Not supported: Theorem 1 holds for constant penalties."""
        raise NotImplementedError("the penalties of the inexact form are constant")

    def set_control(self, rhos: Array, active: NDArray[np.bool_]) -> None:
        """Set which slots are active."""
        self._active[:, columns.ACTIVE] = self._to_device(active.astype(np.float64))

    def advance(self, count: int) -> Array:
        """Carry out ``count`` iterations; returns their reports, shape (count, problem, column)."""
        if self._stale:
            self._sum_blocks()
        reports: Array = torch.stack([self._step() for _ in range(count)]).cpu().numpy()
        return reports

    def _step(self) -> torch.Tensor:
        """Carry out one iteration; returns its report."""
        r1, r2, r3, w1, w2, common, threshold = self._constants.unbind()
        share1, share2 = r1.flatten(), r2.flatten()
        r3, common = r3[:, 0], common[:, 0]
        active = self._active[:, columns.ACTIVE] != 0
        self._rank_one_step.update(self._products)
        u = self._atoms[:, :, None, :]
        lag1, lag2 = (2 * r1 - 1) * self._first, (2 * r2 - 1) * self._second
        a_hat = self._consensus + lag1
        scale, lengths = self._shrinkage.of_blocks(a_hat, threshold * self._roots)
        of_blocks, atoms = self._rank_one_step.of_blocks, self._atoms[..., None]
        codes = of_blocks((a_hat @ atoms) * scale)[..., 0].swapaxes(1, 2)
        a = a_hat.mul_(scale)
        b = u * of_blocks((self._consensus + lag2) @ atoms)
        new = (a - lag1).mul_(w1).add_((b - lag2).mul_(w2))
        del lag1, lag2
        mean = new.sum(dim=1)
        rise = common * (self._data + (2 * r3 - 1) * self._misfit - mean)
        misfit = mean + self.n_atoms * rise - self._data + (1 - r3) * self._misfit
        new += rise[:, None]
        first = a.sub_(new).addcmul_(self._first, 1 - r1)
        second = b.sub_(new).addcmul_(self._second, 1 - r2)
        change1, change2 = _squared(first - self._first), _squared(second - self._second)
        sums = {
            columns.OBJECTIVE: (lengths * self._roots).sum(dim=(1, 2, 3), dtype=torch.float64),
            columns.GAP: (1 - share1) ** 2 * change1 + (1 - share2) ** 2 * change2,
            columns.MOVED: share1**2 * change1 + share2**2 * change2,
            columns.SIZE: _squared(new),
            columns.ERROR: _squared(self._data - codes @ self._atoms),
            columns.MISFIT: _squared(misfit),
            columns.DRIFT: _squared(misfit - self._misfit),
            columns.OLD_NORM: _squared(self._misfit),
        }
        for name, tensor in zip(LOCAL, (new, first, second, misfit, codes), strict=True):
            self._store_active(name, tensor, active)
        self._sum_blocks()
        return self._report(sums, r3.flatten())

    def _store_active(self, name: str, new: torch.Tensor, active: torch.Tensor) -> None:
        old = getattr(self, f"_{name}")
        old.copy_(new if self.n_problems == 1 else torch.where(active.view(-1, *[1] * (old.ndim - 1)), new, old))

    def _report(self, sums: dict[int, torch.Tensor], share: torch.Tensor) -> torch.Tensor:
        rows = torch.stack([sums[column] for column in (*columns.SUMS, columns.OLD_NORM)], dim=1)
        total = self._comm.sum(rows)
        report = total.new_zeros(self.n_problems, columns.N_REPORT)
        report[:, : columns.N_SUMS] = total[:, : columns.N_SUMS]
        report[:, columns.OLD_NORM] = total[:, columns.N_SUMS].sqrt()
        report[:, columns.OLD_SHARE] = report[:, columns.NEW_SHARE] = share
        return report

    def _sum_blocks(self) -> None:
        b_hat = self._consensus + (2 * self._constants[1] - 1) * self._second
        self._products = self._comm.sum(self._rank_one_step.sum_blocks(b_hat))
        self._stale = False

    def dictionary(self, slot: int) -> Array:
        """Atoms of a slot, shape (atom, feature)."""
        atoms: Array = self._atoms[slot].cpu().numpy()
        return atoms

    def codes(self, slot: int) -> Array:
        """Codes u_k·A_k of a slot, shape (sample, atom)."""
        codes: Array = self._codes[slot].cpu().numpy()
        return codes

    def _local(self, slot: int) -> dict[str, torch.Tensor]:
        views = {name: getattr(self, f"_{name}")[slot] for name in LOCAL}
        return {name: view.transpose(0, 1) if view.ndim > 2 else view for name, view in views.items()}

    def state(self, slot: int) -> RunState:
        """Return copies of the arrays that an iteration reads; the inputs of the rank-one step follow from them."""
        local = {name: view.contiguous().cpu().numpy() for name, view in self._local(slot).items()}
        return RunState(local, {"atoms": self.dictionary(slot)})

    def restore(self, slot: int, state: RunState, start: int) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        for name, view in self._local(slot).items():
            view[start : start + len(state.local[name])] = self._to_device(state.local[name])
        self._atoms[slot] = self._to_device(state.shared["atoms"])
        self._stale = True


def _constants(problem: Problem, n_atoms: int) -> Array:
    """Return the shares of the three slacks, the weights of A, B and the data in C, and the threshold."""
    form, (rho1, rho2, rho3) = problem.formulation, problem.rhos
    shares = [form.slack_share(i, rho) for i, rho in enumerate(problem.rhos)]
    weights = [rho1 / (rho1 + rho2), rho2 / (rho1 + rho2), rho3 / (rho1 + rho2 + n_atoms * rho3)]
    return np.array([*shares, *weights, 1 / rho1])


def _squared(tensor: torch.Tensor) -> torch.Tensor:
    """Squared norm per problem, accumulated in float64 over the sums of rows."""
    return (tensor * tensor).sum(dim=-1).sum(dim=tuple(range(1, tensor.ndim - 1)), dtype=torch.float64)
