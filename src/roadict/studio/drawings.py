"""Drawings of a run: curves, bars and atoms."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.charts import Chart, Mark, Scale, element, svg
from roadict.drawing.raster import Atoms, data_uri, grey, mosaic, own_scale, png

MAX_ATOMS = 256
MAX_CURVES = 64
WIDTH, HEIGHT = 320, 200
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 44
LEGEND = 16
"""Height of the names above curves."""
_svg = partial(svg, WIDTH, HEIGHT)


def objective_curve(runs: Sequence[Sequence[float]], marks: Sequence[Mark] = ()) -> str:
    """Draw the objective against the iteration, the latest start in front of the others, and points with a label."""
    longest = max((len(run) for run in runs), default=0)
    if longest < 2:
        return _empty("The objective will be drawn here.")
    shown = [run[2:] if len(run) > 10 else run for run in runs]  # the first ones may be orders of magnitude larger
    settled = np.concatenate([*shown, [mark.y for mark in marks]])
    low, high = float(np.min(settled)), float(np.max(settled))
    margin = 0.04 * ((high - low) or abs(high) or 1.0)
    chart = _chart(1, longest, Scale(low - margin, high + margin, HEIGHT - BOTTOM, TOP))
    lines = [_curve(chart, np.asarray(run), "c0" if run is runs[-1] else "before") for run in runs]
    rings = [chart.mark(*mark) for mark in marks]
    return _svg([_axes(chart, "iteration"), *lines, *rings], "Objective against the iteration")


def residual_curves(curves: dict[str, NDArray[np.float64]], marks: Sequence[Mark] = ()) -> str:
    """Draw positive curves of equal length on a log scale, with their names, and points with a label."""
    values = np.concatenate([*curves.values(), [mark.y for mark in marks]])
    positive = values[np.isfinite(values) & (values > 0)]
    longest = max([*map(len, curves.values()), *(mark.x for mark in marks)])
    if longest < 2 or len(positive) == 0:
        return _empty("Too few iterations to draw.")
    low, high = 10.0 ** math.floor(math.log10(positive.min())), 1.25 * float(positive.max())
    chart = _chart(1, longest, Scale(low, high, HEIGHT - BOTTOM, TOP + LEGEND, log=True))
    lines = [_curve(chart, curve, f"c{i}") for i, curve in enumerate(curves.values())]
    names = chart.legend({f"c{i}": name for i, name in enumerate(curves)})
    rings = [chart.mark(*mark) for mark in marks]
    return _svg([_axes(chart, "iteration"), names, *lines, *rings], ", ".join(curves))


def usage_bars(usage: NDArray[np.floating]) -> str:
    """Draw the share of samples that use each atom, the most used first."""
    shares = -np.sort(-100 * np.asarray(usage, np.float64))
    chart = _chart(0.5, len(shares) + 0.5, Scale(0, float(shares[0]) or 100.0, HEIGHT - BOTTOM, TOP))
    text = f"Share of samples that use each of {len(shares)} atoms"
    return _svg([_axes(chart, "rank of the atom", " %"), chart.bars(shares, "c1")], text)


def atoms_picture(atoms: Atoms | None) -> str:
    """Draw atoms: square ones as pictures, others as curves, or as columns of grey where they are many."""
    if atoms is None:
        return _empty("The atoms will be drawn here.")
    shown = atoms[:MAX_ATOMS]
    text = f"{len(shown)} of {len(atoms)} atoms" if len(shown) < len(atoms) else f"{len(atoms)} atoms"
    if math.isqrt(atoms.shape[1]) ** 2 == atoms.shape[1]:
        columns = math.ceil(math.sqrt(len(shown) * WIDTH / HEIGHT))
        return _image(mosaic(shown, columns), text, "rd-atoms")
    if len(atoms) <= MAX_CURVES:
        return _small_curves(shown, text)
    return _image(own_scale(shown).T, text, "rd-atoms rd-columns-of-grey")


def _chart(first: float, last: float, heights: Scale) -> Chart:
    return Chart(Scale(first, last, LEFT, WIDTH - RIGHT), heights)


def _axes(chart: Chart, title: str, unit: str = "") -> str:
    return chart.y_axis(unit=unit) + chart.x_axis(title, [tick for tick in chart.x.ticks() if tick == int(tick)])


def _curve(chart: Chart, values: NDArray[np.float64], kind: str) -> str:
    """A line over 1, 2, ..., without points above the chart."""
    return chart.line(np.arange(1, len(values) + 1), np.where(values <= chart.y.high, values, np.nan), kind)


def _empty(text: str) -> str:
    return element("div", text, class_="rd-empty")


def _image(values: Atoms, text: str, kind: str) -> str:
    return element("img", class_=kind, src=data_uri(png(grey(values))), alt=text)


def _small_curves(atoms: Atoms, text: str) -> str:
    """One small curve per atom, all on one scale."""
    columns = math.ceil(math.sqrt(len(atoms)))
    width, height = WIDTH / columns, HEIGHT / math.ceil(len(atoms) / columns)
    limit, last = float(np.abs(atoms).max()) or 1.0, atoms.shape[1] - 1
    drawn = []
    for i, atom in enumerate(atoms):
        left, top = i % columns * width, i // columns * height
        x = Scale(0, last, left + 0.1 * width, left + 0.9 * width)
        chart = Chart(x, Scale(-limit, limit, top + 0.92 * height, top + 0.08 * height))
        drawn.append(chart.line([0, last], [0, 0], "zero") + chart.line(range(last + 1), atom, "c0 thin"))
    return _svg(drawn, text)
