"""A complete fit: try for an exact one, find the noise level if it is unknown, learn with it."""

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import FitJournal
from roadict.checkpoints.storage import Metadata
from roadict.ranks.collectives import largest, total
from roadict.ranks.comm import Comm
from roadict.road.fit import polished_fit
from roadict.road.multistart import Settings, Start, Starts, best_of, finish_exactly, learn, run_starts
from roadict.road.noise import (
    MIN_WEIGHT,
    Choice,
    EpsilonPath,
    can_hide,
    choose_epsilon,
    chosen_bound,
    predicts_exactly,
)
from roadict.road.plan import Plan, Request
from roadict.runs.driving import Fitting
from roadict.runs.result import Fit
from roadict.runs.snapshot import Snapshot

Array = NDArray[np.floating]
LOOK_EVERY, N_LOOKS, N_DENSE_LOOKS = 50, 3, 6
"""Iterations between two looks at the nonzeros of a first start, from the end of its hold on; their number; and that of
looks at dense ones."""
DENSE, FALLING = 0.8, 0.98
"""Nonzeros relative to features above which codes are dense, and the ratio of two looks up to which these do not stay
so: 0.98 to 1.02 in noise of 10 dB, at most 0.96 in exact data, with less than half as many nonzeros as features."""
NONZERO = 1e-3
"""Codes count as nonzero from this size on, relative to the largest."""
TRIAL_ITER = 800
"""Maximum number of iterations of a first start with a short schedule: successful ones take 300 to 500."""


class Learned(NamedTuple):
    """A fit, the plan it followed, and how its noise level was found, if it was unknown."""

    fit: Fit
    plan: Plan
    path: EpsilonPath | None


def learn_data(
    request: Request,
    plan: Plan,
    starts: Starts,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
    dictionary: Array | None = None,
) -> Fitting[Learned]:
    """Learn; if the noise is unknown, first try for an exact fit, then find the noise by hidden entries.

    Parameters
    ----------
    request : Request
    plan : Plan
        That of the request, which holds if the data turn out to be exact.
    starts : callable
    settings : Settings
    seed : SeedSequence
    journal : FitJournal
    dictionary : array of shape (n_components, n_features), or None
        Atoms given by the user to start from.
    """
    choice = None
    if "noise" in journal.notes:
        choice = Choice(EpsilonPath.from_json(journal.notes["noise"]), journal.notes["hopeless"])
    elif request.parameters.noise_is_unknown and can_hide(request):
        choice = yield from _choose(request, plan, starts, settings, seed, journal, dictionary)
    if choice is None:
        return Learned((yield from learn(plan, starts, settings, journal)), plan, None)
    path = choice.path
    noisy = plan if path is None else _plan_with(path, request, plan)
    if choice.stopped is not None and choice.atoms is not None:
        no_codes = np.zeros((len(request.data), request.n_components), request.data.dtype)
        fit = polished_fit(noisy, choice.stopped, choice.atoms, no_codes, settings.tol, settings.n_jobs)
        return Learned(fit, noisy, path)
    assert path is not None
    journal.notes.update(noise=path.to_json(), hopeless=choice.hopeless)
    fit = yield from learn(noisy, partial(_starts_with, journal.arrays.get("atoms"), starts), settings, journal)
    if plan.tries_exact_finish and not path.exact and not choice.hopeless:
        exact = yield from finish_exactly(plan, fit, settings)
        if exact is not None:
            return Learned(exact, plan, replace(path, exact=True))
    return Learned(fit, noisy, path)


def _starts_with(atoms: Array | None, starts: Starts, plan: Plan) -> Iterator[Start]:
    """Draw the starts; the first descends from these atoms, if it is not for a search."""
    drawn = starts(plan)
    if atoms is not None and plan.n_unsearched:
        _, codes = next(drawn)
        yield atoms.astype(codes.dtype), np.zeros_like(codes)
    yield from drawn


def _choose(
    request: Request,
    plan: Plan,
    starts: Starts,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
    dictionary: Array | None,
) -> Fitting[Choice | None]:
    """Return the noise level; None: there is none, or a callback has ended the fit."""
    tried, trial = journal, plan
    if plan.tries_exact_finish and request.n_searched < plan.n_samples:
        tried, trial = journal.aside(), request.some(np.random.default_rng(0)).plan()
    hopeless = yield from _try_exact_fit(trial, starts, settings, tried)
    if any(fit.exact for fit in tried.fits):
        return None
    stopped = [fit for fit in tried.fits if fit.outcome.stop_reason == "callback"]
    if stopped:
        return None if tried is journal else Choice(None, atoms=stopped[0].dictionary, stopped=stopped[0].outcome)
    if tried.fits:
        atoms = best_of(tried.fits, trial, settings.tol).dictionary
        path = predicts_exactly(trial, atoms, seed, settings.n_jobs)
        if path is not None:
            return Choice(path)
    choice = yield from choose_epsilon(request, settings, seed, journal, dictionary, noisy=hopeless)
    if choice.path is not None and not choice.path.exact:
        journal.fits.clear()
        if choice.atoms is not None:
            journal.arrays["atoms"] = choice.atoms
    return choice._replace(hopeless=hopeless)


def _try_exact_fit(plan: Plan, starts: Starts, settings: Settings, journal: FitJournal) -> Fitting[bool]:
    """Try for an exact fit, if the plan does: with its first start, or with all if samples are scarce.

    Returns whether it was abandoned as hopeless.
    """
    first = plan.runs[0]
    if not plan.tries_exact_finish or first is None:
        return False
    if plan.scarce:
        yield from run_starts(plan, starts(plan), settings, journal)
        return False
    if first.hold + first.fall < TRIAL_ITER:
        settings = replace(settings, max_iter=min(TRIAL_ITER, settings.max_iter))
    trial = run_starts(plan, starts(plan), settings, journal, at_most=1)
    return (yield from _until_hopeless(trial, first.hold, plan.comm, journal.notes))


def _until_hopeless(trial: Fitting[None], hold: int, comm: Comm, notes: Metadata) -> Fitting[bool]:
    """Pass the events of a trial on, and abandon it once its codes become denser or stay dense; returns whether it did.

    As ρ rises, the codes of exact data become sparser until they are exact; those of noisy data represent the noise.
    """
    looks, hopeless = [hold + LOOK_EVERY * i for i in range(1, 1 + N_DENSE_LOOKS)], False
    with closing(trial):
        for event in trial:
            if isinstance(event, Snapshot) and event.iteration in looks:
                codes = np.abs(event.codes)
                nonzeros = total(comm, float((codes > NONZERO * largest(comm, codes)).sum()))
                dense = nonzeros > DENSE * total(comm, float(codes.shape[0])) * event.dictionary.shape[1]
                limit = FALLING if dense else 1.0 if event.iteration in looks[:N_LOOKS] else math.inf
                hopeless = nonzeros > notes.get("nonzeros", math.inf) * limit
                notes["nonzeros"] = nonzeros  # for a fit that resumes between two looks
            yield event
            if hopeless:
                return True
    return False


def _plan_with(path: EpsilonPath, request: Request, plan: Plan) -> Plan:
    """Return the plan for the noise that was found."""
    if request.parameters.formulation == "lasso":
        return request.changed(alpha=max(float(path.alpha[path.chosen]), MIN_WEIGHT * plan.norm)).plan()
    return plan if path.exact else request.changed(epsilon=chosen_bound(path, plan.bound or 0.0)).plan()
