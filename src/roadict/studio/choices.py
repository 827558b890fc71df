"""What a model was chosen by: the number of atoms by hidden entries, the atoms by their stability."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.charts import Chart, Scale, svg
from roadict.metrics import STABLE
from roadict.studio.drawings import atoms_picture
from roadict.wording import plural

WIDTH, HEIGHT = 320, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 16, 44


def figures(model: Any) -> dict[str, str]:
    """Drawings by their captions; none for a model of a given number of atoms without stability."""
    drawn = {}
    if hasattr(model, "cv_results_"):
        flat = "; the curve is flat, so the data may have no true number" if model.flat_ else ""
        caption = f"Error of hidden entries by the number of atoms: {model.n_components_} chosen{flat}"
        drawn[caption] = hidden_error(
            model.cv_results_["n_components"], model.cv_results_["hidden_error"], model.n_components_
        )
    stability = getattr(model, "atom_stability_", None)
    if stability is not None:
        order = np.argsort(-model.atom_usage_, kind="stable")
        stable = int((stability >= STABLE).sum())
        caption = f"Stability, most used first: {stable} of {plural(len(order), 'atom')} recur in halves of the data"
        drawn[caption] = stability_bars(stability[order])
        doubtful = order[stability[order] < STABLE]
        if len(doubtful):
            drawn[f"{plural(len(doubtful), 'atom')} not to be trusted"] = atoms_picture(model.components_[doubtful])
    return drawn


def hidden_error(numbers: NDArray[np.integer], errors: NDArray[np.floating], chosen: int) -> str:
    """Draw the error of hidden entries against the number of atoms, and mark the chosen one."""
    margin = 0.06 * (float(np.ptp(errors)) or float(errors[0]) or 1.0)
    heights = Scale(float(errors.min()) - margin, float(errors.max()) + margin, HEIGHT - _BOTTOM, _TOP)
    chart = Chart(Scale(float(numbers[0]), float(numbers[-1]), _LEFT, WIDTH - _RIGHT), heights)
    at = float(errors[list(numbers).index(chosen)])
    parts = [
        chart.y_axis(),
        chart.x_axis("number of atoms", _whole(chart.x.ticks())),
        chart.line(numbers, errors, "c0"),
    ]
    return svg(WIDTH, HEIGHT, [*parts, chart.mark(chosen, at, str(chosen))], "Error of hidden entries by atoms")


def stability_bars(stability: NDArray[np.floating]) -> str:
    """Draw the stability of atoms as bars, unstable ones in another colour, and the bound as a line."""
    chart = Chart(Scale(0.5, len(stability) + 0.5, _LEFT, WIDTH - _RIGHT), Scale(0, 1, HEIGHT - _BOTTOM, _TOP))
    stable = stability >= STABLE
    bars = [chart.bars(np.where(stable, stability, 0), "c2"), chart.bars(np.where(stable, 0, stability), "c0")]
    bound = chart.line([0.5, len(stability) + 0.5], [STABLE, STABLE], "zero")
    axes = chart.y_axis() + chart.x_axis("rank of the atom", _whole(chart.x.ticks()))
    return svg(WIDTH, HEIGHT, [axes, *bars, bound], f"Stability of {len(stability)} atoms; {STABLE} or more is stable")


def _whole(ticks: list[float]) -> list[float]:
    return [tick for tick in ticks if tick == int(tick)]
