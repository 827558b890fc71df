"""Curves of pages: means over trials with bands between their quartiles, or shares of trials with their intervals.

Labels are at the ends of the lines, and tooltips have the values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict.drawing.charts import Chart, Mark, Scale, element, svg, text

LEFT, TOP, BOTTOM = 50, 28, 44
INSET = 12
LABEL_GAP = 14.0
"""Least distance between the labels of two lines."""
MIN_TICK_GAP = 34
"""Least distance of two ticks of the x axis, the width of their labels."""
LEADER, LETTER = 12, 7.5
"""Width of the line that leads to a label, and of its widest letters on average."""
LONGEST = 22
"""Letters of a label on a screen; longer ones are replaced by short ones."""
MAX_DOTS = 12
"""Lines with more points than this have no dots."""
FLOOR = 1e-6
"""Smaller errors are drawn here, marked as at most this, as a log scale has no zero."""
MIN_QUARTILES = 4
"""Trials from which on there are quartiles to speak of."""


@dataclass(frozen=True)
class Size:
    """One of the two sizes of a figure: its class, width, height, width of labels at the right, and most ticks."""

    kind: str
    width: int
    height: int
    labels: int
    ticks: int


WIDE, NARROW = Size("wide", 490, 330, 148, 6), Size("narrow", 336, 340, 106, 4)
"""For a column on a screen, and for a phone; the page shows one of the two."""


@dataclass(frozen=True)
class Spread:
    """A point of a curve: mean, quartiles and number of trials; below four trials their smallest and largest value.

    Of a share of trials: the share, its interval and the number of trials.
    """

    mean: float
    low: float
    high: float
    number: int


@dataclass(frozen=True)
class Curve:
    """A line of a figure.

    Attributes
    ----------
    name, label : str
        In rows, and at the line.
    colour : int
    points : dict
        By x, ascending.
    kind : {"ours", "", "added"}
        ROAD, another of the paper's methods, or one that is not in the paper.
    short : str
        Label where there is little room; "": the same.
    ends_early : bool
        Rows are missing: the end is marked.
    """

    name: str
    label: str
    colour: int
    points: dict[float, Spread]
    kind: str = "ours"
    short: str = ""
    ends_early: bool = False


def spread(values: list[float]) -> Spread:
    """Summarise the trials of a point.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0, 4.0, 5.0]), spread([1.0, 2.0])
    (Spread(mean=3.0, low=2.0, high=4.0, number=5), Spread(mean=1.5, low=1.0, high=2.0, number=2))
    """
    low, high = np.quantile(values, [0.25, 0.75] if len(values) >= MIN_QUARTILES else [0.0, 1.0])
    return Spread(float(np.mean(values)), float(low), float(high), len(values))


def line_plot(
    lines: list[Curve],
    x_label: str,
    *,
    y_label: str = "recovery error",
    log_x: bool = False,
    title: str = "",
    marks: Sequence[Mark] = (),
    planned: Sequence[float] = (),
    shares: bool = False,
) -> str:
    """Draw means on a log scale with bands between the quartiles of the trials, and marks, in both sizes.

    The scales include the marks and the planned x; the title is for screen readers. ``shares``: the points are shares
    of trials with their intervals, on a scale from 0 to 1.
    """
    drawn = [_figure(size, lines, x_label, y_label, log_x, title, marks, planned, shares) for size in (WIDE, NARROW)]
    return element("div", "".join(drawn), class_="figure")


def _figure(
    size: Size,
    lines: list[Curve],
    x_label: str,
    y_label: str,
    log_x: bool,
    title: str,
    marks: Sequence[Mark],
    planned: Sequence[float],
    shares: bool,
) -> str:
    xs = sorted({at for line in lines for at in line.points})
    ticks = sorted({*xs, *planned})
    points = [point for line in lines for point in line.points.values()]
    lows = [*(max(FLOOR, point.low) for point in points), *(mark.y for mark in marks if mark.y > 0), 1e-2]
    highs = [*(point.high for point in points), *(mark.y for mark in marks), 1.0]
    decades = ((math.floor, min(lows)), (math.ceil, max(highs)))
    bottom, top = (0.0, 1.0) if shares else (10.0 ** way(math.log10(end)) for way, end in decades)
    ends = [*ticks, *(mark.x for mark in marks)]
    longest = max(len(_name(line, size)) for line in lines)
    right = size.width - min(size.labels, LETTER * longest) - LEADER - INSET - 4
    x = Scale(min(ends), max(ends), LEFT + INSET, right, log_x)
    chart = Chart(x, Scale(bottom, top, size.height - BOTTOM, TOP, log=not shares), INSET)
    at_most = any(point.mean < bottom for point in points)
    parts = [
        text(0, TOP - 14, y_label, "start"),
        chart.y_axis(at_most=at_most),
        chart.x_axis(x_label, x.ticks(size.ticks) if log_x else _apart(ticks, x)),
    ]
    parts += [_band(line, chart) for line in lines]
    # The first curve, ROAD as in the paper, on top.
    parts += [_line(line, chart, dots=len(xs) < MAX_DOTS) for line in reversed(lines)]
    parts += [chart.mark(*mark) for mark in marks]
    parts.append(_labels(lines, chart, size))
    parts.append(chart.columns(xs, [_column(lines, at, x_label, shares) for at in xs]))
    return svg(size.width, size.height, parts, title, size.kind)


def _apart(ticks: Sequence[float], x: Scale) -> list[float]:
    """Ticks whose labels have room; the first one stays."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or float(x(tick)) - float(x(kept[-1])) >= MIN_TICK_GAP:
            kept.append(tick)
    return kept


