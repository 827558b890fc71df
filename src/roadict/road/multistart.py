"""A whole fit: starts, runs, polish, and the best of them."""

import math
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import Journal, finished_fits, resume
from roadict.checkpoints.schedule import Keeper
from roadict.checkpoints.storage import Found
from roadict.engines.protocol import PARTY, Engine
from roadict.engines.registry import make_engine
from roadict.exact_finish.search import find_exact_fit
from roadict.metrics import dictionary_error
from roadict.progress.terminal import ProgressLine
from roadict.ranks.collectives import first_of, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road.fit import error_slack, finish, to_user
from roadict.road.penalty import Annealing
from roadict.road.plan import Plan
from roadict.runs.history import History
from roadict.runs.loop import Callback, Outcome, solve
from roadict.runs.result import Fit, summary
from roadict.runs.state import Run

Array = NDArray[np.floating]
Start = tuple[Array, Array]

SAME_OBJECTIVE = 1e-3
"""Relative difference up to which two objectives count as the same."""
SAME_ATOMS = 1e-3
"""Distance of two dictionaries up to which they count as the same."""
LEAVES_A_GPU_IDLE = 2**22
"""Numbers of a state array up to which the starts of a fit share the GPU."""
LOOKS = (4e-3, 1e-3)
"""Residuals, on the way down, at which an exact fit is looked for."""
ELSEWHERE: ContextVar[Callable[..., Any] | None] = ContextVar("ELSEWHERE", default=None)
"""Calls a function in another process, for fits that share this one: they need not wait for one that looks."""


def learn(
    plan: Plan,
    starts: Iterable[Start],
    *,
    engine: str,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    verbose: int,
    n_jobs: int | None,
    keeper: Keeper | None = None,
) -> Fit:
    """Run ROAD from one start after the other and keep the fit with the smallest objective within the bound.

    Once a fit is exact, or the best two (of scarce data three) agree in their objective and their atoms, the other
    starts are left: wrong minima mostly differ from each other, the right one is found again. A run that a callback
    ended is the last one.

    Parameters
    ----------
    plan : Plan
    starts : iterable of (dictionary, codes)
        In the engine's units.
    engine : str
        Of ``ENGINES``, not "auto".
    max_iter, tol, callback, verbose, n_jobs
        As for ``ROAD``.
    keeper : Keeper or None
        Keeps the fit from time to time; it goes on from the checkpoint found, if there is one.
    """
    if keeper is not None and PARTY.get() is not None:
        raise ValueError("a fit among all_together keeps no checkpoint; do it by itself, or without a checkpoint")
    settings = RunSettings(engine, max_iter, tol, n_jobs)
    if engine == "cuda" and keeper is None and callback is None and _may_share(plan):
        starts = list(starts)
        if plan.problem.data.size * len(starts[0][0]) <= LEAVES_A_GPU_IDLE:
            return _chosen(plan, tol, _fits_together(plan, starts, settings, verbose))
    found = None
    if keeper is not None:  # who holds a checkpoint's files keeps their space on the disk
        found, keeper.found = keeper.found, None
    fits = [] if found is None else finished_fits(found)
    for index, (start, annealing) in enumerate(zip(starts, plan.runs, strict=True)):
        if found is not None and index < len(found.facts["fits"]):
            continue
        line = ProgressLine(every_iteration=verbose > 1) if verbose and plan.comm.rank == 0 else None
        callbacks = tuple(call for call in (line, callback) if call is not None)
        keep = None if keeper is None else Keep(keeper, fits, found)
        fit = _fit(plan, start, annealing, settings, callbacks, keep)
        found = None
        fits.append(fit)
        if line is not None:
            line.close(summary(fit))
        if _enough(fits, plan, tol):
            break
    return _ranked(fits, plan, tol)[0]


@dataclass(frozen=True)
class RunSettings:
    """What all runs of a fit have in common."""

    engine: str
    max_iter: int
    tol: float
    n_jobs: int | None


@dataclass(frozen=True)
class Keep:
    """Where a run is kept, the fits before it, and the checkpoint that it goes on from, if there is one."""

    keeper: Keeper
    fits: list[Fit]
    found: Found | None


def _fit(
    plan: Plan,
    start: Start,
    annealing: Annealing | None,
    settings: RunSettings,
    callbacks: tuple[Callback, ...],
    keep: Keep | None = None,
) -> Fit:
    """One run from one start."""
    with np.errstate(all="ignore"):  # a run that overflows says so by its stop reason
        problem = plan.problem if annealing is None else replace(plan.problem, rhos=(annealing.first,) * 3)
        run = make_engine(settings.engine, problem, *start, settings.n_jobs, plan.comm)
        journal = None if keep is None else Journal(keep.keeper, run, keep.fits)
        try:
            progress = (None, 0) if keep is None or keep.found is None else resume(keep.found, run)
            return _run(plan, run, start, annealing, settings, callbacks, journal, progress)
        finally:
            run.close()


def _may_share(plan: Plan) -> bool:
    """Whether starts may go through their iterations at once.

    Not where a run may end with an exact fit: the others are then not needed, and looking for it is the CPU's work.
    """
    return len(plan.runs) > 1 and not plan.wants_exact_fit and plan.comm is SERIAL and PARTY.get() is None


