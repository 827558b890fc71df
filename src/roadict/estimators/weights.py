"""Weights of samples: leave out those of weight zero before a fit, and code them after it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.coders.registry import encode
from roadict.estimators.consistency import MIN_SAMPLES
from roadict.ranks.collectives import allgather_json, counts, largest
from roadict.ranks.comm import Comm
from roadict.road.fit import minimal_codes
from roadict.road.multistart import Settings
from roadict.road.plan import Plan
from roadict.wording import of

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None


class Used(NamedTuple):
    """The samples that a fit uses.

    Attributes
    ----------
    data, observed
        Theirs.
    weights : array of shape (n_used,), or None
        Above zero; None: all 1.
    rows : bool array of shape (n_samples,), or None
        Which of all samples they are; None: all.
    """

    data: Array
    observed: Mask
    weights: Array | None
    rows: Mask


def used_samples(data: Array, observed: Mask, weights: Array | None, comm: Comm) -> Used:
    """Leave out samples of weight zero; weights of one are no weights."""
    if all(allgather_json(comm, weights is None or bool((weights == 1).all()))):
        return Used(data, observed, None, None)
    weights = np.ones(len(data)) if weights is None else weights
    rows = weights >= np.finfo(data.dtype).tiny  # the root of a smaller one may be zero
    n_used, n_samples = sum(counts(comm, int(rows.sum()))), sum(counts(comm, len(data)))
    if n_used < MIN_SAMPLES:
        raise ValueError(few_weights(n_used, n_samples))
    if observed is not None:
        observed = observed[rows]
        observed = None if all(allgather_json(comm, bool(observed.all()))) else observed
    return Used(data[rows], observed, weights[rows], rows)


def few_weights(n_used: int, n_samples: int) -> str:
    """Return what to say of too few samples of weight above zero."""
    return (
        f"sample_weight is above zero for {of(n_used, n_samples, 'sample')}; a fit needs at least {MIN_SAMPLES}: pass "
        "more samples of weight above zero"
    )


def add_left_out(
    codes: Array,
    rows: NDArray[np.bool_],
    data: Array,
    observed: Mask,
    plan: Plan,
    atoms: Array,
    alpha: float,
    settings: Settings,
) -> Array:
    """Return the codes of all samples, given those of the samples that a fit used.

    The samples left out are coded by themselves: to the fit's error bound, with its Lasso weight, or for the inexact
    form with ``alpha``.

    Parameters
    ----------
    codes : array of shape (n_used, n_components)
    rows : bool array of shape (n_samples,)
        Which samples were used.
    data, observed
        Of all samples, in the user's units.
    plan : Plan
        That of the fit.
    atoms : array of shape (n_components, n_features)
    alpha : float
    settings : Settings
        Of the fit.
    """
    everything = np.zeros((len(data), len(atoms)), codes.dtype)
    everything[rows] = codes
    rest, seen = data[~rows], None if observed is None else observed[~rows]
    if largest(plan.comm, rest) == 0:
        return everything
    if plan.bound is None and not plan.alpha:
        everything[~rows] = encode(
            rest,
            seen,
            atoms,
            algorithm="lasso",
            alpha=alpha,
            positive=plan.problem.constraints.positive_code,
            n_jobs=settings.n_jobs,
            warn=False,
        )
        return everything
    problem = replace(plan.problem, data=(rest / plan.unit).astype(rest.dtype), observed=seen, roots=None)
    own = replace(plan, problem=problem, lengths=None)
    everything[~rows] = minimal_codes(own, atoms, everything[~rows], settings.tol, settings.n_jobs) * plan.unit
    return everything
