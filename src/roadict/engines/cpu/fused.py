"""The fast engine: one pass over the samples per iteration, compiled by Numba.

It computes the iteration of ``reference.ReferenceEngine`` from two state arrays of n_samples × n_features ×
n_components numbers (three for the inexact form) instead of seven. ``passes`` has the layout and the passes,
``blocks`` the rank-one step.
"""

import itertools
import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.aligned import aligned_zeros
from roadict.engines.blocks import steps_of
from roadict.engines.columns import MISFIT, N_SUMS
from roadict.engines.cpu.blocks import RANK_ONE, SPARSE
from roadict.engines.cpu.passes import BLOCK, Scratch, scratch
from roadict.engines.cpu.vectors import width_of
from roadict.engines.measuring import measures_of
from roadict.formulation import Problem
from roadict.kernels import Workers
from roadict.ranks.collectives import norm
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]

MAX_CHUNKS = 16


def chunk_bounds(n_samples: int, n_features: int) -> list[tuple[int, int]]:
    """Split the samples into chunks that do not depend on the number of threads, so that sums are reproducible.

    Each chunk has its own Gram matrices, which pay off from 4 n_features samples on.

    Examples
    --------
    >>> chunk_bounds(100, 8)
    [(0, 48), (48, 80), (80, 100)]
    """
    if n_samples == 0:
        return []
    blocks = -(-n_samples // BLOCK)
    n_chunks = min(blocks, max(1, min(MAX_CHUNKS, n_samples // (4 * n_features))))
    edges = [min(-(-blocks * i // n_chunks) * BLOCK, n_samples) for i in range(n_chunks + 1)]
    return list(itertools.pairwise(edges))


class FusedEngine:
    """State and step of the fused recurrence."""

    def __init__(
        self, problem: Problem, dictionary: Array, codes: Array, n_jobs: int | None = None, comm: Comm = SERIAL
    ) -> None:
        dtype = problem.data.dtype
        n_samples, n_features = problem.data.shape
        self._passes, rank_one = steps_of(problem.formulation, SPARSE, RANK_ONE, "numba")
        self.problem = problem
        self.rhos = problem.rhos
        self._comm = comm
        self.n_atoms = len(dictionary)
        self.width = width_of(dtype)
        n_bundles = -(-self.n_atoms // self.width)
        padding = n_bundles * self.width - self.n_atoms

        self._atoms = aligned_zeros((n_bundles, n_features, self.width), dtype)
        self._atoms[:] = (
            np.pad(dictionary, ((0, padding), (0, 0))).reshape(n_bundles, self.width, n_features).swapaxes(1, 2)
        )
        self._codes = aligned_zeros((n_samples, n_bundles * self.width), dtype)
        self._codes[:, : self.n_atoms] = codes
        self._thresholds = np.full(n_bundles * self.width, np.inf, dtype)
        self._thresholds[: self.n_atoms] = 1 / problem.rhos[0]
        self._roots = problem.threshold_factors
        self._chunks = chunk_bounds(n_samples, n_features)
        self._rank_one = rank_one(self._atoms, self.n_atoms, len(self._chunks))
        self._least_code = dtype.type(self._rank_one.least_code)
        self._is_fixed = (np.arange(n_bundles * self.width) < problem.n_fixed).reshape(n_bundles, 1, self.width)
        self._sums = np.zeros((len(self._chunks), N_SUMS))
        # Inputs of the next rank-one step and the sums, over all chunks and ranks: one array for one exchange.
        self._totals = np.zeros(self._rank_one.n_numbers + N_SUMS)
        self._started = False

        # D = (A + B - Q)/2 and Q; of the inexact form C, W1 and W2
        n_parts = 2 if problem.formulation.exact_consensus else 3
        self._state = aligned_zeros((n_samples, n_parts, n_bundles, n_features, self.width), dtype)
        np.multiply(self._codes.reshape(n_samples, n_bundles, 1, self.width), self._atoms, out=self._state[:, 0])
        rebuilt = (codes @ dictionary).astype(dtype)
        self._misfit = np.zeros_like(problem.data)
        if problem.observed is not None:
            self._misfit = np.where(problem.observed, 0, rebuilt - problem.data).astype(dtype)
        self._observed = np.empty((0, 0), bool) if problem.observed is None else problem.observed
        self._misfit_norm = 0.0
        self._data_norm = norm(comm, problem.data)
        if problem.formulation.exact_consensus:
            self._level, self._shift = np.zeros_like(problem.data), np.zeros_like(problem.data)  # E and F
            self._mean = rebuilt  # Σ_k (A + B)/2
        else:
            self._coefficients = self._inexact_coefficients()
        self._workers = Workers(n_jobs)
        self._spare: list[tuple[Array, Scratch]] = []

    def _inexact_coefficients(self) -> Array:
        rho1, rho2, rho3 = self.problem.rhos
        r1, r2, r3 = (self.problem.formulation.slack_share(i, rho) for i, rho in enumerate(self.problem.rhos))
        common = rho3 / (rho1 + rho2 + self.n_atoms * rho3)
        return np.array(
            [
                *(2 * r1 - 1, 2 * r2 - 1, rho1 / (rho1 + rho2), rho2 / (rho1 + rho2), 2 * r3 - 1),
                *(1 - r1, 1 - r2, 1 - r3, common, self.n_atoms, r1, r2),
            ],
            self.problem.data.dtype,
        )

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration: the atoms of the rank-one blocks, then a pass over the samples.

        ``following`` is the next iteration's ρ, if it differs; the pass rescales the multipliers for it.
        """
        factor = 1.0 if following is None else self.rhos[0] / following
        if self._started:
            before = self._atoms.copy() if self.problem.n_fixed else self._atoms
            self._rank_one.update(self._workers, self._totals[:-N_SUMS])
            np.copyto(self._atoms, before, where=self._is_fixed)
        self._started = True
        share = self._misfit_share()
        task = self._exact_pass if self.problem.formulation.exact_consensus else self._inexact_pass
        self._workers.run(partial(task, share=share, factor=factor), len(self._chunks))
        measures = self._measure(share, self._summed())
        if following is not None:
            self._change_rho(following)
        return measures

    def _change_rho(self, rho: float) -> None:
        """Rescale what the pass has not: W = Y + tH is unchanged, Λ3 = (1 - t)H is rescaled like every multiplier."""
        factor, share = self.rhos[0] / rho, self._misfit_share()
        stretch = self._misfit.dtype.type(share + factor * (1 - share))
        if self.problem.observed is None:
            self._misfit *= stretch
        else:
            self._misfit[self.problem.observed] *= stretch
        self._misfit_norm *= float(stretch)
        self.rhos = (rho, rho, rho)
        self._thresholds[: self.n_atoms] = 1 / rho

    def _misfit_share(self) -> float:
        return self.problem.formulation.misfit_share(self._misfit_norm, self.rhos[2])

    def _summed(self) -> Array:
        """Sum the inputs of the rank-one step and the norms over chunks, then over ranks; returns the norms."""
        self._rank_one.sum_chunks(self._workers, self._totals[:-N_SUMS])
        self._totals[-N_SUMS:] = self._sums.sum(axis=0)
        self._totals = self._comm.sum(self._totals)
        return self._totals[-N_SUMS:]

    def _exact_pass(self, chunk: int, share: float, factor: float) -> None:
        part = slice(*self._chunks[chunk])
        panel, arrays = self._take_scratch()
        self._passes.exact(
            self._state[part], self._level[part], self._shift[part], self._mean[part], self._misfit[part],
            self.problem.data[part], self._observed[part], self._codes[part], self._atoms, self._thresholds,
            self._roots[part], self._misfit.dtype.type(share), self._misfit.dtype.type(factor), self._least_code,
            self.n_atoms, panel, self._rank_one.cleared(chunk), self._sums[chunk], arrays,
        )  # fmt: skip
        self._spare.append((panel, arrays))

    def _inexact_pass(self, chunk: int, share: float, factor: float) -> None:
        part = slice(*self._chunks[chunk])
        panel, arrays = self._take_scratch()
        self._passes.inexact(
            self._state[part], self._misfit[part], self.problem.data[part], np.empty((0, 0), bool), self._codes[part],
            self._atoms, self._thresholds, self._roots[part], self._coefficients, self._least_code,
            panel, self._rank_one.cleared(chunk), self._sums[chunk], arrays,
        )  # fmt: skip
        self._spare.append((panel, arrays))

    def _take_scratch(self) -> tuple[Array, Scratch]:
        """Return arrays that no pass uses, of an earlier one or new: there are as many as threads."""
        try:
            return self._spare.pop()
        except IndexError:
            return scratch(self._atoms)

    def _measure(self, share: float, sums: Array) -> Measures:
        before, self._misfit_norm = self._misfit_norm, math.sqrt(sums[MISFIT])
        return measures_of(
            sums,
            self.problem.formulation,
            share_before=share,
            share_after=self._misfit_share(),
            norm_before=before,
            data_norm=self._data_norm,
        )

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        n_features = self._atoms.shape[1]
        return self._atoms.swapaxes(1, 2).reshape(-1, n_features)[: self.n_atoms].copy()

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        return self._codes[:, : self.n_atoms].copy()

    def state(self) -> RunState:
        """Return views of the arrays that an iteration reads, including the sums for the next rank-one step."""
        local = {"state": self._state, "misfit": self._misfit, "codes": self._codes}
        if self.problem.formulation.exact_consensus:
            local |= {"level": self._level, "shift": self._shift, "mean": self._mean}
        numbers = np.array([*self.rhos, self._misfit_norm, self._started])
        return RunState(local, {"atoms": self._atoms, "totals": self._totals, "numbers": numbers})

    def restore(self, state: RunState, start: int = 0) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        for name, array in self.state().local.items():
            array[start : start + len(state.local[name])] = state.local[name]
        self._atoms[:], self._totals = state.shared["atoms"], state.shared["totals"].copy()
        first, second, third, self._misfit_norm, started = (float(number) for number in state.shared["numbers"])
        self.rhos, self._started = (first, second, third), bool(started)
        self._thresholds[: self.n_atoms] = 1 / first

    def close(self) -> None:
        """Stop the threads."""
        self._workers.close()
