"""A complete fit of ROAD: run every start with exact finish and polish, return the best."""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import DESCENT, FitJournal, RunJournal
from roadict.engines.protocol import Engine
from roadict.engines.registry import make_engine
from roadict.exact_finish.search import ExactFit, find_exact_fit
from roadict.metrics import dictionary_error
from roadict.ranks.collectives import broadcast, total
from roadict.ranks.comm import Comm
from roadict.road.descent import STATIONARY, Descent
from roadict.road.fit import DEFAULT_TOL, build_fit, error_slack, minimal_codes, polished_fit
from roadict.road.passes import HeldRows, Passes, held_samples
from roadict.road.penalty import Annealing
from roadict.road.plan import Plan
from roadict.road.shaking import FINELY_STATIONARY, shaken
from roadict.road.stream import Stream, continued
from roadict.runs.driving import Fitting
from roadict.runs.history import COLUMNS, History
from roadict.runs.loop import Outcome, Rule, View, follow
from roadict.runs.result import Fit
from roadict.runs.signals import stop_requested
from roadict.runs.state import Run

if TYPE_CHECKING:
    from roadict.engines.gpu.batch import Pool

Array = NDArray[np.floating]
Start = tuple[Array, Array]
Starts = Callable[[Plan], Iterator[Start]]
"""Draws the starts of a plan, dictionary and codes in the engine's units, always the same."""

ENDED = ("callback", "non-finite")
"""Stop reasons after which a fit does not continue."""
SAME_OBJECTIVE = 1e-3
"""Relative difference up to which two objectives count as the same."""
SAME_ATOMS = 1e-3
"""Distance up to which two dictionaries count as the same."""
RECURRING = 0.98
"""Correlation above which an atom of one fit recurs in another."""
NEARLY_ALL, NEARLY_ALL_IF_COSTLY = 0.75, 0.9
"""Share of recurring atoms from which the others count as missed, where searches are cheap and where they are not:
natural images have 0.3 to 0.85, planted data 0.75 to 1 at 10 dB and 0.85 to 1 with less noise."""
AS_GOOD = 5e-3
"""Relative difference up to which objectives count as equally good if other atoms recur: up to 0.003 in such data."""
MANY = 5
"""Samples, relative to those of a search, from which a pass in mini-batches precedes the descent over all."""
SEARCH_TOL = 1e-2
"""Residuals at which a search ends that a descent follows: atoms no longer rearrange, and the descent is faster."""
FINISH_LEVELS = (4e-3, 1e-3)
"""Residuals at which the exact finish is tried before convergence."""


@dataclass(frozen=True)
class Settings:
    """Settings common to all runs of a fit.

    Attributes
    ----------
    engine : str
        One of ``ENGINES``, not "auto".
    max_iter, tol, n_jobs
        As for ``ROAD``.
    watched : bool
        Whether every iteration is observed; does not affect the result.
    pool : Pool or None
        GPU batch shared with other fits.
    executor : Executor or None
        Runs the exact finish in other processes while other fits continue.
    earlier : array of shape (n_components, n_features), or None
        Atoms of an earlier stage: the best so far until a search ends, which begins anew.
    """

    engine: str
    max_iter: int
    tol: float
    n_jobs: int | None
    watched: bool = True
    pool: "Pool | None" = None
    executor: Executor | None = None
    earlier: Array | None = None


