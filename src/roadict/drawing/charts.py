"""Charts as SVG: they scale, take the colours of the page through the classes of ``charts.css``, and need no files."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Line = tuple[ArrayLike, ArrayLike]
"""Its xs, which ascend, and its ys."""

CSS_FILE = Path(__file__).parent / "templates" / "charts.css"
MAX_POINTS = 400
"""Points of a line; more cannot be resolved."""
MIN_TICK_GAP = 15
"""Least distance of the lowest tick from the next one, where it is added."""
LETTER, LINE = 6.5, 14
"""Width of a letter of a label, about, and distance of two lines of text."""


class Mark(NamedTuple):
    """A point of a chart that deserves a label."""

    x: float
    y: float
    label: str


class Place(NamedTuple):
    """Where a label is: its left and right end, and the height of its middle, in pixels."""

    left: float
    right: float
    level: float

    def overlap(self, other: "Place") -> float:
        """Width of what two labels have in common.

        Examples
        --------
        >>> Place(10, 50, 100).overlap(Place(30, 90, 108)), Place(10, 50, 100).overlap(Place(30, 90, 120))
        (20, 0.0)
        """
        if abs(self.level - other.level) >= LINE:
            return 0.0
        return max(min(self.right, other.right) - max(self.left, other.left), 0.0)


def element(tag: str, inside: str = "", **attributes: Any) -> str:
    """Write an element; ``inside`` is markup; attributes are escaped, and empty ones omitted.

    Examples
    --------
    >>> element("text", "a", class_="name", text_anchor="end", x=1 / 3)
    '<text class="name" text-anchor="end" x="0.33">a</text>'
    """
    texts = {name: _pixels(value) if isinstance(value, float) else str(value) for name, value in attributes.items()}
    written = "".join(f' {name.strip("_").replace("_", "-")}="{escape(text)}"' for name, text in texts.items() if text)
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def text(x: float, y: float, label: str, anchor: str = "middle", kind: str = "") -> str:
    """Write a label."""
    return element("text", escape(label), x=x, y=y, text_anchor=anchor, class_=kind)


def svg(width: float, height: float, parts: Sequence[str], title: str, kind: str = "") -> str:
    """Write elements as an ``<svg>`` element; the title is for screen readers."""
    box = f"0 0 {width} {height}"
    return element("svg", "".join(parts), viewBox=box, role="img", aria_label=title, class_=f"plot {kind}".strip())


def hover(inside: str, tip: Mapping[str, Any], kind: str = "") -> str:
    """Group elements with the tooltip that the page's script shows on hovering."""
    return element("g", inside, class_=f"column {kind}", data_tip=json.dumps(tip, ensure_ascii=False))


def legend_width(name: str) -> int:
    """Return the room of a name in a legend, with its line and the gap after it."""
    return 36 + 7 * len(name)


def _pixels(value: float) -> str:
    return f"{round(value, 2):g}"


@dataclass(frozen=True)
class Scale:
    """From values, ``low`` to ``high``, to pixels, ``start`` to ``end``; NaN for zero on a log scale.

    Examples
    --------
    >>> scale = Scale(1e-4, 1, 200, 0, log=True)
    >>> float(scale(0.01)), scale.ticks(3)
    (100.0, [0.0001, 0.01, 1.0])
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: ArrayLike) -> Array:
        """Pixels of values; the middle if both ends are equal."""
        low, high = self._along([self.low, self.high])
        share = (self._along(values) - low) / (high - low) if high != low else np.full(np.shape(values), 0.5)
        pixels: Array = self.start + share * (self.end - self.start)
        return pixels

    def _along(self, values: ArrayLike) -> Array:
        array = np.asarray(values, np.float64)
        return np.log10(np.where(array > 0, array, np.nan)) if self.log else array

    def ticks(self, max_ticks: int = 6) -> list[float]:
        """Round values between the ends: powers of ten, or multiples of 1, 2 or 5 times one."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = math.ceil((last - first + 1) / max_ticks)
            if last > first:
                return [10.0**power for power in range(first, last + 1) if power % every == 0]
        if self.high <= self.low:
            return [self.low]
        rough = (self.high - self.low) / max_ticks
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [multiple * step for multiple in range(first, last + 1)]

    def label(self, value: float) -> str:
        """Markup of a tick's number."""
        if self.log and not 1 <= value < 1e6 and math.isclose(power := math.log10(value), round(power)):
            return "10" + element("tspan", f"{power:.0f}".replace("-", "−"), dy=-5, font_size=9)
        return f"{value:.4g}".replace("e+0", "e") if abs(value) >= 1e6 else f"{value:,.6g}"


