"""Runs of one shape that go through their iterations together on a GPU, each in a thread of its own.

A run's code knows nothing of the others: its engine's ``step`` waits until the others have come to theirs, one of them
carries out an iteration of the whole batch, and each gets its own measures.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadict.road.engines.cuda import make_batch, measured
from roadict.road.formulation import Measures, Problem, Triple
from roadict.road.state import RunState

Array = NDArray[np.floating]
Result = TypeVar("Result")

PATIENCE = 0.001
"""Seconds that a run waits for others that are not known to be busy with something else."""


class Party:
    """A batch with places that runs take and leave."""

    def __init__(self, capacity: int) -> None:
        self._places = list(range(capacity))
        self._capacity = capacity
        self._turn = threading.Condition()
        self._batch: Any = None
        self._rhos = np.ones(capacity)
        self._members: dict[int, Member] = {}
        self._asking: set[int] = set()
        self._away: set[int] = set()
        self._answers: dict[int, Array] = {}

    def join(self, problem: Problem, dictionary: Array, codes: Array) -> "Member":
        """Start a run in a free place."""
        with self._turn:
            if self._batch is None:
                self._batch = make_batch(problem, len(dictionary), self._capacity)
            place = self._places.pop()
            self._batch.load(place, problem, dictionary, codes)
            self._rhos[place] = problem.rhos[0]
            member = Member(self, place, problem)
            self._members[place] = member
            return member

    def leave(self, place: int) -> None:
        """Give a place back."""
        with self._turn:
            if self._members.pop(place, None) is not None:
                self._places.append(place)
                self._away.discard(place)
                self._turn.notify_all()

    def step(self, place: int, following: float | None) -> Array:
        """Take part in an iteration; returns the report of the place."""
        with self._turn:
            if following is not None:
                self._rhos[place] = following
            self._asking.add(place)
            self._away.discard(place)
            while place not in self._answers:
                complete = len(self._asking) + len(self._away) == len(self._members)
                if complete or (not self._turn.wait(PATIENCE) and place in self._asking):
                    self._advance()
            return self._answers.pop(place)

    def _advance(self) -> None:
        places = sorted(self._asking)
        active = np.zeros(self._capacity, bool)
        active[places] = True
        self._batch.direct(self._rhos, active)
        reports = self._batch.advance(1)[0]
        self._answers |= {place: reports[place] for place in places}
        self._asking.clear()
        self._turn.notify_all()

    def read(self, place: int, read: Callable[[Any], Result]) -> Result:
        """Read from the batch while no iteration is under way.

        Who reads is about to work on what was read, such as to look for an exact fit: the others do not wait for it.
        """
        with self._turn:
            self._away.add(place)
            self._turn.notify_all()
            return read(self._batch)


class Member:
    """One run of a party; an ``Engine``."""

    def __init__(self, party: Party, place: int, problem: Problem) -> None:
        self.problem = problem
        self.rhos: Triple = problem.rhos
        self._party, self._place = party, place
        self._data_norm = float(np.linalg.norm(problem.data))

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration, with the others; see ``Engine``."""
        report = self._party.step(self._place, following)
        if following is not None:
            self.rhos = (following, following, following)
        return measured(report, self.problem, self._data_norm)

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        return self._party.read(self._place, lambda batch: batch.dictionary(self._place))

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        return self._party.read(self._place, lambda batch: batch.codes(self._place))

    def state(self) -> RunState:
        """Refuse: runs of a party are not kept on disk."""
        raise NotImplementedError("a run in a batch has no checkpoint")

    def restore(self, state: RunState, start: int = 0) -> None:
        """Refuse, as ``state`` does."""
        raise NotImplementedError("a run in a batch has no checkpoint")

    def close(self) -> None:
        """Leave the party; call it when the results have been read."""
        self._party.leave(self._place)


PARTY: contextvars.ContextVar[Party | None] = contextvars.ContextVar("PARTY", default=None)
"""The party that new runs of this thread join."""


def all_together(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call each task in a thread of its own; runs on the GPU that they make, all of one shape, share a batch.

    Returns
    -------
    list
        The tasks' results, in their order; the first failure is raised, once all have ended.
    """
    party = Party(len(tasks))

    def join_and_call(task: Callable[[], Result]) -> Result:
        PARTY.set(party)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(contextvars.copy_context().run, join_and_call, task) for task in tasks]
    return [future.result() for future in futures]
