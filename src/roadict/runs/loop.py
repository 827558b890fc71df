"""The iteration loop of all methods, as an iterator of snapshots, and the test for convergence."""

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.collectives import allreduce_max
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.history import History
from roadict.runs.measures import Reported, is_finite
from roadict.runs.signals import stop_requested
from roadict.runs.snapshot import Snapshot
from roadict.runs.state import Batched, Bursting, Run

StopReason = Literal["converged", "max_iter", "callback", "non-finite", "interrupted"]
"""Runs end for one of the first four; "interrupted" is a model that a program saved after Ctrl-C."""
Columns = dict[str, list[float]]
RhoRule = Callable[[int, float, Sequence[float], Sequence[float]], float]
"""Maps the iteration, its ρ and all primal and dual residuals so far to the next iteration's ρ."""

ERROR_SLACK = 10
"""A run has converged only if its data error is at most this many tolerances above the bound."""


@dataclass(frozen=True)
class Rule:
    """How a run proceeds and when it ends.

    Attributes
    ----------
    max_iter : int
    tol : float
        Bound on both residuals; 0: run all iterations.
    error_bound : float or None
        Bound on the relative data error; None: the formulation has none.
    annealing : RhoRule or None
        How ρ follows the residuals; None: constant ρ.
    error_tol : float or None
        Tolerance to which the slack of the error bound refers; None: ``tol``.
    """

    max_iter: int
    tol: float
    error_bound: float | None = None
    annealing: RhoRule | None = None
    error_tol: float | None = None

    @property
    def error_slack(self) -> float:
        """Relative data error by which a run may exceed its bound."""
        return ERROR_SLACK * (self.tol if self.error_tol is None else self.error_tol)


@dataclass(frozen=True)
class View:
    """How a run is presented to observers.

    Attributes
    ----------
    unit : float
        The user's data over the run's; objective, rho and codes are reported in the user's units.
    start, n_starts : int
        Number of the start, counting from 1, and maximum number of starts.
    watched : bool
        Whether every iteration is observed; if not, a GPU carries out several at a time.
    stage : str
        The part of the fit that the run belongs to.
    code_unit : array of shape (n_samples, 1), or None
        What each sample's codes are multiplied by, besides the unit.
    share : float
        Share of all samples that the run uses; the objective, a sum over samples, is divided by it.
    """

    unit: float = 1.0
    start: int = 1
    n_starts: int = 1
    watched: bool = True
    stage: str = "search"
    code_unit: NDArray[np.floating] | None = None
    share: float = 1.0