def _band(line: Curve, chart: Chart) -> str:
    """The area between the quartiles, where there are enough trials."""
    found = {at: point for at, point in line.points.items() if point.number >= MIN_QUARTILES}
    if len(found) < 2:
        return ""
    low, high = (np.maximum([getattr(point, end) for point in found.values()], chart.y.low) for end in ("low", "high"))
    return chart.band([*found], low, high, class_=f"band c{line.colour}", data_name=line.name)


def _line(line: Curve, chart: Chart, *, dots: bool) -> str:
    """The means; those below the scale are drawn at its end, as triangles that point down."""
    at, means = np.array([*line.points]), np.array([point.mean for point in line.points.values()])
    drawn, below = np.maximum(means, chart.y.low), means < chart.y.low
    shown = np.full(len(at), dots)
    shown[-1] |= below[-1]
    inside = chart.line(at, drawn, line.kind) + chart.dots(at[shown & ~below], drawn[shown & ~below])
    inside += chart.drops(at[shown & below], drawn[shown & below])
    inside += chart.cross(at[-1], drawn[-1]) if line.ends_early else ""
    return element("g", inside, class_=f"c{line.colour}", data_name=line.name)


def _name(line: Curve, size: Size) -> str:
    """The label of a line; on a phone, and for long ones, there is room for a short one only."""
    if size == NARROW:
        return line.short or line.label
    long = line.short and len(line.label) > LONGEST
    return "× " * line.ends_early + (line.short if long else line.label)


def _labels(lines: list[Curve], chart: Chart, size: Size) -> str:
    """The names of the lines, right of the chart, each led to from the end of its line."""
    _, top, right, bottom = chart.box
    last = [(max(line.points), line.points[max(line.points)].mean) for line in lines]
    ends = [(float(chart.x(at)), float(chart.y(max(mean, chart.y.low)))) for at, mean in last]
    heights = spaced([y for _, y in ends], LABEL_GAP, top, bottom)
    parts = []
    for line, (x, y), height in zip(lines, ends, heights, strict=True):
        leader = f"M{x:.2f} {y:.2f}L{right:.2f} {y:.2f}L{right + LEADER:.2f} {height:.2f}"
        inside = element("path", class_="leader", d=leader)
        inside += element("text", escape(_name(line, size)), x=right + LEADER + 3, y=height + 4, class_="name")
        parts.append(element("g", inside, class_=f"label {line.kind} c{line.colour}", data_name=line.name))
    return "".join(parts)


