"""The charts of the demo: how the run converged, and what it minimised."""

from collections.abc import Sequence
from math import ceil, floor, log10

import numpy as np

from roadict.drawing.charts import Chart, Mark, Scale, svg
from roadict.drawing.curves import Curve, Spread
from roadict.drawing.numbers import number
from roadict.runs.history import Finished, History

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 18, 14, 44
POINTS = 40
"""Iterations in a chart."""


def convergence(history: History) -> tuple[list[Curve], str]:
    """Draw residuals and data error along the iterations, and the error of the returned fit; with the curves."""
    named = {name: history[name] for name in (*history.residuals, "error")}
    labels = {"error": "data error", **{name: f"{name} residual" for name in history.residuals}}
    at = _chosen(len(named["error"]))
    curves = [
        Curve(f"run-{name}", labels[name], colour, {int(i): _point(named[name][i - 1]) for i in at})
        for colour, name in enumerate(named)
    ]
    values = [point.mean for curve in curves for point in curve.points.values() if point.mean > 0]
    mark = _finish(history, "error")
    ends = [*values, *(each.y for each in mark if each.y > 0)]
    low, high = 10.0 ** floor(log10(min(ends))), 10.0 ** ceil(log10(max(ends)))
    scale = Scale(low, high, HEIGHT - BOTTOM, TOP, log=True)
    title = "residuals and data error of the run, and the data error of the fit returned"
    return curves, _drawn(curves, scale, "relative size", mark, title)


def objective(history: History, planted: float) -> tuple[list[Curve], str]:
    """Draw the objective along the iterations, that of the returned fit, and that of the planted codes."""
    at = _chosen(len(history["objective"]))
    curves = [
        Curve("run-objective", "of the run", 0, {int(i): _point(history["objective"][i - 1]) for i in at}),
        Curve("planted", "of the planted codes", 1, {int(i): _point(planted) for i in at}, "added"),
    ]
    largest = max(planted, float(history["objective"].max()))
    scale = Scale(0.0, 1.1 * largest, HEIGHT - BOTTOM, TOP)
    title = "objective of the run, of the fit returned and of the planted codes"
    return curves, _drawn(curves, scale, "sum of the absolute codes", _finish(history, "objective"), title)


def _chosen(n_iterations: int) -> list[int]:
    """Iterations to draw, closer together at the beginning."""
    return [int(i) for i in np.unique(np.geomspace(1, n_iterations, POINTS).astype(int))]


def _point(value: float) -> Spread:
    return Spread(float(value), float(value), float(value), 1)


def _finish(history: History, name: str) -> list[Mark]:
    """Mark of the returned fit, whose values differ from those of the last iteration."""
    finished: Finished | None = history.finished
    if finished is None:
        return []
    value = finished.error if name == "error" else finished.objective
    return [Mark(len(history[name]), value, f"{finished.label}: {number(value, 2) if value < 1 else f'{value:.1f}'}")]


def _drawn(curves: list[Curve], y: Scale, y_title: str, marks: Sequence[Mark], title: str) -> str:
    at = list(curves[0].points)
    chart = Chart(Scale(1, max(2, at[-1]), LEFT, WIDTH - RIGHT, log=True), y)
    parts = [chart.y_axis(y_title), chart.x_axis("iteration (log scale)")]
    lines = [(at, [max(point.mean, y.low) for point in curve.points.values()]) for curve in curves]
    parts += [
        f'<g class="c{curve.colour}" data-name="{curve.name}">{chart.line(*line, curve.kind)}</g>'
        for curve, line in reversed(list(zip(curves, lines, strict=True)))
    ]
    parts += [chart.mark(*mark, avoid=lines) for mark in marks]
    parts.append(chart.columns(at, [_tip(curves, i) for i in at]))
    return svg(WIDTH, HEIGHT, parts, title)


def _tip(curves: list[Curve], at: float) -> dict[str, object]:
    lines = [
        {"colour": curve.colour, "label": curve.label, "mean": f"{curve.points[at].mean:.3g}", "range": ""}
        for curve in curves
    ]
    return {"at": f"iteration {at:,.0f}", "lines": lines, "note": ""}