@dataclass(frozen=True)
class Chart:
    """A plotting area between two scales, ``inset`` wider left and right; its methods write SVG."""

    x: Scale
    y: Scale
    inset: float = 0.0

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the plotting area."""
        return self.x.start - self.inset, self.y.end, self.x.end + self.inset, self.y.start

    def x_axis(self, title: str, ticks: Sequence[float] | None = None, *, grid: bool = False) -> str:
        """Tick labels and a title below the plotting area, with or without grid lines."""
        left, top, right, bottom = self.box
        parts = [text((left + right) / 2, bottom + 36, title)]
        for tick in self.x.ticks() if ticks is None else ticks:
            at = float(self.x(tick))
            parts.append(element("text", self.x.label(tick), x=at, y=bottom + 18, text_anchor="middle"))
            parts += [element("line", class_="grid", x1=at, x2=at, y1=top, y2=bottom)] * grid
        return "".join(parts)

    def y_axis(self, title: str = "", unit: str = "", *, at_most: bool = False) -> str:
        """Grid lines with tick labels at their left, and a title.

        ``at_most`` says that the lowest tick also stands for all values below it.
        """
        left, top, right, bottom = self.box
        turned = f"translate(12 {(top + bottom) / 2}) rotate(-90)"
        parts = [element("text", escape(title), transform=turned, text_anchor="middle")] * bool(title)
        ticks = self.y.ticks(round((bottom - top) / 30))
        if at_most:
            ticks = [self.y.low, *(tick for tick in ticks if abs(float(self.y(tick)) - bottom) > MIN_TICK_GAP)]
        for tick in ticks:
            at, sign = float(self.y(tick)), "≤ " if at_most and tick == self.y.low else ""
            parts.append(element("line", class_="grid", x1=left, x2=right, y1=at, y2=at))
            parts.append(element("text", sign + self.y.label(tick) + unit, x=left - 7, y=at + 4, text_anchor="end"))
        return "".join(parts)

    def line(self, xs: ArrayLike, ys: ArrayLike, kind: str = "") -> str:
        """A line through points; one without finite pixels leaves a gap."""
        x, y = self.x(xs), self.y(ys)
        steps, pen = [], "M"
        for i in np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int)):
            finite = bool(np.isfinite(x[i] + y[i]))
            steps += [f"{pen}{_pixels(x[i])} {_pixels(y[i])}"] * finite
            pen = "L" if finite else "M"
        return element("path", class_=f"line {kind}", d="".join(steps))

    def band(self, xs: ArrayLike, lows: ArrayLike, highs: ArrayLike, **attributes: str) -> str:
        """The area between two lines."""
        x, low, high = self.x(xs), self.y(lows), self.y(highs)
        outline = zip([*x, *x[::-1]], [*high, *low[::-1]], strict=True)
        return element("polygon", points=" ".join(f"{_pixels(a)},{_pixels(b)}" for a, b in outline), **attributes)

    def dots(self, xs: ArrayLike, ys: ArrayLike, radius: float = 3.5) -> str:
        """Points."""
        spots = zip(np.atleast_1d(self.x(xs)), np.atleast_1d(self.y(ys)), strict=True)
        return "".join(element("circle", class_="dot", cx=x, cy=y, r=radius) for x, y in spots)

    def drops(self, xs: ArrayLike, ys: ArrayLike) -> str:
        """Points that stand for smaller values: triangles that point down."""
        spots = zip(np.atleast_1d(self.x(xs)), np.atleast_1d(self.y(ys)), strict=True)
        return "".join(element("path", class_="dot most", d=f"M{x - 5:.2f} {y - 4:.2f}h10l-5 8z") for x, y in spots)

    def cross(self, x: float, y: float) -> str:
        """A cross, where a line ends that should go on."""
        at = f"M{float(self.x(x)) - 5:.2f} {float(self.y(y)) - 5:.2f}l10 10m0 -10l-10 10"
        return element("path", class_="line cross", d=at)

    def bars(self, heights: ArrayLike, kind: str) -> str:
        """Bars over 1, 2, ..., from zero up."""
        tops, zero = self.y(heights), float(self.y(0))
        lefts = self.x(np.arange(1, len(tops) + 1) - 0.4)
        width = max(float(self.x(0.8) - self.x(0)), 0.5)
        sizes = zip(lefts, tops, strict=True)
        rects = [element("rect", x=left, y=top, width=width, height=zero - top) for left, top in sizes]
        return element("g", "".join(rects), class_=f"bars {kind}")

    def mark(self, x: float, y: float, label: str, kind: str = "", avoid: Sequence[Line] = ()) -> str:
        """Ring a point and label it; a point beyond a scale is ringed at its end."""
        across, down = self._within(x, y)
        place = self.place_of_mark(x, y, label, avoid)
        start, anchor = (place.right, "end") if place.right < across else (place.left, "start")
        ring = element("circle", cx=across, cy=down, r=5)
        return element("g", ring + text(start, place.level + 4, label, anchor), class_=f"mark {kind}")

    def place_of_mark(self, x: float, y: float, label: str, avoid: Sequence[Line] = ()) -> Place:
        """Where ``mark`` puts its label: towards the middle, beside the ring.

        It is above or below where fewer of the lines ``avoid`` cross it.
        """
        across, down = self._within(x, y)
        width = LETTER * len(label)
        left = across - 10 - width if across > (self.x.start + self.x.end) / 2 else across + 10
        beside = (at for at in (down - LINE, down + LINE) if self.y.end + 6 <= at <= self.y.start - 6)
        places = [Place(left, left + width, at) for at in (down, *beside)]
        return min(places, key=lambda place: self._crossed(place, avoid))

    def _within(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point, or of the nearest one within the scales."""
        return float(self.x(np.clip(x, self.x.low, self.x.high))), float(self.y(np.clip(y, self.y.low, self.y.high)))

    def level(
        self, y: float, label: str, kind: str = "", avoid: Sequence[Line] = (), labels: Sequence[Place] = ()
    ) -> str:
        """A line across the plotting area with a label, on none of other ``labels`` if there is room.

        It is above or below the line, at its left, right or middle, where the fewest of the lines ``avoid`` cross it.
        """
        left, top, right, bottom = self.box
        down, width = float(self.y(y)), LETTER * len(label)
        starts = (left + 4, right - 4 - width, (left + right - width) / 2)
        levels = [at for at in (down - 9, down + 11) if top + 6 <= at <= bottom - 6]
        places = [Place(start, start + width, at) for start in starts for at in levels]
        place = min(places, key=lambda place: (sum(map(place.overlap, labels)), self._crossed(place, avoid)))
        line = element("path", class_=f"line {kind}", d=f"M{_pixels(left)} {_pixels(down)}H{_pixels(right)}")
        return element("g", line + text(place.left + width / 2, place.level + 4, label), class_="level")

    def _crossed(self, place: Place, lines: Sequence[Line]) -> int:
        """Over how many pixels lines run through a label."""
        across, count = np.arange(place.left, place.right + 1), 0
        for xs, ys in lines:
            down = np.interp(across, self.x(xs), self.y(ys), left=np.nan, right=np.nan)
            above, below = np.minimum(down[1:], down[:-1]), np.maximum(down[1:], down[:-1])
            count += int(((above < place.level + 8) & (below > place.level - 8)).sum())
        return count

    def legend(self, names: Mapping[str, str]) -> str:
        """Names by the kinds of their lines, in a row above the plotting area."""
        left, top, _, _ = self.box
        parts = []
        for kind, name in names.items():
            parts.append(element("path", class_=f"line {kind}", d=f"M{_pixels(left)} {_pixels(top - 14)}h16"))
            parts.append(text(left + 21, top - 10, name, "start"))
            left += legend_width(name)
        return "".join(parts)

    def columns(self, xs: ArrayLike, tips: Sequence[Mapping[str, Any]]) -> str:
        """Hover areas, one around each of ascending xs, with their tooltips."""
        left, top, right, bottom = self.box
        middles = self.x(xs)
        edges = [left, *(middles[1:] + middles[:-1]) / 2, right]
        parts = []
        for i, tip in enumerate(tips):
            guide = element("line", class_="guide", x1=middles[i], x2=middles[i], y1=top, y2=bottom)
            area = element("rect", x=edges[i], y=top, width=edges[i + 1] - edges[i], height=bottom - top)
            parts.append(hover(guide + area, tip))
        return "".join(parts)
