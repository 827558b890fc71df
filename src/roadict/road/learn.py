"""A whole fit: starts, runs, polish, and the best of them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roadict.distributed import SERIAL
from roadict.linalg import leading_signs
from roadict.metrics import dictionary_error
from roadict.progress import ProgressLine, duration
from roadict.road.engines.pick import Engine, engine_name, make_engine
from roadict.road.exact import find_exact_fit
from roadict.road.formulation import Problem
from roadict.road.penalty import Annealing
from roadict.road.plan import Plan
from roadict.road.polish import merge_duplicates, polish_codes
from roadict.road.solve import ERROR_SLACK, Callback, Outcome, solve

Array = NDArray[np.floating]
Start = tuple[Array, Array]

USUAL_TOL = 1e-4
"""Tolerance that decides what the polish may drop where the user set none."""
MOST_NEGLIGIBLE = 1e-2
"""Largest share of a sample that the polish drops, however rough the run."""
SAME_OBJECTIVE = 1e-3
"""Relative difference up to which two objectives count as the same."""
SAME_ATOMS = 1e-3
"""Distance of two dictionaries up to which they count as the same."""
LOOKS = (4e-3, 1e-3)
"""Residuals, on the way down, at which an exact fit is looked for."""
WEIGHINGS = 30
"""Weights tried for a fit that meets its bound."""
POLISHES = 6
"""Attempts at a polish, each dropping half as much as the one before."""


@dataclass(frozen=True)
class Fit:
    """What a fit gives, in the user's units: atoms of unit norm, polished codes, and how it went."""

    outcome: Outcome
    dictionary: Array
    codes: Array
    error: float
    objective: float
    exact: bool = False
    """Whether nearly every sample is a combination of few atoms, to rounding; other starts are then not tried."""

    @property
    def minimised(self) -> float:
        """What the run minimised, at its end: unlike the objective of polished codes it can be compared."""
        return float(self.outcome.history["objective"][-1])


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
    engine, max_iter, tol, callback, verbose, n_jobs
        As for ``ROAD``.
    """
    fits: list[Fit] = []
    for start, annealing in zip(starts, plan.runs, strict=True):
        line = ProgressLine(every_iteration=verbose > 1) if verbose else None
        callbacks = tuple(call for call in (line, callback) if call is not None)
        with np.errstate(all="ignore"):  # a run that overflows says so by its stop reason
            problem = plan.problem if annealing is None else replace(plan.problem, rhos=(annealing.first,) * 3)
            run = make_engine(engine_name(engine, *problem.data.shape), problem, *start, n_jobs, SERIAL)
            settings = RunSettings(max_iter, tol, annealing, callbacks, n_jobs)
            try:
                fit = _run(plan, run, start, settings)
            finally:
                run.close()
            del run  # frees the state before the next one is made
        fits.append(fit)
        if line is not None:
            line.close(summary(fit))
        if fit.exact or fit.outcome.stop_reason == "callback" or _agree(fits, plan, tol):
            break
    return _ranked(fits, plan, tol)[0]


@dataclass(frozen=True)
class RunSettings:
    """What one run needs beside its engine."""

    max_iter: int
    tol: float
    annealing: Annealing | None
    callbacks: tuple[Callback, ...]
    n_jobs: int | None


def _run(plan: Plan, run: Engine, start: Start, settings: RunSettings) -> Fit:
    """Run to the tolerance, or to a rougher one at which an exact fit is in reach."""
    looks = [level for level in LOOKS if level > settings.tol > 0] if plan.wants_exact_fit else []
    history = None
    for level in [*looks, settings.tol]:
        outcome = solve(
            run,
            max_iter=settings.max_iter,
            tol=level,
            error_bound=plan.bound,
            annealing=settings.annealing,
            unit=plan.unit,
            callbacks=settings.callbacks,
            before=history,
        )
        if outcome.stop_reason == "non-finite":
            return _finish(plan, outcome, *start, settings)
        if plan.wants_exact_fit and outcome.stop_reason == "converged":
            atoms, codes = run.dictionary().astype(np.float64), run.codes().astype(np.float64)
            found = find_exact_fit(plan.problem.data, atoms, codes, settings.n_jobs)
            if found is not None and np.abs(found.codes).sum() <= (1 + SAME_OBJECTIVE) * np.abs(codes).sum():
                return _to_user(plan, outcome, found.dictionary, found.codes, exact=True)
        if outcome.stop_reason != "converged":
            break
        history = outcome.history
    return _finish(plan, outcome, run.dictionary(), run.codes(), settings)


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


def error_slack(tol: float) -> float:
    """Relative data error above the bound that a fit may have."""
    return ERROR_SLACK * (tol or USUAL_TOL)


def _finish(plan: Plan, outcome: Outcome, dictionary: Array, raw: Array, settings: RunSettings) -> Fit:
    merged = merge_duplicates(dictionary, raw)
    return _to_user(plan, outcome, dictionary, _polish(plan, dictionary, merged, settings.tol, settings.n_jobs))


def _to_user(plan: Plan, outcome: Outcome, dictionary: Array, codes: Array, *, exact: bool = False) -> Fit:
    """Measure, fix the signs (largest entry of an atom positive) and return to the user's units."""
    error = relative_error(plan.problem.data, plan.problem.observed, codes, dictionary)
    misfit = error * float(np.linalg.norm(plan.problem.data))
    objective = float(np.abs(codes).sum(dtype=np.float64)) + plan.problem.formulation.misfit_cost(misfit)
    signs, dtype = leading_signs(dictionary), plan.problem.data.dtype
    return Fit(
        outcome,
        (dictionary * signs[:, None]).astype(dtype),
        (codes * signs * plan.unit).astype(dtype),
        error,
        objective * plan.unit,
        exact,
    )


