"""The engine for GPUs: one run alone; ``batch`` has many of one shape. Imports torch only where there is work."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.engines import columns
from roadict.engines.gpu.layout import MOST_FEATURES, state_bytes
from roadict.engines.measuring import measures_of
from roadict.formulation import Problem, Triple
from roadict.ranks.collectives import norm
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]

BURST = 10
"""Iterations between two looks at the residuals, where nobody waits for them."""
INEXACT_ARRAYS = 9
"""Arrays of a block's size that an iteration of the inexact form needs at its peak."""
GIBIBYTE = 2**30
INSTALL = "pip install 'roadict[gpu]'"


class GpuError(RuntimeError):
    """There is no GPU to use, or what it needs is not installed, or it does not take the problem."""


def gpu_device() -> Any:
    """Return the device to use; raises GpuError with the remedy where there is none."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as failure:
        raise GpuError(f'engine="cuda" needs {failure.name}, which is not installed: {INSTALL}') from None
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    raise GpuError('engine="cuda" finds no NVIDIA GPU that torch can use; use engine="numba"')


def make_batch(problem: Problem, n_atoms: int, n_problems: int, comm: Comm = SERIAL) -> Any:
    """Allocate a batch of problems like this one; raises GpuError or MemoryError."""
    device = gpu_device()
    n_features = problem.data.shape[1]
    if n_features > MOST_FEATURES:
        raise GpuError(f'engine="cuda" takes up to {MOST_FEATURES} features, not {n_features}; use engine="numba"')
    import torch

    if device.type == "cuda":
        torch.cuda.empty_cache()
        needed, free = _needed(problem, n_atoms, n_problems), torch.cuda.mem_get_info(device)[0]
        if needed > free:
            raise _too_large(needed, free, problem)
    from roadict.engines.gpu.exact import ExactBatch
    from roadict.engines.gpu.inexact import InexactBatch

    kind = ExactBatch if problem.formulation.exact_consensus else InexactBatch
    with memory_told(problem, n_atoms, n_problems):
        return kind(problem, n_atoms, n_problems, device, comm)


def _needed(problem: Problem, n_atoms: int, n_problems: int) -> int:
    """Bytes that a batch of problems like this one takes."""
    itemsize = problem.data.itemsize
    n_samples, n_features = problem.data.shape
    needed = state_bytes(n_problems, n_samples, n_features, n_atoms, itemsize)
    if problem.formulation.exact_consensus:
        return needed
    return max(needed, INEXACT_ARRAYS * n_problems * n_atoms * problem.data.nbytes)


@contextmanager
def memory_told(problem: Problem, n_atoms: int, n_problems: int) -> Iterator[None]:
    """Work on a batch; where the GPU's memory does not suffice after all, MemoryError says so with the remedy."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError:
        free = torch.cuda.mem_get_info()[0]
        raise _too_large(_needed(problem, n_atoms, n_problems), free, problem) from None


def _too_large(needed: int, free: int, problem: Problem) -> MemoryError:
    smaller = "" if problem.data.itemsize == np.float32().itemsize else "float32 data, "
    return MemoryError(
        f"the run needs {needed / GIBIBYTE:.1f} GiB of GPU memory and {free / GIBIBYTE:.1f} GiB are free; "
        f'use fewer samples, {smaller}several GPUs (torchrun), or engine="numba"'
    )


class CudaEngine:
    """One run, alone on the GPU."""

    burst = BURST

    def __init__(self, problem: Problem, dictionary: Array, codes: Array, comm: Comm = SERIAL) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._data_norm = norm(comm, problem.data)
        self._n_atoms = len(dictionary)
        self._batch = make_batch(problem, self._n_atoms, 1, comm)
        with memory_told(problem, self._n_atoms, 1):
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
        """Carry out ``count`` ≤ ``burst`` iterations, and look at the residuals once."""
        with memory_told(self.problem, self._n_atoms, 1):
            reports = self._batch.advance(count)
        return [measured(report[0], self.problem, self._data_norm) for report in reports]

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        atoms: Array = self._batch.dictionary(0)
        return atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = self._batch.codes(0)
        return codes

    def state(self) -> RunState:
        """Copies of the arrays of the run."""
        state: RunState = self._batch.state(0)
        state.shared["rhos"] = np.array(self.rhos)
        return state

    def restore(self, state: RunState, start: int = 0) -> None:
        """Take the arrays of ``state``, those of samples from ``start`` on."""
        first, second, third = (float(rho) for rho in state.shared["rhos"])
        self.rhos = (first, second, third)
        self._batch.restore(0, state, start)

    def close(self) -> None:
        """Nothing to release: memory is freed with the engine."""


def measured(report: Array, problem: Problem, data_norm: float) -> Measures:
    """Measures from a row of a batch's reports."""
    return measures_of(
        report,
        problem.formulation,
        share=float(report[columns.OLD_SHARE]),
        kept=float(report[columns.NEW_SHARE]),
        norm_before=float(report[columns.OLD_NORM]),
        data_norm=data_norm,
    )
