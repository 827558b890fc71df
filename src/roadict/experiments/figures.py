"""Figures of the page, with tooltips: errors as curves, tables of PSNR as dots."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadict.drawing.charts import Chart, Mark, Scale, element, hover, svg, text
from roadict.experiments.methods import BASELINES, INEXACT_ONE, INEXACT_THREE, SYNTHETIC
from roadict.experiments.summary import Spread, Values, spread

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 10, 10, 44
INSET = 12
NAME_WIDTH = 150
"""Width of the methods' names left of the dots."""
ROW_HEIGHT = 25
"""Height of a method's row of dots."""
FLOOR = 1e-6
"""Smaller errors are drawn here, as a log scale has no zero."""
COLOURS = {method.name: index for index, method in enumerate(SYNTHETIC)} | {
    INEXACT_THREE.name: 2,
    INEXACT_ONE.name: 3,
}
"""A method has one colour in all figures; the inexact ones share those of methods in other figures."""


@dataclass(frozen=True)
class Curve:
    """A line of a figure: name in rows, label, index of its colour, and points."""

    name: str
    label: str
    colour: int
    points: dict[float, Spread]

    @property
    def kind(self) -> str:
        """How the line is drawn: "ours" (ROAD), "" (another of the paper's) or "added" (not in the paper)."""
        if self.name.startswith("road"):
            return "ours"
        return "" if self.name in BASELINES or self.name.startswith("iadmm") else "added"


@dataclass(frozen=True)
class Strip:
    """A method with the values of its trials and the paper's; kind is "ours" (ROAD), "" or "bare" (not learned)."""

    label: str
    kind: str
    values: list[float]
    paper: float | None = None


def curves(values: Values, labels: dict[str, str]) -> list[Curve]:
    """Curves in the order of the labels."""
    return [
        Curve(name, label, COLOURS.get(name, index), {at: spread(trials) for at, trials in values[name].items()})
        for index, (name, label) in enumerate(labels.items())
        if name in values
    ]


def line_plot(
    lines: list[Curve],
    x_label: str,
    *,
    y_label: str = "recovery error",
    log_x: bool = False,
    title: str = "",
    marks: Sequence[Mark] = (),
) -> str:
    """Draw means on a log scale with bands between the quartiles of the trials, and marks, in an ``<svg>`` element.

    The scales include the marks; the title is for screen readers.
    """
    xs = sorted({at for line in lines for at in line.points})
    points = [point for line in lines for point in line.points.values()]
    lows = [*(max(FLOOR, point.low) for point in points), *(mark.y for mark in marks if mark.y > 0), 1e-2]
    highs = [*(point.high for point in points), *(mark.y for mark in marks), 1.0]
    bottom, top = (10.0 ** way(math.log10(end)) for way, end in ((math.floor, min(lows)), (math.ceil, max(highs))))
    ends = [*xs, *(mark.x for mark in marks)]
    x = Scale(min(ends), max(ends), LEFT + INSET, WIDTH - RIGHT - INSET, log_x)
    chart = Chart(x, Scale(bottom, top, HEIGHT - BOTTOM, TOP, log=True), INSET)
    parts = [chart.y_axis(y_label), chart.x_axis(x_label, None if log_x else xs)]
    drawn = []
    for line in lines:
        at = list(line.points)
        mean, low, high = np.maximum([(p.mean, p.low, p.high) for p in line.points.values()], bottom).T
        parts.append(chart.band(at, low, high, class_=f"band c{line.colour}", data_name=line.name))
        inside = chart.line(at, mean, line.kind) + (chart.dots(at, mean) if len(xs) < 12 else "")
        drawn.append(element("g", inside, class_=f"c{line.colour}", data_name=line.name))
    # The first curve, ROAD as in the paper, on top.
    parts += [*reversed(drawn), *(chart.mark(*mark) for mark in marks)]
    parts.append(chart.columns(xs, [_column(lines, at, x_label) for at in xs]))
    return svg(WIDTH, HEIGHT, parts, title)


