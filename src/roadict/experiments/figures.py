"""Figures of the page as SVG, which scales, follows the colours of the page and has values to hover over."""

import itertools
import json
import math
from dataclasses import dataclass
from html import escape

from roadict.experiments.methods import INEXACT_ONE, INEXACT_THREE, OPPONENTS, SYNTHETIC
from roadict.experiments.summary import Spread, Values, spread

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 10, 44
INSET = 12
"""From the ends of the axis to the first and the last point."""
FLOOR = 1e-6
"""Errors below this are drawn here: a log scale has no place for zero."""
COLOURS = {method.name: index for index, method in enumerate(SYNTHETIC)} | {
    INEXACT_THREE.name: 2,
    INEXACT_ONE.name: 3,
}
"""A method has one colour in all figures; the inexact ones never stand beside those whose they share."""


@dataclass(frozen=True)
class Curve:
    """A line of a figure.

    Attributes
    ----------
    name, label : str
        For rows, and for people.
    colour : int
        A number, whose colour the page knows.
    points : dict of float to Spread
    """

    name: str
    label: str
    colour: int
    points: dict[float, Spread]

    @property
    def kind(self) -> str:
        """How the line is drawn: "ours" (ROAD), "" (another of the paper's) or "added" (not in the paper)."""
        if self.name.startswith("road"):
            return "ours"
        return "" if self.name in OPPONENTS or self.name.startswith("iadmm") else "added"


def curves(values: Values, labels: dict[str, str]) -> list[Curve]:
    """Curves in the order of the labels."""
    return [
        Curve(name, label, COLOURS.get(name, index), {at: spread(trials) for at, trials in values[name].items()})
        for index, (name, label) in enumerate(labels.items())
        if name in values
    ]


def line_plot(
    lines: list[Curve], x_label: str, *, y_label: str = "recovery error", log_x: bool = False, title: str = ""
) -> str:
    """Draw means on a log scale with bands between the quartiles of the trials.

    Parameters
    ----------
    lines : list of Curve
    x_label, y_label : str
    log_x : bool
    title : str
        For those who do not see the figure.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    xs = sorted({at for line in lines for at in line.points})
    lows = [max(FLOOR, point.low) for line in lines for point in line.points.values()]
    bottom = 10 ** math.floor(math.log10(min([*lows, 1e-2])))
    highest = max([1.0, *(point.high for line in lines for point in line.points.values())])
    place = _Scales(xs[0], xs[-1], bottom, 10 ** math.ceil(math.log10(highest)), log_x)
    parts = [_axes(place, xs, x_label, y_label)]
    parts += [_band(place, line) for line in lines]
    # The first curve, ROAD as in the paper, on top.
    parts += [_line(place, line, dots=len(xs) < 12) for line in reversed(lines)]
    parts += _columns(place, lines, xs, x_label)
    return svg(parts, HEIGHT, title)


def svg(parts: list[str], height: float, title: str) -> str:
    """Put the parts of a figure into an element; the title is for those who do not see it."""
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" class="plot">'
    return head + "".join(parts) + "</svg>"


class _Scales:
    """From values to places in the figure."""

    def __init__(self, x_low: float, x_high: float, y_low: float, y_high: float, log_x: bool) -> None:
        self.log_x = log_x
        self.y_range = (y_low, y_high)
        self._x = (self._along(x_low), self._along(x_high))
        self._y = (math.log10(y_low), math.log10(y_high))

    def _along(self, value: float) -> float:
        return math.log10(value) if self.log_x else value

    def x(self, value: float) -> float:
        low, high = self._x
        share = 0.5 if high == low else (self._along(value) - low) / (high - low)
        return round(LEFT + INSET + share * (WIDTH - LEFT - RIGHT - 2 * INSET), 1)

    def y(self, value: float) -> float:
        low, high = self._y
        share = (math.log10(max(value, self.y_range[0])) - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _axes(place: _Scales, xs: list[float], x_label: str, y_label: str) -> str:
    low, high = (round(math.log10(bound)) for bound in place.y_range)
    parts = []
    for power in range(low, high + 1):
        y = place.y(10.0**power)
        text = "1" if power == 0 else f"10<tspan dy='-5' font-size='9'>{str(power).replace('-', '−')}</tspan>"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{text}</text>')
    ticks = [10.0**p for p in range(9) if xs[0] <= 10**p <= xs[-1]] if place.log_x else xs
    for tick in ticks:
        text = f"{tick:,.0f}"
        parts.append(f'<text x="{place.x(tick)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    upright = (HEIGHT - BOTTOM + TOP) / 2
    parts.append(f'<text transform="translate(12 {upright}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    return "".join(parts)


def _band(place: _Scales, line: Curve) -> str:
    upper = [f"{place.x(at)},{place.y(point.high)}" for at, point in line.points.items()]
    lower = [f"{place.x(at)},{place.y(point.low)}" for at, point in reversed(line.points.items())]
    return f'<polygon class="band c{line.colour}" data-name="{escape(line.name)}" points="{" ".join(upper + lower)}"/>'


def _line(place: _Scales, line: Curve, dots: bool) -> str:
    spots = [(place.x(at), place.y(point.mean)) for at, point in line.points.items()]
    points = " ".join(f"{x},{y}" for x, y in spots)
    parts = [f'<polyline class="line {line.kind}" points="{points}"/>']
    if dots:
        parts += [f'<circle class="dot" cx="{x}" cy="{y}" r="3.5"/>' for x, y in spots]
    return f'<g class="c{line.colour}" data-name="{escape(line.name)}">{"".join(parts)}</g>'


def _columns(place: _Scales, lines: list[Curve], xs: list[float], x_label: str) -> list[str]:
    """Areas to hover over, one for each number of samples, with the values of all curves there, best first."""
    middles = [place.x(at) for at in xs]
    edges = [LEFT, *((one + two) / 2 for one, two in itertools.pairwise(middles)), WIDTH - RIGHT]
    parts = []
    for at, x, (left, right) in zip(xs, middles, itertools.pairwise(edges), strict=True):
        found = sorted(((line.points[at], line) for line in lines if at in line.points), key=lambda pair: pair[0].mean)
        numbers = {point.number for point, _ in found}
        told = {
            "at": f"{at:,.0f} {x_label}",
            "lines": [
                {
                    "colour": line.colour,
                    "label": line.label,
                    "mean": f"{point.mean:.2g}",
                    "range": "" if point.number == 1 else f"{point.low:.2g} – {point.high:.2g}",
                }
                | ({"trials": f"{point.number}×"} if len(numbers) > 1 else {})
                for point, line in found
            ],
            "note": _counted(numbers),
        }
        parts.append(
            f'<g class="column" data-tip="{escape(json.dumps(told, ensure_ascii=False))}"><line class="guide" x1="{x}" '
            f'x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/><rect x="{left:.1f}" y="{TOP}" '
            f'width="{right - left:.1f}" height="{HEIGHT - TOP - BOTTOM}"/></g>'
        )
    return parts


def _counted(numbers: set[int]) -> str:
    """Say of how many trials the values are.

    Examples
    --------
    >>> _counted({3}), _counted({1}), _counted({3, 20})
    ('mean and quartiles of 3 trials', 'one trial', 'mean and quartiles of 3 to 20 trials')
    """
    if numbers == {1}:
        return "one trial"
    low, high = min(numbers), max(numbers)
    return f"mean and quartiles of {low if low == high else f'{low} to {high}'} trials"