def learn(plan: Plan, starts: Starts, settings: Settings, journal: FitJournal) -> Fitting[Fit]:
    """Run ROAD from one start after another; return the fit with the smallest objective within the error bound.

    If the plan has some samples to search with, all of this is done with these, and a descent over all samples follows.
    A fit that resumes repeats the former: checkpoints hold the codes of all samples.

    The remaining starts are skipped once a fit is exact or the best ``plan.required_agreement`` fits agree in objective
    and atoms: poor local minima mostly differ from each other, whereas the global one recurs. A run ended by a callback
    is the last. If the samples were scaled for the search and no fit is exact, a last run continues from the best fit
    on the samples as they are.

    Parameters
    ----------
    plan : Plan
    starts : callable
    settings : Settings
    journal : FitJournal
        Holds the fits of the first starts, if these have been run, and saves the fit periodically.
    """
    if plan.searched is not None:
        return (yield from _learn_from_some(plan, plan.searched, starts, settings, journal))
    fits = journal.fits
    yield from run_starts(plan, starts(plan), settings, journal)
    best = best_of(fits, plan, settings.tol)
    if best.outcome.stop_reason != "non-finite" and (was_ended(fits) or stop_requested()):
        best = replace(best, outcome=replace(best.outcome, stop_reason="callback"))
    agreed = sum(fit.dictionary is best.dictionary or _same(fit, best, plan) for fit in fits)
    n_starts = len(fits)
    if plan.lengths is not None and not best.exact and best.outcome.stop_reason in ("converged", "max_iter"):
        best = yield from _last_step(plan, best, settings, journal)
    return replace(best, n_starts=n_starts, n_agreed=agreed)


def _learn_from_some(
    plan: Plan, searched: Plan, starts: Starts, settings: Settings, journal: FitJournal
) -> Fitting[Fit]:
    """Learn from some samples, and descend from what was found over all.

    Where some samples do not determine the atoms, what was found fits them too closely to begin with. Descents from
    the first start, which like its shaken successors sees all samples, end lower.
    """
    view = View(plan.unit, watched=settings.watched, stage=DESCENT, code_unit=plan.code_unit)
    if journal.resumes_descent:
        start, before, ended = next(starts(plan)), None, False
    else:
        journal.notes["stationary"] = STATIONARY
        best = yield from learn(searched, starts, settings, journal.aside())
        journal.notes.update(n_starts=best.n_starts, n_agreed=best.n_agreed)
        no_codes = np.zeros((len(plan.problem.data), len(best.dictionary)), plan.problem.data.dtype)
        start, before = (best.dictionary, no_codes), best.outcome.history
        ended = best.outcome.stop_reason in ENDED
        outcome = best.outcome
        if not ended and plan.n_samples < MANY * searched.n_samples and _undetermined(best, searched):
            limits = settings.tol or DEFAULT_TOL, settings.max_iter, settings.n_jobs
            start, outcome = yield from shaken(plan, next(starts(plan)), *limits, view, journal.open_stage(), before)
            before, ended = outcome.history, outcome.stop_reason in ENDED
            journal.notes["stationary"] = FINELY_STATIONARY
        elif not ended and plan.n_samples >= MANY * searched.n_samples:
            data, observed, weights = held_samples(searched)
            stream = continued(best, plan, (data * data.dtype.type(searched.unit), observed, weights))
            atoms, outcome = yield from _pass_over_all(plan, stream, settings, journal, outcome.history)
            start, before, ended = (atoms, no_codes), outcome.history, outcome.stop_reason in ENDED
    if ended:
        fit = _finished(plan, outcome, *start, settings)
    else:
        fit = yield from descend(plan, start, settings, view, journal, before, journal.notes["stationary"])
    return replace(fit, n_starts=journal.notes["n_starts"], n_agreed=journal.notes["n_agreed"])


def _undetermined(best: Fit, searched: Plan) -> bool:
    """Whether the starts of a Lasso fit ended at the same objective with other atoms, so that none was searched.

    Under an error bound a step takes more codings: shaken atoms took half the time of a fit again, for 0.08 %.
    """
    alike = best.n_starts <= searched.n_unsearched and best.n_agreed < searched.required_agreement
    return alike and searched.alpha > 0


