"""The GPU engine for a single run; ``batch`` has many of one shape. Imports torch only when it is used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.engines import columns
from roadict.engines.gpu.layout import MAX_FEATURES, state_bytes
from roadict.engines.measuring import measures_of
from roadict.extras import require
from roadict.formulation import Problem, RankOne, Triple
from roadict.ranks.collectives import norm
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]

BURST = 10
"""Iterations between two readings of the residuals, if the run is not watched."""
INEXACT_ARRAYS = 9
"""Peak number of block-sized arrays in an iteration of the inexact form."""
GIBIBYTE = 2**30


class GpuError(RuntimeError):
    """No usable GPU, or a problem that the engine does not support."""


def gpu_device() -> Any:
    """Return the device to use; raises GpuError with the remedy if there is none."""
    require('engine="cuda"', "torch", "triton")
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    raise GpuError('engine="cuda" finds no NVIDIA GPU that torch can use; use engine="numba"')


def make_batch(problem: Problem, n_atoms: int, n_problems: int, comm: Comm = SERIAL) -> Any:
    """Allocate a batch of problems like this one; raises GpuError or MemoryError."""
    device = gpu_device()
    n_features = problem.data.shape[1]
    if n_features > MAX_FEATURES:
        raise GpuError(f'engine="cuda" supports up to {MAX_FEATURES} features, not {n_features}; use engine="numba"')
    import torch

    if device.type == "cuda":
        torch.cuda.empty_cache()
        required, free = _required_bytes(problem, n_atoms, n_problems), torch.cuda.mem_get_info(device)[0]
        if required > free:
            raise _out_of_memory(required, free, problem)
    from roadict.engines.gpu.exact import ExactBatch
    from roadict.engines.gpu.inexact import InexactBatch

    kind = ExactBatch if problem.formulation.exact_consensus else InexactBatch
    with reporting_memory(problem, n_atoms, n_problems):
        return kind(problem, n_atoms, n_problems, device, comm)


def _required_bytes(problem: Problem, n_atoms: int, n_problems: int) -> int:
    """Memory of a batch of problems like this one."""
    itemsize = problem.data.itemsize
    n_samples, n_features = problem.data.shape
    form = problem.formulation
    with_grams = form.rank_one in (RankOne.NEAREST, RankOne.POSITIVE_ATOMS)
    required = state_bytes(n_problems, n_samples, n_features, n_atoms, itemsize, with_grams=with_grams)
    if form.exact_consensus:
        return required
    return max(required, INEXACT_ARRAYS * n_problems * n_atoms * problem.data.nbytes)


@contextmanager
def reporting_memory(problem: Problem, n_atoms: int, n_problems: int) -> Iterator[None]:
    """Convert an out-of-memory error of torch to a MemoryError that reports memory and remedy."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError:
        free = torch.cuda.mem_get_info()[0]
        raise _out_of_memory(_required_bytes(problem, n_atoms, n_problems), free, problem) from None


def _out_of_memory(required: int, free: int, problem: Problem) -> MemoryError:
    smaller = "" if problem.data.itemsize == np.float32().itemsize else "float32 data, "
    return MemoryError(
        f"the run needs {required / GIBIBYTE:.1f} GiB of GPU memory and {free / GIBIBYTE:.1f} GiB are free; "
        f'use fewer samples, {smaller}several GPUs (torchrun), or engine="numba"'
    )


class CudaEngine:
    """A single run on the GPU."""

    burst = BURST

    def __init__(self, problem: Problem, dictionary: Array, codes: Array, comm: Comm = SERIAL) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._data_norm = norm(comm, problem.data)
        self._n_atoms = len(dictionary)
        self._batch = make_batch(problem, self._n_atoms, 1, comm)
        with reporting_memory(problem, self._n_atoms, 1):
            self._batch.load(0, problem, dictionary, codes)

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; see ``Engine``."""
        if following is not None:
            self._batch.set_rho(0, following)
        (measures,) = self.steps(1)
        if following is not None:
            self.rhos = (following, following, following)
        return measures

    def steps(self, count: int) -> list[Measures]:
        """Carry out ``count`` ≤ ``burst`` iterations, and read the residuals once."""
        with reporting_memory(self.problem, self._n_atoms, 1):
            reports = self._batch.advance(count)
        return [measures_from(report[0], self.problem, self._data_norm) for report in reports]

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        atoms: Array = self._batch.dictionary(0)
        return atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = self._batch.codes(0)
        return codes

    def state(self) -> RunState:
        """Return copies of the arrays of the run."""
        state: RunState = self._batch.state(0)
        state.shared["rhos"] = np.array(self.rhos)
        return state

    def restore(self, state: RunState, start: int = 0) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        first, second, third = (float(rho) for rho in state.shared["rhos"])
        self.rhos = (first, second, third)
        self._batch.restore(0, state, start)

    def close(self) -> None:
        """Nothing to release: memory is freed with the engine."""


def measures_from(report: Array, problem: Problem, data_norm: float) -> Measures:
    """Compute measures from a row of a batch's report."""
    return measures_of(
        report,
        problem.formulation,
        share_before=float(report[columns.OLD_SHARE]),
        share_after=float(report[columns.NEW_SHARE]),
        norm_before=float(report[columns.OLD_NORM]),
        data_norm=data_norm,
    )
