"""A whole fit: starts, runs, polish, and the best of them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict.linalg import leading_signs
from roadict.metrics import dictionary_error
from roadict.progress import ProgressLine, duration
from roadict.road.engines.pick import make_engine
from roadict.road.plan import Plan
from roadict.road.polish import polish_codes
from roadict.road.solve import ERROR_SLACK, Callback, Outcome, solve

Array = NDArray[np.floating]
Start = tuple[Array, Array]

USUAL_TOL = 1e-4
"""Tolerance that decides what the polish may drop where the user set none."""
MOST_NEGLIGIBLE = 1e-2
"""Largest share of a sample, beyond the bound, that the polish drops, however rough the run."""
SAME_OBJECTIVE = 1e-3
"""Relative difference up to which two objectives count as the same."""
SAME_ATOMS = 1e-3
"""Distance of two dictionaries up to which they count as the same."""
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

    Once the two best fits agree in their objective and their atoms, the other starts are left: wrong minima differ
    from each other, the right one is found again. A run that a callback ended is the last one.

    Parameters
    ----------
    plan : Plan
    starts : iterable of (dictionary, codes)
        In the engine's units.
    engine, max_iter, tol, callback, verbose, n_jobs
        As for ``ROAD``.
    """
    fits = []
    for start in starts:
        line = ProgressLine(every_iteration=verbose > 1) if verbose else None
        callbacks = tuple(call for call in (line, callback) if call is not None)
        with np.errstate(all="ignore"):  # a run that overflows says so by its stop reason
            run = make_engine(engine, plan.problem, *start, n_jobs)
            try:
                outcome = solve(
                    run,
                    max_iter=max_iter,
                    tol=tol,
                    error_bound=plan.bound,
                    schedule=plan.schedule,
                    unit=plan.unit,
                    callbacks=callbacks,
                )
            finally:
                run.close()
            dictionary, codes = start if outcome.stop_reason == "non-finite" else (run.dictionary(), run.codes())
            del run  # frees the state before the next one is made
            fits.append(_finish(plan, outcome, dictionary, codes, tol, n_jobs))
        if line is not None:
            line.close(summary(fits[-1]))
        if fits[-1].outcome.stop_reason == "callback" or _agree(fits, plan, tol):
            break
    return _ranked(fits, plan, tol)[0]


def _ranked(fits: list[Fit], plan: Plan, tol: float) -> list[Fit]:
    """The best first: finite, within the bound, smallest objective."""
    allowed = math.inf if plan.bound is None else plan.bound + error_slack(tol)
    return sorted(fits, key=lambda fit: (fit.outcome.stop_reason == "non-finite", fit.error > allowed, fit.minimised))


def _agree(fits: list[Fit], plan: Plan, tol: float) -> bool:
    """Whether the two best fits found the same atoms; wrong minima differ in theirs."""
    if len(fits) < 2:
        return False
    best, second = _ranked(fits, plan, tol)[:2]
    if second.minimised > (1 + SAME_OBJECTIVE) * best.minimised:
        return False
    return dictionary_error(second.dictionary, best.dictionary) < SAME_ATOMS


def error_slack(tol: float) -> float:
    """Relative data error above the bound that a fit may have."""
    return ERROR_SLACK * (tol or USUAL_TOL)


def _finish(plan: Plan, outcome: Outcome, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> Fit:
    """Polish, measure, fix the signs (largest entry of an atom positive) and return to the user's units."""
    codes, error = _polish(plan, dictionary, raw, tol, n_jobs)
    misfit = error * float(np.linalg.norm(plan.problem.data))
    objective = float(np.abs(codes).sum(dtype=np.float64)) + plan.problem.formulation.misfit_cost(misfit)
    signs = leading_signs(dictionary)
    return Fit(
        outcome,
        dictionary * signs[:, None],
        codes * signs * codes.dtype.type(plan.unit),
        error,
        objective * plan.unit,
    )


def _polish(plan: Plan, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> tuple[Array, float]:
    """Polished codes and their error: what is dropped is about what the bound leaves, as long as it is met."""
    data, observed, bound = plan.problem.data, plan.problem.observed, plan.bound or 0.0
    raw_error = relative_error(data, observed, raw, dictionary)
    allowed = math.inf if plan.bound is None else max(raw_error, bound + error_slack(tol))
    negligible = bound + min(max(error_slack(tol), raw_error - bound) / 2, MOST_NEGLIGIBLE)
    for _ in range(POLISHES):
        codes = polish_codes(data, observed, dictionary, raw, alpha=plan.alpha, negligible=negligible, n_jobs=n_jobs)
        error = relative_error(data, observed, codes, dictionary)
        if error <= allowed:
            return codes, error
        negligible /= 2
    return raw, raw_error


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
