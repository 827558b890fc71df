"""From the end of a run to a fit: polished codes, error and objective, in the user's units."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roadict.coders.polish import merge_duplicates, polish_codes
from roadict.coders.registry import encode
from roadict.ranks.collectives import norm, total
from roadict.road.plan import Plan
from roadict.runs.loop import ERROR_SLACK, Outcome
from roadict.runs.result import Fit, relative_error
from roadict.runs.signals import stop_requested

Array = NDArray[np.floating]

DEFAULT_TOL = 1e-4
"""Tolerance of the polish if the user's is 0."""
MAX_NEGLIGIBLE = 1e-2
"""Maximum share of a sample that the polish discards, however inaccurate the run."""
MAX_WEIGHTS = 40
"""Maximum number of weights tried to meet the error bound."""
BOUND_MET = 0.9995
"""Share of the error bound that the codes use at least."""
FIRST_WEIGHT = 0.1
"""First Lasso weight tried, relative to the root-mean-square norm of the samples."""
NEARBY = 1.0005
"""First factor between two weights, if one is known that about meets the bound."""
MINIMAL = 5e-4
"""Relative excess of Σ|codes| over its minimum up to which sparser codes of a sample are taken."""
PIECE = 1024
"""Samples between two looks for Ctrl-C: whole chunks of the coder, which gives the same bits."""
FEW, NEARLY_MET = 1000, 0.98
"""After Ctrl-C, samples from which the first weight is found, and share of the error bound that is enough."""
MAX_POLISHES = 6
"""Maximum number of polishes, each discarding half as much as the one before."""


def error_slack(tol: float) -> float:
    """Relative data error by which a fit may exceed its bound."""
    return ERROR_SLACK * (tol or DEFAULT_TOL)


def polished_fit(
    plan: Plan,
    outcome: Outcome,
    dictionary: Array,
    raw: Array,
    tol: float,
    n_jobs: int | None,
    weight: float | None = None,
) -> Fit:
    """Replace the codes of a run by the minimal ones for its atoms, and build its fit."""
    constraints = plan.problem.constraints
    merged = merge_duplicates(dictionary, raw, constraints)
    codes = minimal_codes(plan, dictionary, merged, tol, n_jobs, weight)
    return build_fit(plan, outcome, dictionary, merge_duplicates(dictionary, codes, constraints))


def minimal_codes(
    plan: Plan, dictionary: Array, raw: Array, tol: float, n_jobs: int | None, weight: float | None = None
) -> Array:
    """Minimise the formulation's objective over the codes, for these atoms.

    Without an error bound or a Lasso weight (the inexact form) the raw codes are refitted on their support.

    Parameters
    ----------
    plan : Plan
    dictionary : array of shape (n_components, n_features)
    raw : array of shape (n_samples, n_components)
        Codes of the run, which like the data and the result are multiplied by the roots of the weights.
    tol : float
        Tolerance of the run.
    n_jobs : int or None
    weight : float or None
        Lasso weight that about meets the error bound, if known.
    """
    return plan.weighted(_minimal_codes(plan, dictionary, plan.unweighted(raw), tol, n_jobs, weight))


def _minimal_codes(
    plan: Plan, dictionary: Array, raw: Array, tol: float, n_jobs: int | None, weight: float | None
) -> Array:
    """Do so for samples and codes without the roots: at the minimum all samples share one Lasso weight."""
    data, observed = plan.unweighted(plan.problem.data), plan.problem.observed
    if plan.alpha:
        return _lasso(plan, dictionary, plan.alpha, raw, n_jobs)
    if plan.bound:
        return _meet_bound(plan, plan.bound, dictionary, raw, n_jobs, weight)
    codes = _polish(plan, dictionary, raw, tol, n_jobs)
    if plan.bound is None:
        return codes
    positive = plan.problem.constraints.positive_code
    least = codes.copy()
    asked = stop_requested()
    for first in range(0, len(data), PIECE):  # it takes long; after Ctrl-C the other samples keep their codes
        if stop_requested() and not asked:
            break
        part = slice(first, first + PIECE)
        seen = None if observed is None else observed[part]
        least[part] = encode(
            data[part], seen, dictionary, algorithm="basis-pursuit", positive=positive, n_jobs=n_jobs, warn=False
        )
    residual = data - codes @ dictionary
    if observed is not None:
        residual = residual * observed
    keep = np.linalg.norm(residual, axis=1) <= error_slack(tol) * np.linalg.norm(data, axis=1)
    keep &= np.abs(codes).sum(axis=1) <= (1 + MINIMAL) * np.abs(least).sum(axis=1)
    keep &= (codes != 0).sum(axis=1) <= (least != 0).sum(axis=1)
    return np.where(keep[:, None], codes, least)


