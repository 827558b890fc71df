"""Curves of pages: means over trials with bands between their quartiles, and tooltips."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadict.drawing.charts import Chart, Mark, Scale, element, svg

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 10, 10, 44
INSET = 12
FLOOR = 1e-6
"""Smaller errors are drawn here, as a log scale has no zero."""


@dataclass(frozen=True)
class Spread:
    """A point of a curve: mean, quartiles and number of trials."""

    mean: float
    low: float
    high: float
    number: int


@dataclass(frozen=True)
class Curve:
    """A line of a figure: name in rows, label, index of its colour, points, and kind: "ours" (ROAD), "" or "added"."""

    name: str
    label: str
    colour: int
    points: dict[float, Spread]
    kind: str = "ours"


def spread(values: list[float]) -> Spread:
    """Summarise the trials of a point.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, low=1.5, high=2.5, number=3)
    """
    low, high = np.quantile(values, [0.25, 0.75])
    return Spread(float(np.mean(values)), float(low), float(high), len(values))


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
