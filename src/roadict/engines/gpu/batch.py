"""Runs of one shape that share a GPU: iterations that several have submitted are carried out at once."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.engines.gpu.cuda import BURST, make_batch, measured, memory_told
from roadict.formulation import Problem, Triple
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]


@dataclass
class Request:
    """Iterations that a run has submitted, and the reports of those carried out."""

    count: int
    reports: list[Array] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Iterations still to be carried out."""
        return self.count - len(self.reports)


class Pool:
    """A batch of problems with slots that runs join and leave.

    Nothing is carried out before a run collects what it has submitted; then all that others have submitted goes along.
    """

    def __init__(self, capacity: int) -> None:
        self._free = list(range(capacity))
        self._capacity = capacity
        self._first: tuple[Problem, int] | None = None
        self._rhos = np.ones(capacity)
        self._requests: dict[int, Request] = {}
        self.batch: Any = None
        """ExactBatch or InexactBatch, made for the first run that joins."""

    def takes(self, problem: Problem, n_atoms: int) -> bool:
        """Whether there is a slot for such a run: the first to join decides of which kind all are."""
        alike = self._first is None or _kind(*self._first) == _kind(problem, n_atoms)
        return alike and bool(self._free)

    def join(self, problem: Problem, dictionary: Array, codes: Array) -> "Slot":
        """Start a run in a free slot."""
        if self._first is None:
            self.batch = make_batch(problem, len(dictionary), self._capacity)
            self._first = problem, len(dictionary)
        index = self._free[-1]
        with memory_told(*self._first, self._capacity):
            self.batch.load(index, problem, dictionary, codes)
        self._free.pop()
        self._rhos[index] = problem.rhos[0]
        return Slot(self, index, problem)

    def leave(self, index: int) -> None:
        """Free a slot."""
        self._requests.pop(index, None)
        if index not in self._free:
            self._free.append(index)

    def submit(self, index: int, count: int, following: float | None) -> None:
        """Note iterations that a run wants."""
        if following is not None:
            self._rhos[index] = following
        self._requests[index] = Request(count)

    def collect(self, index: int, count: int, following: float | None) -> list[Array]:
        """Return the reports of what a run has submitted, carried out together with what the others have."""
        if index not in self._requests:
            self.submit(index, count, following)
        while self._requests[index].remaining:
            self._advance()
        return self._requests.pop(index).reports

    def _advance(self) -> None:
        """Carry out as many iterations as all runs that want any have submitted."""
        assert self._first is not None, "no run has joined"
        pending = {index: request for index, request in self._requests.items() if request.remaining}
        active = np.zeros(self._capacity, bool)
        active[list(pending)] = True
        self.batch.direct(self._rhos, active)
        with memory_told(*self._first, self._capacity):
            reports = self.batch.advance(min(request.remaining for request in pending.values()))
        for index, request in pending.items():
            request.reports.extend(reports[:, index])


def _kind(problem: Problem, n_atoms: int) -> tuple[Any, ...]:
    """What runs of one batch have in common."""
    data = problem.data
    return data.shape, data.dtype, n_atoms, problem.observed is None, problem.formulation.kind


class Slot:
    """One run of a pool; an ``Engine``."""

    burst = BURST

    def __init__(self, pool: Pool, index: int, problem: Problem) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._pool, self._index = pool, index
        self._data_norm = float(np.linalg.norm(problem.data))

    def submit(self, count: int, following: float | None) -> None:
        """Announce what the next call of ``step`` or ``steps`` will ask for."""
        self._pool.submit(self._index, count, following)

    def step(self, following: float | None = None) -> Measures:
        """Return the measures of the iteration submitted; see ``Engine``."""
        (report,) = self._pool.collect(self._index, 1, following)
        if following is not None:
            self.rhos = (following, following, following)
        return measured(report, self.problem, self._data_norm)

    def steps(self, count: int) -> list[Measures]:
        """Return the measures of the ``count`` iterations submitted."""
        reports = self._pool.collect(self._index, count, None)
        return [measured(report, self.problem, self._data_norm) for report in reports]

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        atoms: Array = self._pool.batch.dictionary(self._index)
        return atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = self._pool.batch.codes(self._index)
        return codes

    def state(self) -> RunState:
        """Copies of the arrays of the run."""
        state: RunState = self._pool.batch.state(self._index)
        state.shared["rhos"] = np.array(self.rhos)
        return state

    def restore(self, state: RunState, start: int = 0) -> None:
        """Take the arrays of ``state``, those of samples from ``start`` on."""
        first, second, third = (float(rho) for rho in state.shared["rhos"])
        self.rhos = (first, second, third)
        self._pool.batch.restore(self._index, state, start)

    def close(self) -> None:
        """Free the slot; call it when the results have been read."""
        self._pool.leave(self._index)
