"""From the end of a run to a fit: polished codes, error and objective, in the user's units."""

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

DEFAULT_TOL = 1e-4
"""Tolerance of the polish if the user's is 0."""
MAX_NEGLIGIBLE = 1e-2
"""Maximum share of a sample that the polish discards, however inaccurate the run."""
MAX_WEIGHTS = 30
"""Maximum number of weights tried to meet the error bound."""
MAX_POLISHES = 6
"""Maximum number of polishes, each discarding half as much as the one before."""


def error_slack(tol: float) -> float:
    """Relative data error by which a fit may exceed its bound."""
    return ERROR_SLACK * (tol or DEFAULT_TOL)


def polished_fit(plan: Plan, outcome: Outcome, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> Fit:
    """Polish the codes of a run and build its fit."""
    merged = merge_duplicates(dictionary, raw)
    return build_fit(plan, outcome, dictionary, _polish(plan, dictionary, merged, tol, n_jobs))


def build_fit(plan: Plan, outcome: Outcome, dictionary: Array, codes: Array, *, exact: bool = False) -> Fit:
    """Measure the fit, fix signs (entry of largest magnitude of an atom positive), convert to the user's units."""
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
    """Polish the codes, discarding about as much as the error bound allows."""
    if plan.bound:
        return _meet_bound(plan, plan.bound, dictionary, raw, n_jobs)
    data, observed, comm = plan.problem.data, plan.problem.observed, plan.comm
    raw_error = relative_error(data, observed, raw, dictionary, comm)
    allowed = math.inf if plan.bound is None else max(raw_error, error_slack(tol))
    negligible = min(max(error_slack(tol), raw_error) / 2, MAX_NEGLIGIBLE)
    for _ in range(MAX_POLISHES):
        codes = polish_codes(data, observed, dictionary, raw, alpha=plan.alpha, negligible=negligible, n_jobs=n_jobs)
        if relative_error(data, observed, codes, dictionary, comm) <= allowed:
            return codes
        negligible /= 2
    return raw


def _meet_bound(plan: Plan, bound: float, dictionary: Array, raw: Array, n_jobs: int | None) -> Array:
    """Return Lasso codes on the support and signs of the raw ones whose error just meets the bound.

    All samples share one weight, as at the minimum of Σ|codes| under a common bound. Codes that change sign are
    discarded. The raw codes are returned if they meet the bound with a smaller sum, or if even least squares violates
    it.
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
    for _ in range(MAX_WEIGHTS):
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
