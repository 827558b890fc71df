"""Figures of the page, with tooltips: which curves, and tables of PSNR and shares of trials as dots."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roadict.drawing.charts import Chart, Scale, element, hover, svg, text
from roadict.drawing.curves import (
    BOTTOM,
    MIN_QUARTILES,
    NARROW,
    WIDE,
    Curve,
    Size,
    Spread,
    percent,
    share_note,
    spread,
)
from roadict.experiments.intervals import share_interval
from roadict.experiments.judgement import FOUND
from roadict.experiments.methods import BASELINES, INEXACT_ONE, INEXACT_THREE, SYNTHETIC
from roadict.experiments.summary import Values

TOP = 10
NAME_WIDTH = 154
"""Width of the methods' names left of the dots."""
LONG_NAME_WIDTH = 214
"""The same where there is room for long ones."""
ROW_HEIGHT = 25
"""Height of a method's row of dots."""
COLOURS = {method.name: index for index, method in enumerate(SYNTHETIC)} | {
    INEXACT_THREE.name: 2,
    INEXACT_ONE.name: 3,
    "road-unfinished": 4,
    "road-one-start": 5,
    "road-paper-finished": 6,
    "lasso-annealed": 7,
    "lasso-annealed-finished": 8,
}
"""A method has one colour in all figures; the inexact ones and those of the ablation share those of other figures."""

SHORT = {
    "road-defaults": "ROAD, defaults",
    "iadmm-three": "iADMM, 3 ρ",
    "iadmm-one": "iADMM, 1 ρ",
    "lasso": "alt. Lasso",
    "consistent-sequential": "consistent ℓ1",
    "road-unfinished": "ROAD, no finish",
    "road-one-start": "one start",
    "road-paper-finished": "ρ = 10, finish",
    "lasso-annealed-finished": "Lasso, finish",
}
"""Labels at lines on a phone, and of lines with long ones."""


@dataclass(frozen=True)
class Strip:
    """A method with the values of its trials and the paper's; kind is "ours" (ROAD), "" or "bare" (not learned)."""

    name: str
    label: str
    kind: str
    values: list[float]
    paper: float | None = None


def found_share(errors: list[float]) -> Spread:
    """Share of trials that find the dictionary, with its interval.

    Examples
    --------
    >>> found_share([0.0, 0.1, 0.2, 0.009]).mean
    0.5
    """
    share = share_interval(sum(error < FOUND for error in errors), len(errors))
    return Spread(share.value, share.low, share.high, len(errors))


def curves(
    values: Values,
    labels: dict[str, str],
    planned: Sequence[float] = (),
    point: Callable[[list[float]], Spread] = spread,
) -> list[Curve]:
    """Curves in the order of the labels; those without all of the planned points end early."""
    return [
        Curve(
            name,
            label,
            COLOURS.get(name, index),
            {at: point(trials) for at, trials in values[name].items()},
            _kind(name),
            SHORT.get(name, ""),
            not {*planned} <= values[name].keys(),
        )
        for index, (name, label) in enumerate(labels.items())
        if name in values
    ]


def _kind(name: str) -> str:
    """How the line of a method is drawn: "ours" (ROAD), "" (another of the paper's) or "added" (not in the paper)."""
    if name.startswith("road"):
        return "ours"
    return "" if name in BASELINES or name.startswith("iadmm") else "added"


def ranked(strips: list[Strip]) -> list[Strip]:
    """Order by the mean, the best first."""
    return sorted(strips, key=lambda strip: -spread(strip.values).mean)


def dot_plot(strips: list[Strip], title: str = "") -> str:
    """Draw means, quartiles and trials of methods, the best on top, with the paper's values, in both sizes."""
    return element("div", "".join(_dots(size, ranked(strips), title) for size in (WIDE, NARROW)), class_="figure")


def _dots(size: Size, strips: list[Strip], title: str) -> str:
    values = [value for strip in strips for value in (*strip.values, strip.paper) if value is not None]
    low, high = math.floor(min(values)), math.ceil(max(values))
    bottom = TOP + ROW_HEIGHT * len(strips)
    x = Scale(low, high + (high == low), NAME_WIDTH, size.width - 14)
    chart = Chart(x, Scale(len(strips), 0, bottom, TOP))
    drawn = [_strip(strip, chart, row + 0.5, size.width) for row, strip in enumerate(strips)]
    return svg(size.width, bottom + BOTTOM, [chart.x_axis("PSNR, dB", grid=True), *drawn], title, size.kind)