def _pass_over_all(
    plan: Plan, stream: Stream, settings: Settings, journal: FitJournal, before: History
) -> Fitting[tuple[Array, Outcome]]:
    """Pass once over all samples in mini-batches, which is faster than the first steps of a descent; returns atoms."""
    rows = HeldRows(held_samples(plan))
    # Like the choice of the samples to search with, the order depends on the samples alone.
    run = Passes(stream, rows, 1.0, plan.bound, np.random.SeedSequence(0), settings.n_jobs, plan.comm)
    rule = Rule(len(before["objective"]) + run.n_steps, 0.0)
    view = View(plan.unit, watched=settings.watched, stage="mini-batches", share=1 / total(plan.comm, rows.weight))
    outcome = yield from follow(run, rule, view, before, journal.open_stage(), plan.comm)
    return run.dictionary().astype(plan.problem.data.dtype), outcome


def run_starts(
    plan: Plan, starts: Iterable[Start], settings: Settings, journal: FitJournal, at_most: int | None = None
) -> Fitting[None]:
    """Run the starts that are left, ``at_most`` so many in all; appends to ``journal.fits``."""
    fits = journal.fits
    for index, (start, annealing) in enumerate(zip(starts, plan.runs, strict=True)):
        if index < len(fits):
            continue
        if _settled(fits, plan, settings.tol) or (at_most is not None and index >= at_most):
            break
        view = View(plan.unit, index + 1, len(plan.runs), settings.watched, "search", plan.code_unit, plan.share)
        if index < plan.n_unsearched:
            fit = yield from descend(plan, start, settings, view, journal, None)
        else:
            fit = yield from _fit_from(plan, start, annealing, settings, view, journal)
        fits.append(fit)
        yield fit


def _last_step(plan: Plan, best: Fit, settings: Settings, journal: FitJournal) -> Fitting[Fit]:
    """Continue from the best fit on the samples as they are, if iterations are left; return the better of the two."""
    before = best.outcome.history
    if len(before["objective"]) >= settings.max_iter:
        return best
    dtype = plan.problem.data.dtype
    start = best.dictionary, plan.weighted(best.codes / dtype.type(plan.unit)).astype(dtype)
    last = plan.last_step()
    view = View(plan.unit, 1, 1, settings.watched, "last step", last.code_unit)
    fit = yield from _fit_from(last, start, None, settings, view, journal, before)
    yield fit
    if fit.outcome.stop_reason == "callback" and fit.objective > best.objective:
        return replace(best, outcome=fit.outcome)
    if fit.exact or fit.outcome.stop_reason == "callback":
        return fit
    better = fit.objective <= best.objective and fit.outcome.stop_reason in ("converged", best.outcome.stop_reason)
    return fit if better else best


def _fit_from(
    plan: Plan,
    start: Start,
    annealing: Annealing | None,
    settings: Settings,
    view: View,
    journal: FitJournal,
    before: History | None = None,
) -> Fitting[Fit]:
    """Search from one start, and descend from what was found; ``before``: the history that the search continues."""
    if not journal.resumes_descent:
        with closing(open_engine(plan, start, annealing, settings)) as engine:
            saving, (history, level) = journal.open_run(engine)
            resumed = (before if history is None else history), level
            found = yield from _search(plan, engine, start, annealing, settings, view, saving, resumed)
        if isinstance(found, Fit):
            return found
        outcome, atoms, codes = found
        if settings.earlier is not None and view.start == 1 and before is None and stop_requested():
            atoms, codes = settings.earlier.astype(codes.dtype), np.zeros_like(codes)
        if not plan.descends or outcome.stop_reason in ENDED:
            return _finished(plan, outcome, atoms, codes, settings)
        start, before = (atoms, codes), outcome.history
    return (yield from descend(plan, start, settings, view, journal, before))


