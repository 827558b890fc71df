"""Runs of one shape that go through their iterations together on a GPU, each as if it were alone.

A run's code knows nothing of the others. It is a coroutine of ``greenlet``, which can be left from inside any call: its
engine's ``step`` lets the others go on until they have come to theirs, and returns once an iteration of the whole batch
has been carried out. Threads could meet likewise, but wait for Python's lock far longer than they work.
"""

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from greenlet import getcurrent, greenlet
from numpy.typing import NDArray

from roadict.engines.gpu.cuda import BURST, make_batch, measured, memory_told
from roadict.engines.protocol import PARTY
from roadict.formulation import Problem, Triple
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]
Result = TypeVar("Result")


@dataclass
class Request:
    """A run that waits for iterations."""

    run: greenlet
    count: int
    reports: list[Array] = field(default_factory=list)


class Party:
    """A batch with places that runs take and leave; whoever makes it leads it.

    Attributes
    ----------
    batch : ExactBatch, InexactBatch or None
        Made for the first run that joins.
    """

    def __init__(self, capacity: int) -> None:
        self._leader = getcurrent()
        self._places = list(range(capacity))
        self._capacity = capacity
        self.batch: Any = None
        self._first: tuple[Problem, int] | None = None
        self._rhos = np.ones(capacity)
        self._requests: dict[int, Request] = {}
        self._absent: dict[Future[Any], greenlet] = {}

    def lead(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Carry out tasks to their end, their runs' iterations together.

        A task has the word until it waits for iterations or for another process; then the next one has it.
        """
        for task in tasks:
            run = greenlet(task)
            run.gr_context = contextvars.copy_context()
            run.switch()
        while self._requests or self._absent:
            if self._requests:
                self._advance()
                done = [future for future in self._absent if future.done()]
            else:
                done = list(wait(self._absent, return_when=FIRST_COMPLETED).done)
            for future in done:
                self._absent.pop(future).switch()

    def _advance(self) -> None:
        """Carry out as many iterations as all runs that wait for any have asked for."""
        active = np.zeros(self._capacity, bool)
        active[list(self._requests)] = True
        self.batch.direct(self._rhos, active)
        count = min(request.count - len(request.reports) for request in self._requests.values())
        with self._memory_told():
            reports = self.batch.advance(count)
        for place, request in list(self._requests.items()):
            request.reports.extend(reports[:, place])
            if len(request.reports) == request.count:
                del self._requests[place]
                request.run.switch()

    def takes(self, problem: Problem, n_atoms: int) -> bool:
        """Whether there is a place for such a run: the first to join decides of which kind all are."""
        alike = self._first is None or _kind(*self._first) == _kind(problem, n_atoms)
        return alike and bool(self._places)

    def join(self, problem: Problem, dictionary: Array, codes: Array) -> "Member":
        """Start a run in a free place."""
        if self._first is None:
            self.batch = make_batch(problem, len(dictionary), self._capacity)
            self._first = problem, len(dictionary)
        place = self._places[-1]
        with self._memory_told():
            self.batch.load(place, problem, dictionary, codes)
        self._places.pop()
        self._rhos[place] = problem.rhos[0]
        return Member(self, place, problem)

    def _memory_told(self) -> AbstractContextManager[None]:
        assert self._first is not None, "nobody has joined"
        return memory_told(*self._first, self._capacity)

    def leave(self, place: int) -> None:
        """Give a place back."""
        if place not in self._places:
            self._places.append(place)

    def steps(self, place: int, count: int, following: float | None) -> list[Array]:
        """Take part in iterations; returns the reports of the place."""
        if following is not None:
            self._rhos[place] = following
        request = self._requests[place] = Request(getcurrent(), count)
        self._leader.switch()
        return request.reports

    def result_of(self, future: "Future[Result]") -> Result:
        """Wait for another process, while the others go on."""
        self._absent[future] = getcurrent()
        self._leader.switch()
        return future.result()


def _kind(problem: Problem, n_atoms: int) -> tuple[Any, ...]:
    """What runs of one batch have in common."""
    data = problem.data
    return data.shape, data.dtype, n_atoms, problem.observed is None, problem.formulation.kind


class Member:
    """One run of a party; an ``Engine``."""

    burst = BURST

    def __init__(self, party: Party, place: int, problem: Problem) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._party, self._place = party, place
        self._data_norm = float(np.linalg.norm(problem.data))

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration, with the others; see ``Engine``."""
        (report,) = self._party.steps(self._place, 1, following)
        if following is not None:
            self.rhos = (following, following, following)
        return measured(report, self.problem, self._data_norm)

    def steps(self, count: int) -> list[Measures]:
        """Carry out ``count`` iterations, with the others."""
        reports = self._party.steps(self._place, count, None)
        return [measured(report, self.problem, self._data_norm) for report in reports]

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        atoms: Array = self._party.batch.dictionary(self._place)
        return atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = self._party.batch.codes(self._place)
        return codes

    def state(self) -> RunState:
        """Refuse: runs of a party are not kept on disk."""
        raise NotImplementedError("a run in a batch has no checkpoint")

    def restore(self, state: RunState, start: int = 0) -> None:
        """Refuse, as ``state`` does."""
        raise NotImplementedError("a run in a batch has no checkpoint")

    def close(self) -> None:
        """Leave the party; call it when the results have been read."""
        self._party.leave(self._place)


def all_together(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call each task; runs on the GPU that they make share a batch, if they are of the first one's shape and form.

    Parameters
    ----------
    tasks : sequence of callables
        Called without arguments; each makes a fit with ``engine="cuda"``, without a checkpoint.

    Returns
    -------
    list
        The tasks' results, in their order; the first failure is raised, once all have ended.
    """
    party = Party(len(tasks))
    results: dict[int, Result] = {}
    failures: list[Exception] = []

    def call(index: int) -> None:
        PARTY.set(party)
        try:
            results[index] = tasks[index]()
        except Exception as failure:
            failures.append(failure)

    party.lead([partial(call, index) for index in range(len(tasks))])
    if failures:
        raise failures[0]
    return [results[index] for index in range(len(tasks))]
