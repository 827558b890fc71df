"""A fit of more samples than memory holds: some are learned from, then all are passed over in mini-batches."""

from dataclasses import replace

import numpy as np

from roadict.checkpoints.journal import DESCENT, FitJournal
from roadict.ranks.collectives import total
from roadict.road.descent import STATIONARY
from roadict.road.fit import DEFAULT_TOL
from roadict.road.multistart import Settings
from roadict.road.passes import Passes, Rows
from roadict.road.plan import Plan
from roadict.road.stream import Stream
from roadict.runs.driving import Fitting
from roadict.runs.history import History
from roadict.runs.loop import Rule, View, follow
from roadict.runs.result import Fit


def learn_from_rows(
    rows: Rows,
    fit: Fit,
    plan: Plan,
    stream: Stream,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
) -> "Fitting[tuple[Fit, Stream]]":
    """Continue a fit of some samples with passes over all; objective and error are those of the held-out batch.

    Parameters
    ----------
    rows : Rows
    fit : Fit
        In the user's units.
    plan : Plan
        That of the fit; it descends.
    stream : Stream
        That continues the fit.
    settings : Settings
    seed : SeedSequence
        Of the whole fit.
    journal : FitJournal
    """
    comm = plan.comm
    run = Passes(stream, rows, plan.unit, plan.bound, seed, settings.n_jobs, comm)
    saving, (resumed, n_before) = journal.open_run(run, DESCENT)
    weight = total(comm, rows.weight)
    history = resumed or rescaled(fit.outcome.history, weight / stream.n_samples)
    n_before = n_before if resumed else len(history["objective"])
    saving = None if saving is None else replace(saving, level=n_before)
    rule = Rule(n_before + settings.max_iter, STATIONARY * (settings.tol or DEFAULT_TOL))
    view = View(plan.unit, watched=settings.watched, stage="mini-batches", share=1 / weight)
    outcome = yield from follow(run, rule, view, history, saving, comm)
    if outcome.stop_reason == "non-finite" or not run.stream.is_finite:
        raise ValueError("some values of X are too large beside the others; remove them, or scale all samples alike")
    atoms = run.dictionary() * plan.problem.constraints.signs(run.dictionary())[:, None]
    objective = run.objective(run.last) * weight * plan.unit
    error = float(outcome.history["error"][-1])
    result = replace(
        fit,
        outcome=outcome,
        dictionary=atoms.astype(fit.dictionary.dtype),
        codes=fit.codes[:0],
        error=error,
        objective=objective,
        usage=run.usage(),
    )
    return result, run.stream


def scaled_up(fit: Fit, factor: float) -> Fit:
    """Return a fit of some samples with the objective, a sum over samples, of all."""
    outcome = replace(fit.outcome, history=rescaled(fit.outcome.history, factor))
    return replace(fit, outcome=outcome, objective=fit.objective * factor)


def rescaled(history: History, factor: float) -> History:
    """Return a history with another objective: that of some samples, for all."""
    return History({name: column * factor if name == "objective" else column for name, column in history.items()})
