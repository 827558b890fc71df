"""Drawings of a run: curves, bars and atoms."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.charts import Chart, Line, Mark, Scale, element, legend_width, svg
from roadict.drawing.grids import MAX_CURVES, MAX_PICTURES, side_of
from roadict.drawing.numbers import number
from roadict.drawing.raster import Atoms, data_uri, grey, mosaic, own_scale, png
from roadict.wording import of, plural

WIDTH, HEIGHT = 340, 230
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 44
LEGEND = 16
"""Height of a row of names above curves."""
TILE = 80
"""Width of one atom among others, and points of its curve."""
HOVERED = 60
"""Iterations, at most, whose values are shown on hovering."""
_svg = partial(svg, WIDTH, HEIGHT)


def objective_curve(runs: Sequence[Sequence[float]], marks: Sequence[Mark] = ()) -> str:
    """Draw the objective against the iteration, the latest start in front of the others, and points with a label."""
    longest = max((len(run) for run in runs), default=0)
    if longest < 2:
        return _empty("The objective will be drawn here.")
    shown = [run[2:] if len(run) > 10 else run for run in runs]  # the first ones may be orders of magnitude larger
    settled = np.concatenate([*shown, [mark.y for mark in marks]])
    settled = settled[np.isfinite(settled)]  # a run may end where its numbers are not, and has no point there
    marks = [mark for mark in marks if math.isfinite(mark.y)]
    if not len(settled):
        return _empty("The objective is not finite.")
    low, high = float(np.min(settled)), float(np.max(settled))
    margin = 0.04 * ((high - low) or abs(high) or 1.0)
    chart = chart_of(1, longest, Scale(low - margin, high + margin, HEIGHT - BOTTOM, TOP))
    lines = [_curve(chart, np.asarray(run), "c0" if run is runs[-1] else "before") for run in runs]
    rings = [chart.mark(*mark, avoid=[_points(run) for run in runs if len(run)]) for mark in marks]
    values = _values(chart, {"objective": np.asarray(runs[-1])}, digits=5)
    return _svg([axes(chart, "iteration", "objective"), *lines, *rings, values], "Objective against the iteration")


def residual_curves(
    curves: Mapping[str, NDArray[np.float64]], marks: Sequence[Mark] = (), tolerance: float | None = None
) -> str:
    """Draw positive curves of equal length on a log scale, with their names, a tolerance, and points with a label.

    A point is joined to the end of the last curve, which it continues.
    """
    levels = [mark.y for mark in marks] + ([] if tolerance is None else [tolerance])
    values = np.concatenate([*curves.values(), levels])
    positive = values[np.isfinite(values) & (values > 0)]
    longest = max([*map(len, curves.values()), *(mark.x for mark in marks)], default=0)
    if longest < 2 or len(positive) == len(levels):
        return _empty("The residuals will be drawn here.")
    low, high = 10.0 ** math.floor(math.log10(0.8 * positive.min())), 1.25 * float(positive.max())
    rows = _rows_of_names(curves)
    chart = chart_of(1, longest, Scale(low, high, HEIGHT - BOTTOM, TOP + len(rows) * LEGEND, log=True))
    parts = [axes(chart, "iteration", "relative, log scale")]
    parts += [_curve(chart, curve, f"c{i}") for i, curve in enumerate(curves.values())]
    last = list(curves.values())[-1]
    parts += [chart.line([len(last), mark.x], [last[-1], mark.y], f"c{len(curves) - 1} jump") for mark in marks]
    drawn = [_points(curve) for curve in curves.values()]
    lines = drawn if tolerance is None else [*drawn, ([1, longest], [tolerance, tolerance])]
    if tolerance is not None:
        labels = [chart.place_of_mark(*mark, lines) for mark in marks]
        parts.append(chart.level(tolerance, f"tolerance {number(tolerance)}", "tolerance", drawn, labels))
    parts += [chart.mark(*mark, f"c{len(curves) - 1}", lines) for mark in marks]
    for row, names in enumerate(rows, start=1):
        parts.append(replace(chart, y=replace(chart.y, end=TOP + row * LEGEND)).legend(names))
    return _svg([*parts, _values(chart, curves)], f"{', '.join(curves)} against the iteration, on a log scale")


def usage_bars(usage: NDArray[np.floating]) -> str:
    """Draw the share of samples that use each atom, the most used first."""
    shares = -np.sort(-100 * np.asarray(usage, np.float64))
    chart = chart_of(0.5, len(shares) + 0.5, Scale(0, float(shares[0]) or 100.0, HEIGHT - BOTTOM, TOP))
    tips = [{"at": f"{number(share)} % of the signals", "lines": [], "note": ""} for share in shares]
    parts = [axes(chart, "atoms, most used first", "share of the signals", " %"), chart.bars(shares, "c1")]
    parts.append(chart.columns(np.arange(1, len(shares) + 1), tips))
    return _svg(parts, f"Share of the signals that use each of {plural(len(shares), 'atom')}")


def atoms_picture(atoms: Atoms | None) -> str:
    """Draw atoms: square ones as pictures, others as curves, or as columns of grey where they are many."""
    if atoms is None:
        return _empty("The atoms will be drawn here.")
    shown = atoms[:MAX_PICTURES]
    text = of(len(shown), len(atoms), "atom") if len(shown) < len(atoms) else plural(len(atoms), "atom")
    if side_of(atoms.shape[1]):
        columns = math.ceil(math.sqrt(len(shown) * WIDTH / HEIGHT))
        return _image(mosaic(shown, columns), text, "rd-atoms")
    if len(atoms) <= MAX_CURVES:
        return _small_curves(shown, text)
    return _image(own_scale(shown).T, text, "rd-atoms rd-columns-of-grey")


def atom_tile(atom: NDArray[np.floating], limit: float, title: str) -> str:
    """Draw one atom small: a square one as a picture, another as a curve between minus the limit and the limit."""
    if side := side_of(len(atom)):
        return _image(own_scale(atom[None]).reshape(side, side), title, "rd-atom-tile")
    at = np.unique(np.linspace(0, len(atom) - 1, TILE).round().astype(int))
    chart = Chart(Scale(0, len(atom) - 1, 2, TILE - 2), Scale(-limit, limit, 0.6 * TILE - 2, 2))
    parts = [chart.line([0, len(atom) - 1], [0, 0], "zero"), chart.line(at, atom[at], "c0 thin")]
    return svg(TILE, 0.6 * TILE, parts, title, "rd-atom-tile")


def _rows_of_names(curves: Iterable[str]) -> list[dict[str, str]]:
    """Names by the kinds of their lines, in as many rows of the legend as they need."""
    rows: list[dict[str, str]] = [{}]
    for i, name in enumerate(curves):
        if rows[-1] and LEFT + sum(map(legend_width, [*rows[-1].values(), name])) > WIDTH:
            rows.append({})
        rows[-1][f"c{i}"] = name
    return rows


def chart_of(first: float, last: float, heights: Scale) -> Chart:
    """A chart of the usual size from the first to the last place."""
    return Chart(Scale(first, last, LEFT, WIDTH - RIGHT), heights)


def axes(chart: Chart, title: str, y_title: str, unit: str = "") -> str:
    """Both axes, with ticks at whole places."""
    ticks = [tick for tick in chart.x.ticks(5) if tick == int(tick)]
    return chart.y_axis(y_title, unit) + chart.x_axis(title, ticks)


def _values(chart: Chart, curves: Mapping[str, NDArray[np.float64]], digits: int = 3) -> str:
    """Areas with the values of the curves at some of the iterations, for the tooltip."""
    longest = max(map(len, curves.values()))
    at = np.unique(np.linspace(1, longest, min(longest, HOVERED)).round().astype(int))
    tips = []
    for i in at:
        lines = [
            {"colour": colour, "label": name, "mean": number(float(curve[i - 1]), digits), "range": ""}
            for colour, (name, curve) in enumerate(curves.items())
            if i <= len(curve) and math.isfinite(curve[i - 1])
        ]
        tips.append({"at": f"iteration {i:,}", "lines": lines, "note": ""})
    return chart.columns(at, tips)


def _points(values: Sequence[float] | NDArray[np.float64]) -> Line:
    """A curve over 1, 2, ..."""
    return np.arange(1, len(values) + 1), values


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
