"""A complete fit: try for an exact one, find the noise level if it is unknown, learn with it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import FitJournal
from roadict.road.fit import polished_fit
from roadict.road.multistart import Settings, Start, best_of, finish_exactly, learn, run_starts
from roadict.road.noise import MIN_WEIGHT, Choice, EpsilonPath, can_hide, choose_epsilon, chosen_bound, predicts_exactly
from roadict.road.plan import Plan, Request
from roadict.runs.driving import Fitting
from roadict.runs.result import Fit

Array = NDArray[np.floating]
Starts = Callable[[Plan], Iterator[Start]]
"""Draws the starts of a plan, always the same."""


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
        choice = Choice(EpsilonPath.from_json(journal.notes["noise"]))
    elif request.parameters.noise_is_unknown and can_hide(request):
        choice = yield from _choose(request, plan, starts, settings, seed, journal, dictionary)
    if choice is None:
        return Learned((yield from learn(plan, starts(plan), settings, journal)), plan, None)
    path = choice.path
    journal.notes["noise"] = path.to_json()
    noisy = _plan_with(path, request, plan)
    if choice.stopped is not None and choice.atoms is not None:
        no_codes = np.zeros((len(request.data), request.n_components), request.data.dtype)
        fit = polished_fit(noisy, choice.stopped, choice.atoms, no_codes, settings.tol, settings.n_jobs)
        return Learned(fit, noisy, path)
    fit = yield from learn(noisy, starts(noisy), settings, journal)
    if plan.tries_exact_finish and not path.exact:
        exact = yield from finish_exactly(plan, fit, settings)
        if exact is not None:
            return Learned(exact, plan, replace(path, exact=True))
    return Learned(fit, noisy, path)


def _choose(
    request: Request,
    plan: Plan,
    starts: Starts,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
    dictionary: Array | None,
) -> Fitting[Choice | None]:
    """Return the noise level; None: a fit is exact, or a callback has ended it."""
    path = yield from _tried_exact_fit(plan, starts, settings, seed, journal)
    if any(fit.exact or fit.outcome.stop_reason == "callback" for fit in journal.fits):
        return None
    if path is not None:
        return Choice(path)
    choice = yield from choose_epsilon(request, settings, seed, journal, dictionary)
    if not choice.path.exact:
        journal.fits.clear()
    return choice


def _tried_exact_fit(
    plan: Plan, starts: Starts, settings: Settings, seed: np.random.SeedSequence, journal: FitJournal
) -> Fitting[EpsilonPath | None]:
    """Try for an exact fit, if the plan does: with its first start, or with all if samples are scarce.

    Returns the path if the data count as exact by the prediction of hidden entries.
    """
    first = plan.runs[0]
    if not plan.tries_exact_finish or first is None:
        return None
    at_most = None if plan.scarce else 1
    if at_most and first.hold + first.fall < TRIAL_ITER:
        settings = replace(settings, max_iter=min(TRIAL_ITER, settings.max_iter))
    yield from run_starts(plan, starts(plan), settings, journal, at_most)
    if any(fit.exact for fit in journal.fits):
        return None
    return predicts_exactly(plan, best_of(journal.fits, plan, settings.tol).dictionary, seed, settings.n_jobs)


def _plan_with(path: EpsilonPath, request: Request, plan: Plan) -> Plan:
    """Return the plan for the noise that was found."""
    if request.parameters.formulation == "lasso":
        return request.changed(alpha=max(float(path.alpha[path.chosen]), MIN_WEIGHT * plan.norm)).plan()
    return plan if path.exact else request.changed(epsilon=chosen_bound(path, plan.bound or 0.0)).plan()
