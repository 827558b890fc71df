"""Figures of the page, with tooltips: which curves, and tables of PSNR as dots."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roadict.drawing.charts import Chart, Scale, element, hover, svg, text
from roadict.drawing.curves import BOTTOM, MIN_QUARTILES, NARROW, WIDE, Curve, Size, spread
from roadict.experiments.methods import BASELINES, INEXACT_ONE, INEXACT_THREE, SYNTHETIC
from roadict.experiments.summary import Values

TOP = 10
NAME_WIDTH = 154
"""Width of the methods' names left of the dots."""
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
}
"""Labels at lines on a phone."""


@dataclass(frozen=True)
class Strip:
    """A method with the values of its trials and the paper's; kind is "ours" (ROAD), "" or "bare" (not learned)."""

    name: str
    label: str
    kind: str
    values: list[float]
    paper: float | None = None


def curves(values: Values, labels: dict[str, str], planned: Sequence[float] = ()) -> list[Curve]:
    """Curves in the order of the labels; those without all of the planned points end early."""
    return [
        Curve(
            name,
            label,
            COLOURS.get(name, index),
            {at: spread(trials) for at, trials in values[name].items()},
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
