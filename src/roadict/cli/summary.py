"""How a fit ended and what it had to satisfy, in lines for people."""

from typing import TYPE_CHECKING

import typer

from roadict.cli.naming import as_options
from roadict.wording import of, plural

if TYPE_CHECKING:
    from roadict.estimators import ROAD, ROADCV, AlternatingDictionaryLearning

    Learned = ROAD | ROADCV | AlternatingDictionaryLearning

MUCH = 0.3
"""A noise level, relative to the data, from which the number of atoms is to be doubted: about 10 dB."""
STOPS = {"max_iter": "stopped by --max-iter"}
"""Reasons to stop that are no words."""


def report(model: "Learned") -> None:
    """Print how a fit ended."""
    from roadict.estimators.doubts import unfinished

    unused = int((model.atom_usage_ == 0).sum())
    reason = STOPS.get(model.stop_reason_, model.stop_reason_)
    typer.echo(
        f"{reason} after {plural(model.n_iter_, 'iteration')}{_starts(model)}: "
        f"objective {model.objective_:.6g}, relative error {model.error_:.2e}, "
        f"{model.atom_usage_.sum():.2f} coefficients per sample, "
        f"{of(unused, len(model.components_), 'atom')} unused"
    )
    if text := constraints_text(model):
        typer.echo(f"constraints: {text}")
    if model.codes_ is None:
        typer.echo("the codes of so many samples are not stored; roadict encode --sparse computes them")
    if getattr(model, "epsilon_path_", None) is not None and model.epsilon_:
        typer.echo(f"the noise level follows from the data: epsilon {model.epsilon_:.3g}")
        if model.epsilon_ > MUCH and not hasattr(model, "cv_results_"):
            typer.echo("if that is more than your noise, there are too few atoms: -k auto finds their number")
    if missing := unfinished(model):
        typer.echo(missing)
    advice = getattr(model, "dense_advice", "")
    if advice and model.stop_reason_ == "converged":
        typer.echo(as_options(advice))
    if doubts := _doubts(model):
        typer.echo(doubts)


def _starts(model: "Learned") -> str:
    """Report whether the exact finish made the fit, or how many starts of ROAD agreed."""
    if getattr(model, "exact_", False):
        return ", by the exact finish"
    if getattr(model, "n_starts_", 1) > 1:
        agreed = model.n_starts_agreed_  # with the best one, itself included
        return f", {agreed} of {model.n_starts_} starts agree" if agreed > 1 else f", best of {model.n_starts_} starts"
    return ""


def _doubts(model: "Learned") -> str:
    """Say why the atoms of a fit may not be the only ones; "" if nothing speaks for it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> _doubts(SimpleNamespace(components_=np.eye(8), codes_=np.eye(6, 8), atom_usage_=np.ones(8)))
    '6 samples for 8 atoms: such atoms are not to be trusted; pass a smaller -k, or -k auto to find the number'
    >>> _doubts(SimpleNamespace(atom_usage_=np.zeros(8), alpha=1e3))
    'all codes are zero: pass a smaller --alpha'
    """
    from roadict.estimators.doubts import starts_disagree, too_few_samples

    chosen = hasattr(model, "cv_results_")
    if not model.atom_usage_.any():
        return f"all codes are zero: pass a smaller --{'epsilon' if getattr(model, 'alpha', None) is None else 'alpha'}"
    if few := too_few_samples(model):
        remedy = "pass smaller numbers" if chosen else "pass a smaller -k, or -k auto to find the number"
        return f"{few}: such atoms are not to be trusted; {remedy}"
    if not starts_disagree(model):
        return ""
    remedy = "a lower range such as -k 4:16 may have fewer" if chosen else "-k auto finds their number"
    return f"no two starts agree: --stability tells which atoms to trust, and {remedy}"


def constraints_text(model: "Learned") -> str:
    """Name the signs and the known atoms that a model was learned with; "" if there are none.

    Examples
    --------
    >>> from roadict import ROAD
    >>> constraints_text(ROAD(8, positive_code=True, fixed_atoms=[[1.0, 0.0]]))
    'nonnegative codes, 1 known atom'
    """
    fixed = getattr(model, "fixed_atoms", None)
    texts = ["nonnegative codes"] if model.positive_code else []
    texts += ["nonnegative atoms"] if model.positive_dict else []
    texts += [] if fixed is None else [plural(len(fixed), "known atom")]
    return ", ".join(texts)
