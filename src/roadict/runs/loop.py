"""THE loop: step, record, tell, stop. Every formulation and every engine goes through it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.collectives import largest_of_each
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.history import COLUMNS, History
from roadict.runs.measures import Measures
from roadict.runs.state import Run

Array = NDArray[np.floating]
StopReason = Literal["converged", "max_iter", "callback", "non-finite"]

ERROR_SLACK = 10
"""A run has converged only if its data error is at most this many tolerances above the bound."""


@runtime_checkable
class Bursting(Protocol):
    """A run that can carry out several iterations before anybody looks."""

    burst: int

    def steps(self, count: int) -> list[Measures]:
        """Carry out ``count`` ≤ ``burst`` iterations."""


class Snapshot:
    """Read-only view of a run, given to callbacks after every iteration; copy from it what should outlast the call.

    Attributes
    ----------
    iteration, max_iter : int
    objective, primal, dual, error, rho, seconds : float
        The measures of this iteration, as in ``history_``.

    Examples
    --------
    >>> from roadict import AlternatingDictionaryLearning
    >>> from roadict.synthetic import planted
    >>> seen = []
    >>> def stop_after_three(snapshot):
    ...     seen.append(snapshot.error)
    ...     return snapshot.iteration == 3
    >>> model = AlternatingDictionaryLearning(8, n_nonzero_coefs=2, callback=stop_after_three, random_state=0)
    >>> model.fit(planted(60, 6, 8, sparsity=2, random_state=0).data).stop_reason_, len(seen)
    ('callback', 3)
    """

    def __init__(self, engine: Run, unit: float, iteration: int, max_iter: int, row: dict[str, float]) -> None:
        self._engine = engine
        self._unit = unit
        self.iteration = iteration
        self.max_iter = max_iter
        self.objective, self.error = row["objective"], row["error"]
        self.primal, self.dual = row["primal"], row["dual"]
        self.rho, self.seconds = row["rho"], row["seconds"]

    @property
    def dictionary(self) -> Array:
        """Atoms after this iteration, shape (n_components, n_features); a copy that cannot be written to."""
        return _read_only(self._engine.dictionary())

    @property
    def codes(self) -> Array:
        """Codes after this iteration, shape (n_samples, n_components), in the units of the data."""
        return _read_only(self._engine.codes() * self._unit)


def _read_only(array: Array) -> Array:
    view = array.copy()
    view.flags.writeable = False
    return view


Callback = Callable[[Snapshot], Any]
Columns = dict[str, list[float]]
Annealing = Callable[[int, float, Sequence[float], Sequence[float]], float]


class Watch(Protocol):
    """What is asked between two iterations whether the run should be kept."""

    def wants(self) -> tuple[int, int]:
        """Whether it is time to keep the run; and, if it should end, the number of the signal that says so, else 0."""

    def keep(self, columns: Columns, stop: int) -> None:
        """Keep the run, whose history is in ``columns``; raises where it should end."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    history: History
    stop_reason: StopReason


def solve(
    engine: Run,
    *,
    max_iter: int,
    tol: float,
    error_bound: float | None,
    annealing: Annealing | None = None,
    unit: float = 1.0,
    callbacks: tuple[Callback, ...] = (),
    before: History | None = None,
    watch: Watch | None = None,
    comm: Comm = SERIAL,
) -> Outcome:
    """Iterate until both residuals and the data error are small, or something else ends the run.

    Parameters
    ----------
    engine : Run
        Fresh, or brought to where ``before`` ends.
    max_iter : int
    tol : float
        Bound on both relative residuals; 0: run all iterations.
    error_bound : float or None
        Relative data error that the formulation allows; None: it sets no bound.
    annealing : Annealing or None
        How ρ follows the residuals. None: it stays.
    unit : float
        The user's data over the engine's; objective, rho and codes are reported in the user's units.
    callbacks : tuple of callables
        Each sees a Snapshot after every iteration; one that returns True (of Python or NumPy) ends the run.
    before : History or None
        Of the run so far, if this continues one.
    watch : Watch or None
        Keeps the run from time to time, where it goes on.
    comm : Comm
        The ranks. What one of them is told by a callback or a signal, all do.
    """
    columns: Columns = {name: [] if before is None else before[name].tolist() for name in COLUMNS}
    started = time.perf_counter() - (columns["seconds"][-1] if columns["seconds"] else 0.0)
    (watched,) = largest_of_each(comm, int(bool(callbacks) or watch is not None))
    while (iteration := len(columns["rho"]) + 1) <= max_iter:
        rho = engine.rhos[0]
        if isinstance(engine, Bursting) and annealing is None and not watched:
            several = engine.steps(min(engine.burst, max_iter + 1 - iteration))
        else:
            following = rho if annealing is None else annealing(iteration, rho, columns["primal"], columns["dual"])
            several = [engine.step(None if following == rho else following)]
        for measures in several:
            row = _record(columns, measures, rho, unit, time.perf_counter() - started)
            if not measures.finite:
                return Outcome(History(columns), "non-finite")
        answers = [call(Snapshot(engine, unit, iteration, max_iter, row)) for call in callbacks]
        converged = tol > 0 and has_converged(measures, tol, error_bound)
        ended, settled, due, stop = largest_of_each(comm, *_votes(answers, converged, watch))
        if ended or settled:
            return Outcome(History(columns), "callback" if ended else "converged")
        if watch is not None and (due or stop):
            watch.keep(columns, stop)
    return Outcome(History(columns), "max_iter")


def _record(columns: Columns, measures: Measures, rho: float, unit: float, seconds: float) -> dict[str, float]:
    """Append an iteration to the history, in the user's units, and return it."""
    row = vars(measures) | {"objective": measures.objective * unit, "rho": rho / unit, "seconds": seconds}
    for name in COLUMNS:
        columns[name].append(row[name])
    return row


def _votes(answers: list[Any], converged: bool, watch: Watch | None) -> tuple[int, int, int, int]:
    """Whether a callback ends the run, whether it has converged, is to be kept, and the signal that ends it, or 0.

    What one rank finds is done by all: unlike machines may round a residual to either side of the tolerance.
    """
    ended = any(isinstance(answer, bool | np.bool_) and answer for answer in answers)
    return int(ended), int(converged), *((0, 0) if watch is None else watch.wants())


def has_converged(measures: Measures, tol: float, error_bound: float | None) -> bool:
    """Whether both residuals are within ``tol`` and the data error is within its bound (eq. stop-conditions)."""
    settled = measures.primal <= tol and measures.dual <= tol
    return settled and (error_bound is None or measures.error <= error_bound + ERROR_SLACK * tol)
