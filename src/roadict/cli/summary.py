"""How a fit ended and what it had to satisfy, in lines for people."""

from typing import TYPE_CHECKING

import typer

from roadict.wording import of, plural

if TYPE_CHECKING:
    from roadict.estimators import ROAD, ROADCV, AlternatingDictionaryLearning

    Learned = ROAD | ROADCV | AlternatingDictionaryLearning


def report(model: "Learned") -> None:
    """Print how a fit ended."""
    unused = int((model.atom_usage_ == 0).sum())
    typer.echo(
        f"{model.stop_reason_} after {plural(model.n_iter_, 'iteration')}{_starts(model)}: "
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
    advice = getattr(model, "dense_advice", "")
    if advice and model.stop_reason_ == "converged":
        typer.echo(advice)


def _starts(model: "Learned") -> str:
    """Report whether the exact finish made the fit, or how many starts of ROAD agreed."""
    if getattr(model, "exact_", False):
        return ", by the exact finish"
    if getattr(model, "n_starts_", 1) > 1:
        return f", {model.n_starts_agreed_} of {model.n_starts_} starts agree"
    return ""


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
