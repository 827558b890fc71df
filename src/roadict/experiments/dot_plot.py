"""A table of PSNR as a figure: one line per method, the best on top, with the paper's figure beside ours."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from roadict.experiments.figures import WIDTH, svg
from roadict.experiments.summary import spread

LEFT, RIGHT, TOP, BOTTOM = 150, 14, 8, 40
LINE = 25
"""Height of a method."""
TICKS = 7
"""At most, along the axis."""


@dataclass(frozen=True)
class Strip:
    """A method with the values of its trials, and the paper's value.

    Attributes
    ----------
    kind : {"ours", "", "bare"}
        ROAD, another learner, or what nobody has learned.
    """

    label: str
    kind: str
    values: list[float]
    paper: float | None = None

    @property
    def mean(self) -> float:
        """Of the trials."""
        return spread(self.values).mean


def dot_plot(strips: list[Strip], title: str = "") -> str:
    """Draw means, quartiles and trials of methods.

    Parameters
    ----------
    strips : list of Strip
    title : str
        For those who do not see the figure.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    ranked = sorted(strips, key=lambda strip: -strip.mean)
    every = [value for strip in ranked for value in strip.values] + [s.paper for s in ranked if s.paper is not None]
    low, high = math.floor(min(every)), math.ceil(max(every))
    high += high == low
    bottom = TOP + LINE * len(ranked)

    def x(value: float) -> float:
        return round(LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    step = max(1, math.ceil((high - low) / TICKS))
    parts = []
    for tick in range(low, high + 1, step):
        parts.append(f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{tick}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 34}" text-anchor="middle">PSNR, dB</text>')
    parts += [_strip(strip, TOP + LINE * (place + 0.5), x) for place, strip in enumerate(ranked)]
    return svg(parts, bottom + BOTTOM, title)


def _strip(strip: Strip, y: float, x: Callable[[float], float]) -> str:
    point = spread(strip.values)
    left, right = x(point.low), x(point.high)
    parts = [
        f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end" class="name {strip.kind}">{escape(strip.label)}</text>',
        f'<rect class="band" x="{left}" y="{y - 7}" width="{max(0.0, right - left):.1f}" height="14" rx="3"/>',
    ]
    parts += [
        f'<line class="trial" x1="{x(v)}" x2="{x(v)}" y1="{y - 5}" y2="{y + 5}"/>'
        for v in strip.values
        if point.number > 1
    ]
    parts.append(f'<circle class="dot" cx="{x(point.mean)}" cy="{y}" r="5"/>')
    if strip.paper is not None:
        parts.append(f'<path class="paper" d="M{x(strip.paper)} {y - 6}l6 6l-6 6l-6 -6z"/>')
    area = f'<rect class="area" x="0" y="{y - LINE / 2}" width="{WIDTH}" height="{LINE}"/>'
    colour = {"ours": "c0", "": "c8"}.get(strip.kind, "c6")
    return f'<g class="column {colour}" data-tip="{_tip(strip)}">{area}{"".join(parts)}</g>'


def _tip(strip: Strip) -> str:
    point = spread(strip.values)
    lines = [{"label": "mean", "mean": f"{point.mean:.2f} dB", "range": ""}]
    if point.number > 1:
        lines.append({"label": "quartiles", "mean": f"{point.low:.2f} – {point.high:.2f}", "range": ""})
        lines.append({"label": "all", "mean": f"{min(strip.values):.2f} – {max(strip.values):.2f}", "range": ""})
    if strip.paper is not None:
        lines.append({"label": "in the paper", "mean": f"{strip.paper:.2f} dB", "range": ""})
    note = "one trial" if point.number == 1 else f"{point.number} trials"
    return escape(json.dumps({"at": strip.label, "lines": lines, "note": note}, ensure_ascii=False))