def _strip(strip: Strip, chart: Chart, at: float, width: int) -> str:
    point, y = spread(strip.values), float(chart.y(at))
    left, right = (float(end) for end in chart.x([point.low, point.high]))
    parts = [
        element("rect", class_="area", x=0, y=y - ROW_HEIGHT / 2, width=width, height=ROW_HEIGHT),
        text(NAME_WIDTH - 10, y + 4, strip.label, "end", f"name {strip.kind}"),
    ]
    if point.number >= MIN_QUARTILES:
        parts.append(element("rect", class_="band", x=left, y=y - 7, width=max(0.0, right - left), height=14, rx=3))
    if point.number > 1:
        ticks = chart.x(strip.values)
        parts += [element("line", class_="trial", x1=tick, x2=tick, y1=y - 5, y2=y + 5) for tick in ticks]
    parts.append(chart.dots(point.mean, at, 5.0))
    if strip.paper is not None:
        parts.append(element("path", class_="paper", d=f"M{chart.x(strip.paper):.2f} {y - 6}l6 6l-6 6l-6 -6z"))
    return hover("".join(parts), _strip_tip(strip), {"ours": "c0", "": "c8"}.get(strip.kind, "c6"))


def _strip_tip(strip: Strip) -> dict[str, Any]:
    point = spread(strip.values)
    values = {"mean": f"{point.mean:.2f} dB"}
    if point.number >= MIN_QUARTILES:
        values["quartiles"] = f"{point.low:.2f} – {point.high:.2f}"
    if point.number > 1:
        values["all"] = f"{min(strip.values):.2f} – {max(strip.values):.2f}"
    if strip.paper is not None:
        values["in the paper"] = f"{strip.paper:.2f} dB"
    rows = [{"label": label, "mean": value, "range": ""} for label, value in values.items()]
    return {"at": strip.label, "lines": rows, "note": "one trial" if point.number == 1 else f"{point.number} trials"}


def share_plot(lines: list[Curve], at: float, title: str = "") -> str:
    """Draw shares of trials at one x, with their intervals, in the order of the lines, in both sizes."""
    return element("div", "".join(_shares(size, lines, at, title) for size in (WIDE, NARROW)), class_="figure")


def _shares(size: Size, lines: list[Curve], at: float, title: str) -> str:
    found = [line for line in lines if at in line.points]
    bottom, left = TOP + ROW_HEIGHT * len(found), NAME_WIDTH if size == NARROW else LONG_NAME_WIDTH
    chart = Chart(Scale(0, 1, left, size.width - 14), Scale(len(found), 0, bottom, TOP))
    drawn = [_share(line, chart, row + 0.5, at, size) for row, line in enumerate(found)]
    parts = [chart.x_axis(f"share of the trials, N = {at:,.0f}", grid=True), *drawn]
    return svg(size.width, bottom + BOTTOM, parts, title, size.kind)


def _share(line: Curve, chart: Chart, row: float, at: float, size: Size) -> str:
    point, y, start = line.points[at], float(chart.y(row)), float(chart.x(0)) - 10
    label = (line.short or line.label) if size == NARROW else line.label
    parts = [
        element("rect", class_="area", x=0, y=y - ROW_HEIGHT / 2, width=size.width, height=ROW_HEIGHT),
        text(start, y + 4, label, "end", f"name {line.kind if line.kind == 'ours' else ''}".strip()),
        chart.line([point.low, point.high], [row, row], "ours" if line.kind == "ours" else ""),
        chart.dots(point.mean, row, 5.0),
    ]
    values = {"found": percent(point.mean), "interval": f"{percent(point.low)} – {percent(point.high)}"}
    rows = [{"label": name, "mean": value, "range": ""} for name, value in values.items()]
    tip = {"at": line.label, "lines": rows, "note": share_note({point.number})}
    return hover("".join(parts), tip, f"c{line.colour}")
