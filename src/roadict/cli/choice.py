"""The number of atoms to be chosen: what -k accepts, which options go with it, and how the choice is shown."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from roadict.extras import installed, missing_text
from roadict.wording import plural

if TYPE_CHECKING:
    from roadict.estimators import ROADCV

MAX_IN_RANGE = 13
"""Numbers of atoms in a range without a step."""


def parse_components(text: str | None) -> int | list[int] | str | None:
    """Return a number of atoms, the numbers of a range (16:64, or 16:64:4 with a step), "auto" or None.

    Both ends belong to the range. Without a step it has at most 13 numbers.

    Examples
    --------
    >>> parse_components("32"), parse_components("auto"), parse_components("8:16:4"), parse_components("16:64")[:3]
    (32, 'auto', [8, 12, 16], [16, 20, 24])
    """
    if text is None or text == "auto":
        return text
    try:
        numbers = [int(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"--components {text} must be a number, a range such as 16:64 or 16:64:4, or auto")
    if len(numbers) == 1:
        return numbers[0]
    first, last = numbers[:2]
    if not 1 <= first <= last:
        raise ValueError(f"--components {text} must be a range from 1 or more to a number at least as large: 16:64")
    step = numbers[2] if len(numbers) == 3 else max(1, -(-(last - first) // (MAX_IN_RANGE - 1)))
    if step < 1:
        raise ValueError(f"--components {text} has step {step}; it must be at least 1")
    return [*range(first, last, step), last]


def check_choice(given: str, method: str, options: dict[str, tuple[Any, Any]], checkpoints: bool) -> None:
    """Refuse, if the number of atoms is to be chosen, what does not go with it; ``given`` is the option as given."""
    from roadict.ranks.comm import started_by_torchrun

    if method != "road":
        raise ValueError(f"{given} chooses the number of atoms for --method road only; give a number for {method}")
    for option, (value, default) in options.items():
        if value != default:
            raise ValueError(f"{option} does not go with {given}, which chooses it too; leave it out or give a number")
    if checkpoints:
        raise ValueError(f"{given} writes no checkpoints; leave out --checkpoint or give a number")
    if started_by_torchrun():
        raise ValueError(f"{given} runs in one process; start it without torchrun, or give a number")


def road_cv(
    numbers: list[int] | None, formulation: str, missing: bool, engine: str, run: dict[str, Any]
) -> "Callable[..., ROADCV]":
    """Return what makes the estimator; ``run`` has its parameters of a run. Warns if the curve cannot be drawn."""
    from roadict.estimators import ROADCV

    if text := missing_text("the curve of the choice is left out: it", ("matplotlib",)):
        typer.echo(f"roadict: warning: {text}", err=True)

    marker = math.nan if missing else None
    return partial(ROADCV, numbers, formulation=formulation, missing_values=marker, engine=engine, **run)


def curve_path(output: Path) -> Path:
    """Return the path of the picture next to a model."""
    return output.with_name(f"{output.stem}-components.svg")


def show_choice(model: "ROADCV", written: list[Path], quiet: bool) -> None:
    """Print how the number of atoms was chosen, and draw it beside the model if Matplotlib is installed."""
    chosen = model.n_iter_ > 0  # else Ctrl-C was faster, and the best so far was kept
    drawn = chosen and installed("matplotlib")
    if drawn:
        from roadict.plotting import save_figure

        picture = curve_path(written[0])
        save_figure(model.plot(), picture)
        written.append(picture)
    if quiet:
        return
    typer.echo(f"{'atoms':>8}{'hidden error':>14}{'excess':>10}{'± error':>10}{'nonzeros':>10}")
    names = ("n_components", "hidden_error", "excess", "standard_error", "nonzeros")
    for number, hidden, over, error, nonzeros in zip(*(model.cv_results_[name] for name in names), strict=True):
        mark = "  chosen" if chosen and number == model.n_components_ else ""
        typer.echo(f"{number:>8}{hidden:>14.4f}{over:>10.4f}{error:>10.4f}{nonzeros:>10.2f}{mark}")
    if chosen and model.n_components_ == model.cv_results_["n_components"][-1]:
        typer.echo("the largest number tried is chosen: a larger one may predict better")
    elif chosen and model.flat_:
        typer.echo(
            f"the curve is flat: more than {plural(model.n_components_, 'atom')} do not predict hidden entries clearly "
            "worse; the data may have no true number of atoms"
        )
    if drawn:
        typer.echo(f"curve: {written[-1]}")
