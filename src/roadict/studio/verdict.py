"""What to say of a fit at its end: whether it can be trusted, and which fields of the page to change if not."""

import re
from typing import Any, NamedTuple

import numpy as np

from roadict.drawing.numbers import number
from roadict.estimators.doubts import STOPPED_EARLY, starts_disagree, too_few_samples, unfinished
from roadict.studio.jobs import Job
from roadict.studio.panels import bound_of
from roadict.wording import agree, plural

MORE_ITERATIONS = 10
"""How many times as many iterations to try."""
ATOMS, ERROR_BOUND, SEED = "Atoms", "Error bound", "Seed"
FIND, NUMBERS = "Find the number of atoms in the data", "Numbers to try"
MARK = "Mark atoms that are not to be trusted"
"""Labels of the page's fields. With ``FIND`` ticked ``NUMBERS`` replaces ``ATOMS``, and the error bound is fixed."""
_CLAUSE, _HALVES = "has not converged", " of halves "
"""In the warning of a fit, which the verdict words anew, and in that of the stability, which only loses parameters."""
_DOUBTS = ("no two starts agree: ", ": such atoms are not to be trusted; ")
"""In the command's advice on atoms that are not certain."""
_DENSE = " the codes are hardly sparse: "
"""In its advice on these."""
_PARAMETERS = re.compile(r" in --max-iter \d+ iterations|; fit the model with .*")
"""Options that the page lacks."""


class Verdict(NamedTuple):
    """Kind of the panel (its colour), headline, and notes."""

    kind: str
    title: str
    notes: list[str]


def verdict(job: Job, model: Any) -> Verdict:
    """Judge a fit."""
    others = [_PARAMETERS.sub("", warning) for warning in job.warnings if _HALVES in warning or _CLAUSE not in warning]
    if job.state == "stopped":
        if missing := unfinished(model).removeprefix(STOPPED_EARLY):
            others = [f"{missing[:1].upper()}{missing[1:]}.", *others]
        return Verdict("stopped", "Stopped", [*others, *_few(model)])
    if model.stop_reason_ == "non-finite":
        return Verdict("doubtful", "Stopped by numbers that are not finite", others)
    if model.stop_reason_ == "max_iter" and model.tol > 0:
        return Verdict(
            "doubtful", "Stopped before it converged", [_distance(model), _advice(model), *_few(model), *others]
        )
    if dense := _dense(model):
        return Verdict("doubtful", "Done, but the codes are hardly sparse", [dense, *_few(model), *others])
    if doubt := _doubt(model):
        return Verdict("doubtful", "Done, but the atoms are not certain", [doubt, *others])
    return Verdict("done", "Done", others)


def messages(job: Job) -> list[str]:
    """Messages of the command without the advice that the verdict words for the page."""
    worded = (_DENSE, *_DOUBTS, STOPPED_EARLY)
    return [line for line in job.messages if not any(part in line for part in worded)]


def residuals_of(history: Any) -> list[str]:
    """Names of the residuals that a run has, those with a finite value."""
    names = ("primal", "dual", "stationarity", "change", "code_change", "atom_change")
    return [name for name in names if name in history and np.isfinite(history[name]).any()]


def iterations(model: Any) -> str:
    """Return how many there were."""
    return f"{model.n_iter_:,} {agree(model.n_iter_, 'iteration', 'iterations')}"


def _distance(model: Any) -> str:
    """Say how far the residuals are from the tolerance."""
    last = [
        f"{name.replace('_', ' ')} {number(model.history_[name][-1], 2)}"
        for name in residuals_of(model.history_)
        if np.isfinite(model.history_[name][-1])
    ]
    bound = number(bound_of(residuals_of(model.history_)[-1], model.tol))
    return f"After {iterations(model)}: {', '.join(last)}. A run has converged when these are below {bound}."


def _advice(model: Any) -> str:
    """Say which fields to change, or how to go on with more iterations."""
    longer = f"or run the command below with --max-iter {MORE_ITERATIONS * model._n_iterations}"
    if dense := _dense(model):
        return f"{dense.removesuffix('.')}, {longer}."
    if _found_number(model):
        return f"Enter smaller “{NUMBERS}” or another “{SEED}”, {longer}."
    if hasattr(model, "epsilon"):
        return f"Enter a larger “{ERROR_BOUND}” if the signals are noisy, or fewer “{ATOMS}”, {longer}."
    return f"Enter fewer “{ATOMS}” or another “{SEED}”, {longer}."


def _dense(model: Any) -> str:
    """Say what to do about codes that are hardly sparse; "" if they are sparse."""
    if not getattr(model, "dense_advice", ""):
        return ""
    used = f"Signals use {model.atom_usage_.sum():.1f} of {plural(len(model.components_), 'atom')}"
    remedy = f"enter a larger “{ERROR_BOUND}” or fewer “{ATOMS}”"
    if _found_number(model):
        remedy = f"enter smaller “{NUMBERS}”, or untick “{FIND}” and enter a larger “{ERROR_BOUND}”"
    return f"{used}, so they are hardly simpler than before: {remedy}."


def _doubt(model: Any) -> str:
    """Say why another run may find other atoms, and what to do; "" if nothing speaks for it."""
    if few := _few(model):
        return few[0]
    return f"No two starts agree. Tick “{MARK}”, or enter {_fewer(model)}." if starts_disagree(model) else ""


def _few(model: Any) -> list[str]:
    """What to say of too few signals for so many atoms, however the fit ended; [] if they are enough."""
    few = too_few_samples(model, "signal")
    return [f"{few}: such atoms are not to be trusted. Enter {_fewer(model)}."] if few else []


def _fewer(model: Any) -> str:
    return f"smaller “{NUMBERS}”" if _found_number(model) else f"fewer “{ATOMS}”, or tick “{FIND}”"


def _found_number(model: Any) -> bool:
    """Whether the number of atoms was chosen by the data."""
    return hasattr(model, "cv_results_")