def _polish(plan: Plan, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> Array:
    """Polished codes: what is dropped is about what the bound leaves, as long as it is met."""
    if plan.bound:
        return _meet_bound(plan.problem, plan.bound, dictionary, raw, n_jobs)
    data, observed = plan.problem.data, plan.problem.observed
    raw_error = relative_error(data, observed, raw, dictionary)
    allowed = math.inf if plan.bound is None else max(raw_error, error_slack(tol))
    negligible = min(max(error_slack(tol), raw_error) / 2, MOST_NEGLIGIBLE)
    for _ in range(POLISHES):
        codes = polish_codes(data, observed, dictionary, raw, alpha=plan.alpha, negligible=negligible, n_jobs=n_jobs)
        if relative_error(data, observed, codes, dictionary) <= allowed:
            return codes
        negligible /= 2
    return raw


def _meet_bound(problem: Problem, bound: float, dictionary: Array, raw: Array, n_jobs: int | None) -> Array:
    """Codes for which the error just meets its bound: those of the Lasso, for the supports and signs of the raw ones.

    One weight serves all samples, as it does where Σ|codes| is smallest under one bound for all. Codes that change
    their sign are dropped. Raw codes stay where they meet the bound with a smaller sum, or where even least squares
    does not meet it.
    """
    data, observed = problem.data, problem.observed

    def polished(weight: float) -> tuple[Array, bool]:
        codes = polish_codes(data, observed, dictionary, raw, alpha=weight, negligible=0.0, n_jobs=n_jobs)
        return codes, relative_error(data, observed, codes, dictionary) <= bound

    low, high = 0.0, math.inf
    best, met = polished(0.0)
    if not met:
        return raw
    residual = data - raw @ dictionary
    correlations = np.abs((residual if observed is None else residual * observed) @ dictionary.T)[raw != 0]
    weight = float(np.median(correlations)) if correlations.size else 0.0
    for _ in range(WEIGHINGS):
        if not low < weight < high:
            break
        codes, met = polished(weight)
        if met:
            low, best = weight, codes
        else:
            high = weight
        weight = 2 * low if math.isinf(high) else (low + high) / 2
    smaller = float(np.abs(raw).sum()) < float(np.abs(best).sum())
    return raw if smaller and relative_error(data, observed, raw, dictionary) <= bound else best


def relative_error(data: Array, observed: NDArray[np.bool_] | None, codes: Array, dictionary: Array) -> float:
    """``‖data - codes @ dictionary‖_F / ‖data‖_F`` over the observed entries (of zero data: the residual's norm)."""
    largest = float(np.abs(data).max()) or 1.0  # squares must neither vanish nor overflow
    residual = data / largest - (codes / largest) @ dictionary.astype(np.float64)
    if observed is not None:
        residual = residual * observed
    size = float(np.linalg.norm(data / largest))
    return float(np.linalg.norm(residual)) / size if size > 0 else float(np.linalg.norm(residual))


def summary(fit: Fit) -> str:
    """Say how a fit ended, in one line."""
    history = fit.outcome.history
    return (
        f"{fit.outcome.stop_reason} after {len(history['objective'])} iterations, {duration(history['seconds'][-1])}: "
        f"objective {fit.objective:.6g}, data error {fit.error:.1e}"
    )