def descend(
    plan: Plan,
    start: Start,
    settings: Settings,
    view: View,
    journal: FitJournal,
    before: History | None,
    stationary: float = STATIONARY,
) -> Fitting[Fit]:
    """Lower the objective until it is stationary.

    ``before``: the history of the search, if there was one; ``stationary``: the tolerances at which it counts as such.
    """
    run = Descent(plan, *start, settings.n_jobs)
    saving, (resumed, n_before) = journal.open_run(run, DESCENT)
    history = resumed or before or History({name: [] for name in COLUMNS})
    n_before = n_before if resumed else len(history["objective"])
    saving = None if saving is None else replace(saving, level=n_before)
    tol = settings.tol or DEFAULT_TOL
    rule = Rule(n_before + settings.max_iter, stationary * tol, plan.bound, error_tol=tol)
    outcome = yield from follow(run, rule, replace(view, stage=DESCENT), history, saving, plan.comm)
    return _finished(plan, outcome, run.dictionary(), run.codes(), settings, run.weight)


def open_engine(plan: Plan, start: Start, annealing: Annealing | None, settings: Settings) -> Engine:
    """Return the engine of a run, with the ρ that its annealing begins with."""
    problem = plan.problem if annealing is None else replace(plan.problem, rhos=(annealing.first,) * 3)
    return make_engine(settings.engine, problem, *start, settings.n_jobs, plan.comm, settings.pool)


def _search(
    plan: Plan,
    engine: Engine,
    start: Start,
    annealing: Annealing | None,
    settings: Settings,
    view: View,
    journal: RunJournal | None,
    resumed: tuple[History | None, int],
) -> Fitting[Fit | tuple[Outcome, Array, Array]]:
    """Run to convergence, trying the exact finish at every level of ``FINISH_LEVELS`` on the way.

    ``resumed``: the history so far, and the number of levels already tried. Returns the exact fit, if there is one, or
    outcome, atoms and codes.
    """
    final = max(settings.tol, SEARCH_TOL) if plan.descends and annealing is not None and settings.tol else settings.tol
    levels = [level for level in FINISH_LEVELS if level > final > 0] if plan.tries_exact_finish else []
    history, first = resumed
    for index, tol in enumerate([*levels, final][first:], start=first):
        rule = Rule(settings.max_iter, tol, plan.bound, annealing)
        saving = None if journal is None else replace(journal, level=index)
        outcome = yield from follow(engine, rule, view, history, saving, plan.comm)
        if outcome.stop_reason == "non-finite":
            return outcome, *start
        atoms, codes = broadcast_atoms(engine, plan.comm)
        if outcome.stop_reason == "converged" and plan.tries_exact_finish:
            fit = yield from _exact_fit(plan, outcome, atoms, codes, settings)
            if fit is not None:
                return fit
        if outcome.stop_reason != "converged":
            break
        history = outcome.history
    return outcome, atoms, codes


def _finished(
    plan: Plan, outcome: Outcome, atoms: Array, codes: Array, settings: Settings, weight: float | None = None
) -> Fit:
    with np.errstate(all="ignore"):  # overflow is reported by the stop reason
        return polished_fit(plan, outcome, atoms, codes, settings.tol, settings.n_jobs, weight)


def broadcast_atoms(run: Run, comm: Comm) -> tuple[Array, Array]:
    """Return the atoms of rank 0, and this rank's codes for them.

    On different machines an atom may differ in its last bits and its sign.
    """
    own = run.dictionary()
    atoms = broadcast(comm, own)
    codes = run.codes()
    signs = np.where(np.sum(own * atoms, axis=1) < 0, -1, 1).astype(codes.dtype)
    return atoms, codes * signs