class Journal(Protocol):
    """Saves a run periodically."""

    def wants(self) -> tuple[int, int]:
        """Whether a checkpoint is due; and the number of the signal that requests a stop, or 0."""

    def save(self, columns: Columns, stop: int) -> None:
        """Save the run with its history ``columns``; raises if the run should stop."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    history: History
    stop_reason: StopReason


def iterate(run: Run, rule: Rule, columns: Columns, view: View) -> Generator[Snapshot | None, None, None]:
    """Carry out iterations; yield a snapshot after each, or after each burst if the run is not watched.

    Parameters
    ----------
    run : Run
        New, or restored to the end of ``columns``.
    rule : Rule
        Its annealing and max_iter; the consumer tests for convergence.
    columns : dict of str to list of float
        The history so far, by name and in the user's units; extended by every iteration.
    view : View

    Yields
    ------
    Snapshot or None
        None: the run has submitted work to a batch, and other runs should submit theirs before it is carried out.
    """
    started = time.perf_counter() - (columns["seconds"][-1] if columns.get("seconds") else 0.0)
    stride = 1 if view.watched else check_interval(run, rule)
    batched = run if isinstance(run, Batched) else None
    bursting = run if isinstance(run, Bursting) else None
    while (iteration := len(columns.get("objective", ())) + 1) <= rule.max_iter:
        rho = run.rhos[0] if run.rhos else None
        following = None
        if rule.annealing is not None and rho is not None:
            new = rule.annealing(iteration, rho, columns.get("primal", ()), columns.get("dual", ()))
            following = None if new == rho else new
        count = min(stride - (iteration - 1) % stride, rule.max_iter + 1 - iteration)
        if batched is not None:
            batched.submit(count, following)
            yield None
        with np.errstate(all="ignore"):  # overflow shows in the measures
            several = bursting.steps(count) if bursting is not None and count > 1 else [run.step(following)]
        for measures in several:
            row = _record(columns, measures, rho, view, time.perf_counter() - started)
            finite = is_finite(measures)
            if not finite:
                break
        snapshot = Snapshot(
            run,
            row,
            measures.RESIDUALS,
            iteration=len(columns["objective"]),
            max_iter=rule.max_iter,
            start=view.start,
            n_starts=view.n_starts,
            stage=view.stage,
            code_unit=view.unit if view.code_unit is None else view.unit * view.code_unit,
            finite=finite,
        )
        try:
            yield snapshot
        finally:
            snapshot.expire()


def check_interval(run: Run, rule: Rule) -> int:
    """Iterations between two tests for convergence; more than one for a run in bursts."""
    return run.burst if isinstance(run, Bursting) and rule.annealing is None else 1


def _record(columns: Columns, measures: Reported, rho: float | None, view: View, seconds: float) -> dict[str, float]:
    """Append an iteration to the history, in the user's units, and return it."""
    row = {**vars(measures), "objective": measures.objective * (view.unit / view.share)}
    if rho is not None:
        row["rho"] = rho / view.unit
    row["seconds"] = seconds
    length = len(columns.get("objective", ()))
    for name in dict.fromkeys([*columns, *row]):  # a descent has other measures than the search that it continues
        columns.setdefault(name, [math.nan] * length).append(row.setdefault(name, math.nan))
    return row


def follow(
    run: Run, rule: Rule, view: View, before: History | None = None, journal: Journal | None = None, comm: Comm = SERIAL
) -> Generator[Snapshot | None, None, Outcome]:
    """Iterate until the run converges or is stopped; yields what ``iterate`` yields.

    All ranks stop if one does: on different machines a residual may round to either side of the tolerance.

    Parameters
    ----------
    run, rule, view
        As for ``iterate``.
    before : History or None
        History so far, if the run continues.
    journal : Journal or None
        Saves the run periodically.
    comm : Comm
    """
    columns: Columns = {} if before is None else {name: column.tolist() for name, column in before.items()}
    (watched,) = allreduce_max(comm, int(view.watched or journal is not None))
    interval = check_interval(run, rule)
    with closing(iterate(run, rule, columns, replace(view, watched=bool(watched)))) as snapshots:
        for snapshot in snapshots:
            if snapshot is None:
                yield None
                continue
            if not snapshot.finite:
                return Outcome(History(columns), "non-finite")
            yield snapshot
            due_for_test = snapshot.iteration % interval == 0 or snapshot.iteration == rule.max_iter
            within_tol = due_for_test and has_converged(snapshot, rule)
            stop_asked = snapshot.stopped or stop_requested()
            votes = (stop_asked, within_tol, *((0, 0) if journal is None else journal.wants()))
            stopped, converged, due, stop = allreduce_max(comm, *map(int, votes))
            if stopped or converged:
                return Outcome(History(columns), "callback" if stopped else "converged")
            if journal is not None and (due or stop):
                journal.save(columns, stop)
    return Outcome(History(columns), "max_iter")


def has_converged(snapshot: Snapshot, rule: Rule) -> bool:
    """Whether both residuals are within ``tol`` and the data error is within its bound (eq. stop-conditions)."""
    if rule.tol == 0 or max(snapshot.residuals.values()) > rule.tol:
        return False
    return rule.error_bound is None or snapshot.error <= rule.error_bound + rule.error_slack