def dot_plot(strips: list[Strip], title: str = "") -> str:
    """Draw means, quartiles and trials of methods, the best on top, with the paper's values."""
    ranked = sorted(strips, key=lambda strip: -spread(strip.values).mean)
    values = [value for strip in ranked for value in (*strip.values, strip.paper) if value is not None]
    low, high = math.floor(min(values)), math.ceil(max(values))
    bottom = TOP + ROW_HEIGHT * len(ranked)
    x = Scale(low, high + (high == low), NAME_WIDTH, WIDTH - 14)
    chart = Chart(x, Scale(len(ranked), 0, bottom, TOP))
    drawn = [_strip(strip, chart, row + 0.5) for row, strip in enumerate(ranked)]
    return svg(WIDTH, bottom + BOTTOM, [chart.x_axis("PSNR, dB", grid=True), *drawn], title)


def _strip(strip: Strip, chart: Chart, at: float) -> str:
    point, y = spread(strip.values), float(chart.y(at))
    left, right = (float(end) for end in chart.x([point.low, point.high]))
    parts = [
        element("rect", class_="area", x=0, y=y - ROW_HEIGHT / 2, width=WIDTH, height=ROW_HEIGHT),
        text(NAME_WIDTH - 10, y + 4, strip.label, "end", f"name {strip.kind}"),
        element("rect", class_="band", x=left, y=y - 7, width=max(0.0, right - left), height=14, rx=3),
    ]
    if point.number > 1:
        ticks = chart.x(strip.values)
        parts += [element("line", class_="trial", x1=tick, x2=tick, y1=y - 5, y2=y + 5) for tick in ticks]
    parts.append(chart.dots(point.mean, at, 5.0))
    if strip.paper is not None:
        parts.append(element("path", class_="paper", d=f"M{chart.x(strip.paper):.2f} {y - 6}l6 6l-6 6l-6 -6z"))
    return hover("".join(parts), _strip_tip(strip), {"ours": "c0", "": "c8"}.get(strip.kind, "c6"))


def _column(lines: list[Curve], at: float, x_label: str) -> dict[str, Any]:
    """Tooltip with the values of all curves at one x, best first."""
    found = sorted(((line.points[at], line) for line in lines if at in line.points), key=lambda pair: pair[0].mean)
    numbers = {point.number for point, _ in found}
    rows = [
        {
            "colour": line.colour,
            "label": line.label,
            "mean": f"{point.mean:.2g}",
            "range": "" if point.number == 1 else f"{point.low:.2g} – {point.high:.2g}",
        }
        | ({"trials": f"{point.number}×"} if len(numbers) > 1 else {})
        for point, line in found
    ]
    return {"at": f"{at:,.0f} {x_label}", "lines": rows, "note": _trials_note(numbers)}


def _strip_tip(strip: Strip) -> dict[str, Any]:
    point = spread(strip.values)
    values = {"mean": f"{point.mean:.2f} dB"}
    if point.number > 1:
        values["quartiles"] = f"{point.low:.2f} – {point.high:.2f}"
        values["all"] = f"{min(strip.values):.2f} – {max(strip.values):.2f}"
    if strip.paper is not None:
        values["in the paper"] = f"{strip.paper:.2f} dB"
    rows = [{"label": label, "mean": value, "range": ""} for label, value in values.items()]
    return {"at": strip.label, "lines": rows, "note": "one trial" if point.number == 1 else f"{point.number} trials"}


def _trials_note(numbers: set[int]) -> str:
    """Name the statistics and the number of trials.

    Examples
    --------
    >>> _trials_note({3}), _trials_note({1}), _trials_note({3, 20})
    ('mean and quartiles of 3 trials', 'one trial', 'mean and quartiles of 3 to 20 trials')
    """
    if numbers == {1}:
        return "one trial"
    low, high = min(numbers), max(numbers)
    return f"mean and quartiles of {low if low == high else f'{low} to {high}'} trials"
