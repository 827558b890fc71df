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
from roadict.precompile import prepare
from roadict.ranks.collectives import total
from roadict.ranks.comm import Comm
from roadict.road.fit import polished_fit
from roadict.road.multistart import Settings, Start, Starts, best_of, finish_exactly, learn, run_starts, was_ended
from roadict.road.noise import (
    MIN_WEIGHT,
    PREDICTED,
    Choice,
    EpsilonPath,
    can_hide,
    choose_epsilon,
    chosen_bound,
    hidden_path,
)
from roadict.road.plan import Plan, Request
from roadict.runs.driving import Fitting
from roadict.runs.history import COLUMNS, History
from roadict.runs.loop import Outcome
from roadict.runs.result import Fit
from roadict.runs.signals import stop_requested
from roadict.runs.snapshot import Snapshot

Array = NDArray[np.floating]
N_LOOKS, LOOK_EVERY, SLOW_LOOK_EVERY = 4, 50, 150
"""Number of looks at the nonzeros of a first start, from the end of its hold on, and the iterations between two of
them: with a short schedule, and with a long one, at the end of whose hold they fluctuate."""
NONZERO = 0.01
"""Codes count as nonzero from this size on, relative to the largest of their sample."""
SPARSE = 0.3
"""Nonzeros relative to features up to which the codes of exact data may become denser for a while."""
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
    prepare(_kernels(plan, settings.engine), request.data.dtype)
    choice = None
    if "noise" in journal.notes:
        choice = Choice(EpsilonPath.from_json(journal.notes["noise"]), journal.notes["hopeless"])
    elif request.parameters.noise_is_unknown and can_hide(request):
        choice = yield from _choose(request, plan, starts, settings, seed, journal, dictionary)
    settings = settings if choice is None else replace(settings, earlier=choice.atoms)
    if choice is None or (choice.path is None and choice.stopped is None):
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
    if plan.tries_exact_finish and not path.exact and not choice.hopeless and not stop_requested():
        exact = yield from finish_exactly(plan, fit, settings)
        if exact is not None:
            return Learned(exact, plan, replace(path, exact=True))
    return Learned(fit, noisy, path)


def learn_no_more(
    request: Request, plan: Plan, atoms: Array, epsilon: float, alpha: float, settings: Settings
) -> Learned:
    """Code all samples in atoms that are the best so far, where Ctrl-C has ended what precedes a fit.

    ``epsilon``, ``alpha``: the error bound and the Lasso weight, of which the formulation takes one.
    """
    lasso = request.parameters.formulation == "lasso"
    known = request.changed(alpha=alpha) if lasso else request.changed(epsilon=max(epsilon, plan.bound or 0.0))
    plan, outcome = known.plan(), Outcome(History({name: [] for name in COLUMNS}), "callback")
    no_codes = np.zeros((len(request.data), request.n_components), request.data.dtype)
    return Learned(polished_fit(plan, outcome, atoms, no_codes, settings.tol, settings.n_jobs), plan, None)


def _kernels(plan: Plan, engine: str) -> list[str]:
    """Names of the kernels that a fit is sure to need, or nearly so; others are compiled on first use."""
    iterates = engine == "numba" and plan.problem.formulation.exact_consensus and not plan.n_unsearched
    names = ["engine"] if iterates else []
    if plan.tries_exact_finish:
        names += [] if plan.problem.constraints.positive_code else ["polish"]
        names += ["lasso", "basis-pursuit"]
    return [*names, "lasso"] if plan.descends and not plan.tries_exact_finish else names


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
    """Return the noise level, or the atoms only if there is none; None: the starts so far are all there is to know."""
    tried, trial = journal, plan
    if plan.tries_exact_finish and request.n_searched < plan.n_samples:
        tried, trial = journal.aside(), request.some(np.random.default_rng(0)).plan()
    abandoned = yield from _try_exact_fit(trial, starts, settings, tried)
    best = best_of(tried.fits, trial, settings.tol) if tried.fits else None
    if best is not None and best.exact:
        return None if tried is journal else Choice(None, atoms=best.dictionary)
    ended = stop_requested() or was_ended(tried.fits)
    if best is not None and ended and tried is journal:
        return None
    if best is not None:
        path = hidden_path(trial, best.dictionary, seed, settings.n_jobs)
        if ended:
            return Choice(path, atoms=best.dictionary, stopped=replace(best.outcome, stop_reason="callback"))
        if path.hidden_error.min() <= PREDICTED:
            return Choice(replace(path, exact=True))
    earlier = None if best is None else (best.dictionary, best.outcome)
    choice = yield from choose_epsilon(request, settings, seed, journal, dictionary, abandoned, earlier)
    if choice.path is not None and not choice.path.exact:
        journal.fits.clear()
        if choice.atoms is not None:
            journal.arrays["atoms"] = choice.atoms
    return choice._replace(hopeless=abandoned is not None)


def _try_exact_fit(plan: Plan, starts: Starts, settings: Settings, journal: FitJournal) -> Fitting[Array | None]:
    """Try for an exact fit, if the plan does: with its first start, or with all if samples are scarce.

    With nonnegative codes or atoms, where one start in ten fails, a second follows unless the first was hopeless.

    Returns the atoms at which it was abandoned as hopeless, or None.
    """
    first = plan.runs[0]
    if not plan.tries_exact_finish or first is None:
        return None
    if plan.scarce:
        yield from run_starts(plan, starts(plan), settings, journal)
        return None
    interval, brief = SLOW_LOOK_EVERY, settings
    if first.hold + first.fall < TRIAL_ITER:
        interval, brief = LOOK_EVERY, replace(settings, max_iter=min(TRIAL_ITER, settings.max_iter))
    looks = range(first.hold, first.hold + N_LOOKS * interval, interval)
    trial = run_starts(plan, starts(plan), brief, journal, at_most=1)
    abandoned = yield from _until_hopeless(trial, looks, plan.comm, journal.notes)
    if abandoned is None and plan.problem.constraints.signed:
        yield from run_starts(plan, starts(plan), settings, journal, at_most=2)
    return abandoned


def _until_hopeless(trial: Fitting[None], looks: range, comm: Comm, notes: Metadata) -> Fitting[Array | None]:
    """Pass the events of a trial on, and abandon it if its codes become denser; returns its atoms then.

    ``looks``: the iterations after which nonzeros are counted.
    As ρ rises, the codes of exact data become sparser until they are exact; those of noisy data represent the noise.
    """
    abandoned = None
    with closing(trial):
        for event in trial:
            if isinstance(event, Snapshot) and event.iteration in looks:
                sizes = np.abs(event.codes)
                n_nonzero = total(comm, float((sizes > NONZERO * sizes.max(axis=1, keepdims=True)).sum()))
                sparse = n_nonzero <= SPARSE * event.dictionary.shape[1] * total(comm, float(len(sizes)))
                if n_nonzero > notes.get("nonzeros", math.inf) and not sparse:
                    abandoned = event.dictionary
                notes["nonzeros"] = n_nonzero  # for a fit that resumes between two looks
            yield event
            if abandoned is not None:
                break
    return abandoned


def _plan_with(path: EpsilonPath, request: Request, plan: Plan) -> Plan:
    """Return the plan for the noise that was found."""
    if request.parameters.formulation == "lasso":
        return request.changed(alpha=max(float(path.alpha[path.chosen]), MIN_WEIGHT * plan.norm)).plan()
    return plan if path.exact else request.changed(epsilon=chosen_bound(path, plan.bound or 0.0)).plan()
