"""Figures of the page as SVG, which scales, follows the colours of the page and has values to hover over."""

import math
from dataclasses import dataclass
from html import escape

from roadict.experiments.summary import Spread, Values, spread

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 46
FLOOR = 1e-6
"""Errors below this are drawn here: a log scale has no place for zero."""


@dataclass(frozen=True)
class Curve:
    """A line of a figure: a label, the number of its colour, and its points."""

    name: str
    label: str
    colour: int
    points: dict[float, Spread]


def curves(values: Values, labels: dict[str, str]) -> list[Curve]:
    """Curves in the order, and the colours, of the labels; a method has one colour in all figures."""
    return [
        Curve(name, label, index, {at: spread(trials) for at, trials in values[name].items()})
        for index, (name, label) in enumerate(labels.items())
        if name in values
    ]


def line_plot(lines: list[Curve], x_label: str, *, log_x: bool = False, title: str = "") -> str:
    """Draw mean errors on a log scale with bands between the quartiles of the trials.

    Parameters
    ----------
    lines : list of Curve
    x_label : str
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
    bottom = 10 ** math.floor(math.log10(min([*lows, 1e-3])))
    place = _Scales(xs[0], xs[-1], bottom, 1.0, log_x)
    parts = [_axes(place, xs, x_label)]
    parts += [_band(place, line) for line in lines]
    parts += [_line(place, line, x_label) for line in lines]
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" class="plot">'
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
        return round(LEFT + 12 + share * (WIDTH - LEFT - RIGHT - 24), 1)

    def y(self, value: float) -> float:
        low, high = self._y
        share = (math.log10(max(value, self.y_range[0])) - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _axes(place: _Scales, xs: list[float], x_label: str) -> str:
    low, high = (round(math.log10(bound)) for bound in place.y_range)
    parts = []
    for power in range(low, high + 1):
        y = place.y(10.0**power)
        text = "1" if power == 0 else f"10<tspan dy='-5' font-size='10'>{str(power).replace('-', '−')}</tspan>"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{text}</text>')
    ticks = [10.0**p for p in range(9) if xs[0] <= 10**p <= xs[-1]] if place.log_x else xs
    for tick in ticks:
        parts.append(f'<text x="{place.x(tick)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{tick:,g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    upright = (HEIGHT - BOTTOM + TOP) / 2
    parts.append(f'<text transform="translate(14 {upright}) rotate(-90)" text-anchor="middle">recovery error</text>')
    return "".join(parts)


def _band(place: _Scales, line: Curve) -> str:
    upper = [f"{place.x(at)},{place.y(point.high)}" for at, point in line.points.items()]
    lower = [f"{place.x(at)},{place.y(point.low)}" for at, point in reversed(line.points.items())]
    return f'<polygon class="band c{line.colour}" points="{" ".join(upper + lower)}"/>'


def _line(place: _Scales, line: Curve, x_label: str) -> str:
    points = " ".join(f"{place.x(at)},{place.y(point.mean)}" for at, point in line.points.items())
    parts = [f'<polyline class="line c{line.colour}" points="{points}"/>']
    for at, point in line.points.items():
        told = (
            f"{line.label}: {point.mean:.2g} at {x_label} {at:g} "
            f"(quartiles {point.low:.2g} to {point.high:.2g}, {point.number} trials)"
        )
        parts.append(
            f'<circle class="dot c{line.colour}" cx="{place.x(at)}" cy="{place.y(point.mean)}" r="4" '
            f'data-tip="{escape(told)}"><title>{escape(told)}</title></circle>'
        )
    return "".join(parts)
