"""Batches of runs of one shape on a GPU: the submitted iterations of all runs are carried out together."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.engines.gpu.cuda import BURST, make_batch, measures_from, reporting_memory
from roadict.formulation import Problem, Triple
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]


@dataclass
class Request:
    """Iterations submitted by a run, and the reports of those carried out."""

    count: int
    reports: list[Array] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Iterations still to be carried out."""
        return self.count - len(self.reports)


class Pool:
    """A batch whose slots are acquired and released by runs.

    Nothing is carried out until a run collects its reports; the iterations submitted by other runs are then included.
    """

    def __init__(self, capacity: int) -> None:
        self._free = list(range(capacity))
        self._capacity = capacity
        self._first: tuple[Problem, int] | None = None
        self._rhos = np.ones(capacity)
        self._requests: dict[int, Request] = {}
        self.batch: Any = None
        """ExactBatch or InexactBatch, created by the first run that joins."""

    def accepts(self, problem: Problem, n_atoms: int) -> bool:
        """Whether there is a free slot and the run is of the batch's kind, which the first run determines."""
        same_kind = self._first is None or _kind(*self._first) == _kind(problem, n_atoms)
        return same_kind and bool(self._free)

    def join(self, problem: Problem, dictionary: Array, codes: Array) -> "Slot":
        """Start a run in a free slot."""
        if self._first is None:
            self.batch = make_batch(problem, len(dictionary), self._capacity)
            self._first = problem, len(dictionary)
        index = self._free[-1]
        with reporting_memory(*self._first, self._capacity):
            self.batch.load(index, problem, dictionary, codes)
        self._free.pop()
        self._rhos[index] = problem.rhos[0]
        return Slot(self, index, problem)

    def release(self, index: int) -> None:
        """Release a slot."""
        self._requests.pop(index, None)
        if index not in self._free:
            self._free.append(index)

    def submit(self, index: int, count: int, following: float | None) -> None:
        """Record the iterations that a run requests."""
        if following is not None:
            self._rhos[index] = following
        self._requests[index] = Request(count)

    def collect(self, index: int, count: int, following: float | None) -> list[Array]:
        """Carry out what all runs have submitted until this run's iterations are done, and return its reports."""
        if index not in self._requests:
            self.submit(index, count, following)
        while self._requests[index].remaining:
            self._advance()
        return self._requests.pop(index).reports

    def _advance(self) -> None:
        """Carry out the iterations that all pending runs have in common."""
        assert self._first is not None, "no run has joined"
        pending = {index: request for index, request in self._requests.items() if request.remaining}
        active = np.zeros(self._capacity, bool)
        active[list(pending)] = True
        self.batch.set_control(self._rhos, active)
        with reporting_memory(*self._first, self._capacity):
            reports = self.batch.advance(min(request.remaining for request in pending.values()))
        for index, request in pending.items():
            request.reports.extend(reports[:, index])


def _kind(problem: Problem, n_atoms: int) -> tuple[Any, ...]:
    """What all runs of a batch must have in common."""
    data = problem.data
    return data.shape, data.dtype, n_atoms, problem.n_fixed, problem.observed is None, problem.formulation.kind


class Slot:
    """One run of a pool; an ``Engine``."""

    burst = BURST

    def __init__(self, pool: Pool, index: int, problem: Problem) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._pool, self._index = pool, index
        self._data_norm = float(np.linalg.norm(problem.data))

    def submit(self, count: int, following: float | None) -> None:
        """Submit the iterations that the next call of ``step`` or ``steps`` will return."""
        self._pool.submit(self._index, count, following)

    def step(self, following: float | None = None) -> Measures:
        """Return the measures of the submitted iteration; see ``Engine``."""
        (report,) = self._pool.collect(self._index, 1, following)
        if following is not None:
            self.rhos = (following, following, following)
        return measures_from(report, self.problem, self._data_norm)

    def steps(self, count: int) -> list[Measures]:
        """Return the measures of the ``count`` submitted iterations."""
        reports = self._pool.collect(self._index, count, None)
        return [measures_from(report, self.problem, self._data_norm) for report in reports]

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        atoms: Array = self._pool.batch.dictionary(self._index)
        return atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = self._pool.batch.codes(self._index)
        return codes

    def state(self) -> RunState:
        """Return copies of the arrays of the run."""
        state: RunState = self._pool.batch.state(self._index)
        state.shared["rhos"] = np.array(self.rhos)
        return state

    def restore(self, state: RunState, start: int = 0) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        first, second, third = (float(rho) for rho in state.shared["rhos"])
        self.rhos = (first, second, third)
        self._pool.batch.restore(self._index, state, start)

    def close(self) -> None:
        """Release the slot; read the results before."""
        self._pool.release(self._index)
