"""What a run leaves: its polished codes, its error and objective, in the user's units."""

import math

import numpy as np
from numpy.typing import NDArray

from roadict.coders.polish import merge_duplicates, polish_codes
from roadict.linalg import leading_signs
from roadict.ranks.collectives import median, norm, total
from roadict.road.plan import Plan
from roadict.runs.loop import ERROR_SLACK, Outcome
from roadict.runs.result import Fit, relative_error

Array = NDArray[np.floating]

USUAL_TOL = 1e-4
"""Tolerance that decides what the polish may drop where the user set none."""
MOST_NEGLIGIBLE = 1e-2
"""Largest share of a sample that the polish drops, however rough the run."""
WEIGHINGS = 30
"""Weights tried for a fit that meets its bound."""
POLISHES = 6
"""Attempts at a polish, each dropping half as much as the one before."""


def error_slack(tol: float) -> float:
    """Relative data error above the bound that a fit may have."""
    return ERROR_SLACK * (tol or USUAL_TOL)


def finish(plan: Plan, outcome: Outcome, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> Fit:
    """Polish the codes of a run and return to the user's units."""
    merged = merge_duplicates(dictionary, raw)
    return to_user(plan, outcome, dictionary, _polish(plan, dictionary, merged, tol, n_jobs))


def to_user(plan: Plan, outcome: Outcome, dictionary: Array, codes: Array, *, exact: bool = False) -> Fit:
    """Measure, fix the signs (largest entry of an atom positive) and return to the user's units."""
    comm = plan.comm
    error = relative_error(plan.problem.data, plan.problem.observed, codes, dictionary, comm)
    misfit = error * norm(comm, plan.problem.data)
    size = total(comm, float(np.abs(codes).sum(dtype=np.float64)))
    objective = size + plan.problem.formulation.misfit_cost(misfit)
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
        return _meet_bound(plan, plan.bound, dictionary, raw, n_jobs)
    data, observed, comm = plan.problem.data, plan.problem.observed, plan.comm
    raw_error = relative_error(data, observed, raw, dictionary, comm)
    allowed = math.inf if plan.bound is None else max(raw_error, error_slack(tol))
    negligible = min(max(error_slack(tol), raw_error) / 2, MOST_NEGLIGIBLE)
    for _ in range(POLISHES):
        codes = polish_codes(data, observed, dictionary, raw, alpha=plan.alpha, negligible=negligible, n_jobs=n_jobs)
        if relative_error(data, observed, codes, dictionary, comm) <= allowed:
            return codes
        negligible /= 2
    return raw


def _meet_bound(plan: Plan, bound: float, dictionary: Array, raw: Array, n_jobs: int | None) -> Array:
    """Codes for which the error just meets its bound: those of the Lasso, for the supports and signs of the raw ones.

    One weight serves all samples, as it does where Σ|codes| is smallest under one bound for all. Codes that change
    their sign are dropped. Raw codes stay where they meet the bound with a smaller sum, or where even least squares
    does not meet it.
    """
    data, observed, comm = plan.problem.data, plan.problem.observed, plan.comm

    def polished(weight: float) -> tuple[Array, bool]:
        codes = polish_codes(data, observed, dictionary, raw, alpha=weight, negligible=0.0, n_jobs=n_jobs)
        return codes, relative_error(data, observed, codes, dictionary, comm) <= bound

    low, high = 0.0, math.inf
    best, met = polished(0.0)
    if not met:
        return raw
    residual = data - raw @ dictionary
    correlations = np.abs((residual if observed is None else residual * observed) @ dictionary.T)[raw != 0]
    weight = median(comm, correlations) if total(comm, correlations.size) else 0.0
    for _ in range(WEIGHINGS):
        if not low < weight < high:
            break
        codes, met = polished(weight)
        if met:
            low, best = weight, codes
        else:
            high = weight
        weight = 2 * low if math.isinf(high) else (low + high) / 2
    smaller = total(comm, float(np.abs(raw).sum())) < total(comm, float(np.abs(best).sum()))
    return raw if smaller and relative_error(data, observed, raw, dictionary, comm) <= bound else best
