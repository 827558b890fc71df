"""What a model was chosen by: the number of atoms by hidden entries, the atoms by their stability."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.charts import Scale, svg
from roadict.drawing.numbers import number
from roadict.metrics import STABLE
from roadict.studio.drawings import BOTTOM, HEIGHT, TOP, WIDTH, atoms_picture, axes, chart_of
from roadict.wording import agree, of, plural, some

_NAMED = 8
"""Atoms whose numbers are in a caption, at most."""


def figures(model: Any) -> dict[str, str]:
    """Drawings by their captions; none for a model of a given number of atoms without stability."""
    drawn = {}
    if hasattr(model, "cv_results_"):
        chosen = model.n_components_ if model.n_iter_ > 0 else None  # None: it was stopped before
        flat = "; the curve is flat, so the data may have no true number" if model.flat_ else ""
        result = "none chosen yet" if chosen is None else f"{chosen} chosen{flat}"
        numbers, errors = (model.cv_results_[name] for name in ("n_components", "hidden_error"))
        drawn[f"Error of hidden entries by the number of atoms: {result}"] = hidden_error(numbers, errors, chosen)
    stability = getattr(model, "atom_stability_", None)
    if stability is not None:
        order = np.argsort(-model.atom_usage_, kind="stable")
        stable = int((stability >= STABLE).sum())
        share = f"{of(stable, len(order), 'atom')} {agree(stable, 'recurs', 'recur')}"
        caption = f"Stability, most used first: {share} in halves of the data"
        drawn[caption] = stability_bars(stability[order], order + 1)
        doubtful = order[stability[order] < STABLE]
        if len(doubtful):
            numbers = some(list(doubtful + 1), _NAMED)
            caption = (
                f"{plural(len(doubtful), 'atom')} not to be trusted: {agree(len(doubtful), 'atom', 'atoms')} {numbers}"
            )
            drawn[caption] = atoms_picture(model.components_[doubtful])
    return drawn


def hidden_error(numbers: NDArray[np.integer], errors: NDArray[np.floating], chosen: int | None) -> str:
    """Draw the error of hidden entries against the number of atoms, and mark the chosen one, if there is one."""
    margin = 0.06 * (float(np.ptp(errors)) or float(errors[0]) or 1.0)
    heights = Scale(float(errors.min()) - margin, float(errors.max()) + margin, HEIGHT - BOTTOM, TOP)
    chart = chart_of(float(numbers[0]), float(numbers[-1]), heights)
    mark = [] if chosen is None else [chart.mark(chosen, float(errors[list(numbers).index(chosen)]), str(chosen))]
    tips = [_tip(plural(int(n), "atom"), "error", e) for n, e in zip(numbers, errors, strict=True)]
    parts = [
        axes(chart, "number of atoms", "error of hidden entries"),
        chart.line(numbers, errors, "c0"),
        *mark,
        chart.columns(numbers, tips),
    ]
    return svg(WIDTH, HEIGHT, parts, "Error of hidden entries by atoms")


def stability_bars(stability: NDArray[np.floating], numbers: NDArray[np.integer]) -> str:
    """Draw the stability of atoms, by their numbers, as bars, unstable ones in another colour, and the bound."""
    count, stable = len(stability), stability >= STABLE
    chart = chart_of(0.5, count + 0.5, Scale(0, 1, HEIGHT - BOTTOM, TOP))
    tips = [_tip(f"atom {k}", "stability", value) for k, value in zip(numbers, stability, strict=True)]
    parts = [
        axes(chart, "rank of the atom", "stability"),
        chart.bars(np.where(stable, stability, 0), "c2"),
        chart.bars(np.where(stable, 0, stability), "c0"),
        chart.line([0.5, count + 0.5], [STABLE, STABLE], "zero"),
        chart.columns(np.arange(1, count + 1), tips),
    ]
    return svg(WIDTH, HEIGHT, parts, f"Stability of {plural(count, 'atom')}; {STABLE} or more is stable")


def _tip(at: str, label: str, value: float) -> dict[str, Any]:
    return {"at": at, "lines": [{"colour": 0, "label": label, "mean": number(value), "range": ""}], "note": ""}