def spaced(positions: ArrayLike, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move positions as little as possible, in the sense of least squares, so that they keep a distance.

    Parameters
    ----------
    positions : array-like of shape (n,)
    gap : float
        Least distance of two.
    low, high : float
        Bounds, which are left only if the positions have no room between them.

    Returns
    -------
    ndarray of shape (n,)
        In the given order; equal positions keep theirs.

    Examples
    --------
    >>> spaced([50.0, 10.0, 52.0], 10, 0, 100)
    array([46., 10., 56.])
    """
    given = np.asarray(positions, np.float64)
    order, steps = np.argsort(given, kind="stable"), gap * np.arange(len(given))
    blocks: list[list[float]] = []  # neighbours that touch move together, to the mean of what they are pulled to
    for pull in given[order] - steps:
        blocks.append([pull])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    moved = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks]) if blocks else steps
    found = np.empty_like(given)
    found[order] = np.clip(moved, low, max(low, high - steps[-1] if len(steps) else low)) + steps
    return found


def _column(lines: list[Curve], at: float, x_label: str, shares: bool) -> dict[str, Any]:
    """Tooltip with the values of all curves at one x, from top to bottom as they are drawn."""
    found = sorted(((line.points[at], line) for line in lines if at in line.points), key=lambda pair: -pair[0].mean)
    numbers = {point.number for point, _ in found}
    rows = [
        {
            "colour": line.colour,
            "label": line.label,
            "mean": percent(point.mean) if shares else f"{point.mean:.2g}",
            "range": _range(point, shares),
        }
        | ({"trials": f"{point.number}×"} if len(numbers) > 1 else {})
        for point, line in found
    ]
    note = share_note(numbers) if shares else _trials_note(numbers)
    return {"at": f"{at:,.0f} {x_label}", "lines": rows, "note": note}


def _range(point: Spread, shares: bool) -> str:
    if shares:
        return f"{percent(point.low)} – {percent(point.high)}"
    return "" if point.number == 1 else f"{point.low:.2g} – {point.high:.2g}"


def percent(share: float) -> str:
    """Format a share.

    Examples
    --------
    >>> percent(0.906), percent(0.0)
    ('91 %', '0 %')
    """
    return f"{100 * share:.0f} %"


def share_note(numbers: set[int]) -> str:
    """Name the interval of shares and the number of trials.

    Examples
    --------
    >>> share_note({32}), share_note({3, 4})
    ('share and 95 % interval of 32 trials', 'share and 95 % interval of 3 to 4 trials')
    """
    low, high = min(numbers), max(numbers)
    return f"share and 95 % interval of {low if low == high else f'{low} to {high}'} trial{'s' * (high > 1)}"


def _trials_note(numbers: set[int]) -> str:
    """Name the statistics and the number of trials.

    Examples
    --------
    >>> _trials_note({20}), _trials_note({1}), _trials_note({2})
    ('mean and quartiles of 20 trials', 'one trial', 'mean and range of 2 trials')
    >>> _trials_note({1, 20})
    'mean and quartiles of 1 to 20 trials; of fewer than 4 their range'
    """
    if numbers == {1}:
        return "one trial"
    low, high = min(numbers), max(numbers)
    note = f"{low if low == high else f'{low} to {high}'} trials"
    if high < MIN_QUARTILES:
        return f"mean and range of {note}"
    return f"mean and quartiles of {note}" + f"; of fewer than {MIN_QUARTILES} their range" * (low < MIN_QUARTILES)