def _exact_fit(plan: Plan, outcome: Outcome, atoms: Array, codes: Array, settings: Settings) -> Fitting[Fit | None]:
    """Return an exact fit near these atoms and codes with no larger objective, if there is one."""
    atoms, codes = atoms.astype(np.float64), codes.astype(np.float64)
    search = partial(find_exact_fit, constraints=plan.problem.constraints)
    found: ExactFit | None
    if settings.executor is None:
        with np.errstate(all="ignore"):
            found = search(plan.problem.data, atoms, codes, settings.n_jobs, plan.comm)
    else:
        future = settings.executor.submit(search, plan.problem.data, atoms, codes, settings.n_jobs)
        yield future
        found = future.result()
    if found is None:
        return None
    sizes = [total(plan.comm, float(np.abs(plan.weighted(each)).sum())) for each in (found.codes, codes)]
    if sizes[0] > (1 + SAME_OBJECTIVE) * sizes[1]:
        return None
    return build_fit(plan, outcome, found.dictionary, found.codes, exact=True)


def finish_exactly(plan: Plan, fit: Fit, settings: Settings) -> Fitting[Fit | None]:
    """Return an exact fit near a fit with another error bound, if there is one: then its data were exact after all.

    ``plan``: that of error bound 0.
    """
    atoms = fit.dictionary
    codes = minimal_codes(plan, atoms, np.zeros_like(fit.codes), settings.tol, settings.n_jobs)
    exact = yield from _exact_fit(plan, fit.outcome, atoms, codes, settings)
    return None if exact is None else replace(exact, n_starts=fit.n_starts, n_agreed=fit.n_agreed)


def best_of(fits: list[Fit], plan: Plan, tol: float) -> Fit:
    """Return the best fit."""
    return _ranked(fits, plan, tol)[0]


def _ranked(fits: list[Fit], plan: Plan, tol: float) -> list[Fit]:
    """Sort fits, best first: exact, finite, smallest violation of the error bound, smallest objective.

    The objective is that of the last iteration; if a run was ended before it met the bound, that of the polished codes.
    """
    allowed = math.inf if plan.bound is None else plan.bound + error_slack(tol)
    ended = was_ended(fits)

    def order(fit: Fit) -> tuple[bool, bool, float, float]:
        excess = fit.error if fit.error > allowed else 0.0
        objective = fit.objective if ended else fit.final_objective
        return not fit.exact, fit.outcome.stop_reason == "non-finite", excess, objective

    return sorted(fits, key=order)


def was_ended(fits: list[Fit]) -> bool:
    """Whether a callback has ended one of the runs."""
    return any(fit.outcome.stop_reason == "callback" for fit in fits)


def _settled(fits: list[Fit], plan: Plan, tol: float) -> bool:
    """Whether further starts are skipped: a fit is exact, a callback or Ctrl-C has ended it, or the best ones agree."""
    if any(fit.exact for fit in fits) or was_ended(fits) or (fits and stop_requested()):
        return True
    if len(fits) < plan.required_agreement:
        return False
    best, *others = _ranked(fits, plan, tol)[: plan.required_agreement]
    return all(_same(other, best, plan) or _as_good(other, best, plan) for other in others)


def _same(fit: Fit, best: Fit, plan: Plan) -> bool:
    """Whether a fit has the objective and the learned atoms of the best one."""
    if fit.final_objective > (1 + SAME_OBJECTIVE) * best.final_objective:
        return False
    learned, others = (each.dictionary[plan.problem.n_fixed :] for each in (fit, best))
    return not len(learned) or dictionary_error(learned, others) < SAME_ATOMS


def _as_good(fit: Fit, best: Fit, plan: Plan) -> bool:
    """Whether a descent ends at the same objective with other atoms: many dictionaries are equally good.

    If nearly all atoms recur, the others may have been missed.
    """
    if not plan.descends:
        return False
    learned, others = (each.dictionary[plan.problem.n_fixed :] for each in (fit, best))
    recurring = plan.problem.constraints.likeness(learned @ others.T).max(axis=1) > RECURRING
    alike = fit.final_objective <= (1 + AS_GOOD) * best.final_objective
    return alike and bool(recurring.mean() < (NEARLY_ALL if plan.search_is_cheap else NEARLY_ALL_IF_COSTLY))