def build_fit(plan: Plan, outcome: Outcome, dictionary: Array, codes: Array, *, exact: bool = False) -> Fit:
    """Measure the fit, fix signs that are free (entry of largest magnitude positive), convert to the user's units."""
    comm, data = plan.comm, plan.problem.data
    if plan.lengths is not None:
        data, codes = data * plan.lengths, codes * plan.lengths
    error = relative_error(data, plan.problem.observed, codes, dictionary, comm)
    misfit = error * norm(comm, data)
    size = total(comm, float(np.abs(plan.weighted(codes)).sum(dtype=np.float64)))
    objective = size + plan.problem.formulation.misfit_cost(misfit)
    signs, dtype = plan.problem.constraints.signs(dictionary), data.dtype
    return Fit(
        outcome,
        (dictionary * signs[:, None]).astype(dtype),
        (plan.unweighted(codes) * signs * plan.unit).astype(dtype),
        error,
        objective * plan.unit,
        exact,
    )


def _lasso(plan: Plan, dictionary: Array, weight: float, start: Array, n_jobs: int | None) -> Array:
    """Return Lasso codes of samples without the roots of the weights."""
    return encode(
        plan.unweighted(plan.problem.data),
        plan.problem.observed,
        dictionary,
        algorithm="lasso",
        alpha=weight,
        start=start,
        positive=plan.problem.constraints.positive_code,
        n_jobs=n_jobs,
        warn=False,
    )


def _polish(plan: Plan, dictionary: Array, raw: Array, tol: float, n_jobs: int | None) -> Array:
    """Refit the codes on their support, discarding about as much as the tolerance allows."""
    data, observed = plan.unweighted(plan.problem.data), plan.problem.observed
    raw_error = _error(plan, raw, dictionary)
    allowed = math.inf if plan.bound is None else max(raw_error, error_slack(tol))
    negligible = min(max(error_slack(tol), raw_error) / 2, MAX_NEGLIGIBLE)
    positive = plan.problem.constraints.positive_code
    for _ in range(MAX_POLISHES):
        codes = polish_codes(data, observed, dictionary, raw, negligible=negligible, positive=positive, n_jobs=n_jobs)
        if _error(plan, codes, dictionary) <= allowed:
            return codes
        negligible /= 2
    return raw


def _error(plan: Plan, codes: Array, dictionary: Array) -> float:
    """Relative data error, weighted, of codes without the roots of the weights."""
    return relative_error(plan.problem.data, plan.problem.observed, plan.weighted(codes), dictionary, plan.comm)


def _meet_bound(
    plan: Plan, bound: float, dictionary: Array, raw: Array, n_jobs: int | None, known: float | None
) -> Array:
    """Return the Lasso codes whose error just meets the bound; after Ctrl-C, soon, those whose error nearly does."""
    if not stop_requested():
        return _bounded_codes(plan, bound, dictionary, raw, n_jobs, known, NEARBY, BOUND_MET)[0]
    rows, problem = slice(None, None, max(1, len(raw) // FEW)), plan.problem
    observed = None if problem.observed is None else problem.observed[rows]
    roots = None if problem.roots is None else problem.roots[rows]
    few = replace(plan, problem=replace(problem, data=problem.data[rows], observed=observed, roots=roots))
    known = known or _bounded_codes(few, bound, dictionary, raw[rows], n_jobs, None, NEARBY, NEARLY_MET)[1]
    return _bounded_codes(plan, bound, dictionary, raw, n_jobs, known, 1 / NEARLY_MET, NEARLY_MET)[0]


def _bounded_codes(
    plan: Plan,
    bound: float,
    dictionary: Array,
    raw: Array,
    n_jobs: int | None,
    known: float | None,
    nearby: float,
    enough: float,
) -> tuple[Array, float]:
    """Return Lasso codes whose error is within the bound, and ``enough`` of it, and their weight.

    All samples share one weight, as at the minimum of Σ|codes| under a common bound. If even the smallest weight
    violates the bound, its codes are the nearest. ``nearby``: the first factor between two weights, if one is known
    that about meets the bound.
    """
    low, high, weight = 0.0, math.inf, known or FIRST_WEIGHT * plan.norm / plan.unit
    factor = 4.0 if known is None else nearby
    codes, best = raw, None
    for _ in range(MAX_WEIGHTS):
        codes = _lasso(plan, dictionary, weight, codes, n_jobs)
        error = _error(plan, codes, dictionary)
        if error <= bound:
            low, best = weight, codes
            if error >= enough * bound:
                break
        else:
            high = weight
        weight = factor * low if math.isinf(high) else high / factor if low == 0 else math.sqrt(low * high)
        factor = min(4.0, factor**2)
    return (codes, weight) if best is None else (best, low)