def _fits_together(plan: Plan, starts: Iterable[Start], settings: RunSettings, verbose: int) -> list[Fit]:
    from roadict.engines.gpu.batch import all_together

    line = ProgressLine(every_iteration=verbose > 1) if verbose else None
    tasks: list[Callable[[], Fit]] = []
    for start, annealing in zip(starts, plan.runs, strict=True):
        callbacks = (line,) if line is not None and not tasks else ()  # the first run tells of all
        tasks.append(partial(_fit, plan, start, annealing, settings, callbacks))
    fits = all_together(tasks)
    if line is not None:
        line.close(f"{summary(fits[0])}; {len(fits)} starts together")
    return fits


def _chosen(plan: Plan, tol: float, fits: list[Fit]) -> Fit:
    """The fit that is chosen where starts are tried one after the other, and the last ones left out."""
    tried = next((fits[:n] for n in range(1, len(fits)) if _enough(fits[:n], plan, tol)), fits)
    return _ranked(tried, plan, tol)[0]


def _enough(fits: list[Fit], plan: Plan, tol: float) -> bool:
    """Whether the starts that are left need not be tried."""
    return fits[-1].exact or fits[-1].outcome.stop_reason == "callback" or _agree(fits, plan, tol)


def _run(
    plan: Plan,
    run: Engine,
    start: Start,
    annealing: Annealing | None,
    settings: RunSettings,
    callbacks: tuple[Callback, ...],
    journal: Journal | None,
    progress: tuple[History | None, int],
) -> Fit:
    """Run to the tolerance, or to a rougher one at which an exact fit is in reach.

    ``progress`` is the history so far and the number of rougher tolerances already met.
    """
    looks = [level for level in LOOKS if level > settings.tol > 0] if plan.wants_exact_fit else []
    history, first = progress
    for index, tol in enumerate([*looks, settings.tol][first:], start=first):
        outcome = solve(
            run,
            max_iter=settings.max_iter,
            tol=tol,
            error_bound=plan.bound,
            annealing=annealing,
            unit=plan.unit,
            callbacks=callbacks,
            before=history,
            watch=None if journal is None else replace(journal, level=index),
            comm=plan.comm,
        )
        if outcome.stop_reason == "non-finite":
            return finish(plan, outcome, *start, settings.tol, settings.n_jobs)
        atoms, codes = agreed_atoms(run, plan.comm)
        if plan.wants_exact_fit and outcome.stop_reason == "converged":
            fit = _exact_fit(plan, outcome, atoms, codes, settings.n_jobs)
            if fit is not None:
                return fit
        if outcome.stop_reason != "converged":
            break
        history = outcome.history
    return finish(plan, outcome, atoms, codes, settings.tol, settings.n_jobs)


def agreed_atoms(run: Run, comm: Comm) -> tuple[Array, Array]:
    """Return the atoms of rank 0, and this rank's codes for them.

    Machines that are not alike may differ in the last bit of an atom, and in its sign.
    """
    own = run.dictionary()
    atoms = first_of(comm, own)
    codes = run.codes()
    signs = np.where(np.sum(own * atoms, axis=1) < 0, -1, 1).astype(codes.dtype)
    return atoms, codes * signs


def _exact_fit(plan: Plan, outcome: Outcome, atoms: Array, codes: Array, n_jobs: int | None) -> Fit | None:
    """Return an exact fit near these atoms and codes, whose objective is no larger, if there is one."""
    atoms, codes = atoms.astype(np.float64), codes.astype(np.float64)
    elsewhere = ELSEWHERE.get()
    if elsewhere is None:
        found = find_exact_fit(plan.problem.data, atoms, codes, n_jobs, plan.comm)
    else:
        found = elsewhere(find_exact_fit, plan.problem.data, atoms, codes, n_jobs)
    if found is None:
        return None
    sizes = [total(plan.comm, float(np.abs(each).sum())) for each in (found.codes, codes)]
    if sizes[0] > (1 + SAME_OBJECTIVE) * sizes[1]:
        return None
    return to_user(plan, outcome, found.dictionary, found.codes, exact=True)


def _ranked(fits: list[Fit], plan: Plan, tol: float) -> list[Fit]:
    """The best first: exact, finite, within the bound or nearest to it, smallest objective."""
    allowed = math.inf if plan.bound is None else plan.bound + error_slack(tol)

    def order(fit: Fit) -> tuple[bool, bool, float, float]:
        excess = fit.error if fit.error > allowed else 0.0
        return not fit.exact, fit.outcome.stop_reason == "non-finite", excess, fit.minimised

    return sorted(fits, key=order)


def _agree(fits: list[Fit], plan: Plan, tol: float) -> bool:
    """Whether the best fits, as many as the plan asks for, found the same atoms; wrong minima mostly differ."""
    if len(fits) < plan.agreeing:
        return False
    best, *others = _ranked(fits, plan, tol)[: plan.agreeing]
    return all(
        other.minimised <= (1 + SAME_OBJECTIVE) * best.minimised
        and dictionary_error(other.dictionary, best.dictionary) < SAME_ATOMS
        for other in others
    )
