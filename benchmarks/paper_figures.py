"""Figures of benchmarks/paper.py: recovery, tables, the ablation, and success over the number of samples."""

from dataclasses import asdict

import numpy as np

from roadict.drawing.curves import FLOOR, MIN_QUARTILES, spaced
from roadict.experiments.ablation import ABLATION
from roadict.experiments.figures import COLOURS as INDICES
from roadict.experiments.figures import curves, found_share
from roadict.experiments.intervals import share_interval
from roadict.experiments.judge_ablation import found_by_problem, name_problem
from roadict.experiments.judgement import DEFAULTS, FOUND
from roadict.experiments.published import published
from roadict.experiments.summary import by_iteration, by_method, by_samples, of_experiment

COLOURS = ("#0b5fc0", "#c2185b", "#2e7d32", "#b85c00", "#6a3fb5", "#007c8f", "#7d6b00", "#8d5a4a", "#626b78")
STYLES = {"ours": {"linewidth": 2.4}, "": {"linewidth": 1.4}, "added": {"linewidth": 1.2, "linestyle": "--"}}
PANEL = "16-32-3"
"""The panel of the figure of success: the one with several numbers of samples."""
SHOWN = {
    DEFAULTS: "ROAD",
    "lasso-annealed": "annealed Lasso\nwith restarts",
    "ksvd": "K-SVD\nwith restarts",
}
"""Methods of that figure: of the two forms of the Lasso the one that found more; in its time the finish is a loss."""
GAP, APART = 0.14, 0.012
"""Least distance of two labels, as a share of the height; and of two bars, of the width."""


def recovery_figure(experiment, rows):
    """Mean errors with interquartile bands, one plot per panel."""
    from matplotlib.figure import Figure

    present = [panel for panel in experiment.panels if any(row["settings"]["panel"] == panel.name for row in rows)]
    columns = min(2, len(present))
    lines = -(-len(present) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.6 * lines + 0.7), layout="constrained")
    labels = {method.name: method.label for method in experiment.methods}
    handles = {}
    for index, panel in enumerate(present):
        along = any(problem.trace for problem in panel.problems)
        axes, floored = figure.add_subplot(lines, columns, index + 1), False
        for curve in curves((by_iteration if along else by_samples)(rows, panel.name), labels):
            xs = list(curve.points)
            low, middle, high = (
                [max(FLOOR, getattr(point, name)) for point in curve.points.values()]
                for name in ("low", "mean", "high")
            )
            colour = COLOURS[curve.colour]
            marker = {} if along else {"marker": "o", "markersize": 3.5}
            (handles[curve.label],) = axes.plot(xs, middle, color=colour, **marker, **STYLES[curve.kind])
            if all(point.number >= MIN_QUARTILES for point in curve.points.values()):
                axes.fill_between(xs, low, high, color=colour, alpha=0.1, linewidth=0)
            below = [x for x, point in curve.points.items() if point.mean < FLOOR]
            axes.plot(below, [FLOOR] * len(below), linestyle="", marker="v", markersize=6, color=colour)
            floored = floored or bool(below)
        axes.set(yscale="log", title=panel.title, xlabel="iterations" if along else "samples", ylabel="recovery error")
        axes.set_xscale("log" if along else "linear")
        if floored:  # a log scale has no zero
            axes.yaxis.set_major_formatter(lambda value, _: f"{'≤ ' if value <= 1.01 * FLOOR else ''}{value:g}")
            axes.set_ylim(bottom=FLOOR / 2)
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure


def table_figure(experiment, rows):
    """PSNR of every trial and their means; hollow markers for the paper's values."""
    from matplotlib.figure import Figure

    present = [panel for panel in experiment.panels if any(row["settings"]["panel"] == panel.name for row in rows)]
    figure = Figure(figsize=(5.2 * len(present), 4.2), layout="constrained")
    for index, panel in enumerate(present):
        axes = figure.add_subplot(1, len(present), index + 1)
        values = by_method(rows, panel.name)
        own = [method for method in reversed(experiment.methods) if method.name in values]
        for y, method in enumerate(own):
            colour = COLOURS[0] if method.is_road else COLOURS[8]
            found, paper = values[method.name], published(experiment.name, panel.name, method.name)
            axes.plot(found, [y] * len(found), "|", color=colour, alpha=0.6)
            axes.plot(np.mean(found), y, "o", color=colour, label="mean of our trials" if y == 0 else None)
            if paper is not None:
                axes.plot(paper, y, "D", color="none", markeredgecolor=COLOURS[1])
        axes.plot([], [], "D", color="none", markeredgecolor=COLOURS[1], label="in the paper")
        axes.set(yticks=range(len(own)), yticklabels=[m.label for m in own], xlabel="PSNR, dB", title=panel.title)
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


def problems_shown():
    """Numbers of samples of the figure of success, by the names of its problems."""
    [panel] = [panel for panel in ABLATION.panels if panel.name == PANEL]
    return {name_problem(PANEL, asdict(problem)): problem.n_samples for problem in panel.problems}


def found_shares(rows):
    """Shares of trials that found the dictionary, by method and number of samples, on the seeds that all have."""
    problems = found_by_problem(of_experiment(rows, ABLATION.name))
    shares = {method: {} for method in SHOWN}
    for problem, number in problems_shown().items():
        found = problems.get(problem, {})
        for method in SHOWN.keys() & found.keys():
            trials = found[method]
            shares[method][number] = share_interval(int(trials.sum()), len(trials))
    return shares


def success_figure(rows):
    """Draw the shares with their intervals, labelled at the lines; None without rows of all methods."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    shares = found_shares(rows)
    numbers = [*shares[DEFAULTS]]
    if not numbers:
        return None
    figure = Figure(figsize=(7.4, 3.5), layout="constrained")
    axes, width = figure.add_subplot(), max(numbers) - min(numbers) or 1
    ends = [points[numbers[-1]].value for points in shares.values()]
    heights = spaced(ends[::-1], GAP, 0, 1)[::-1]  # of equal ones the first is on top
    for index, (method, points) in enumerate(shares.items()):
        colour, shift = COLOURS[INDICES[method]], APART * width * (index - 1)
        xs = [number + shift for number in points]
        line = {"color": colour, "linewidth": 2.4 if method == DEFAULTS else 1.6, "clip_on": False}
        axes.plot(xs, [point.value for point in points.values()], "o-", markersize=5, **line)
        for x, point in zip(xs, points.values(), strict=True):
            axes.plot([x, x], [point.low, point.high], color=colour, linewidth=1.6, alpha=0.55, clip_on=False)
        end = (max(numbers) + 0.04 * width, heights[index])
        axes.annotate(SHOWN[method], end, color=colour, va="center", annotation_clip=False)
    axes.set(xticks=numbers, xlabel="samples", ylabel="dictionaries found", ylim=(0, 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def problems_figure(experiment, rows):
    """Shares of all methods with their intervals, a column for every problem."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    drawn = [
        (panel, number, {name: points[number] for name, points in values.items() if number in points})
        for panel in experiment.panels
        for values in (by_samples(rows, panel.name),)
        for number in sorted({n for points in values.values() for n in points})
    ]
    methods = experiment.methods[::-1]
    figure = Figure(figsize=(2.2 + 1.35 * len(drawn), 3.9), layout="constrained")
    axes_of_all = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for axes, (panel, number, values) in zip(axes_of_all, drawn, strict=True):
        for y, method in enumerate(methods):
            if errors := values.get(method.name):
                share = found_share(errors)
                colour = COLOURS[0] if method.name.startswith("road") else COLOURS[8]
                axes.plot([share.low, share.high], [y, y], color=colour, linewidth=1.6, alpha=0.55, clip_on=False)
                axes.plot(share.mean, y, "o", color=colour, markersize=5, clip_on=False)
        axes.set(xlim=(0, 1), xticks=(0, 0.5, 1), title=f"({panel.name.replace('-', ', ')})\nN = {number:g}")
        axes.set(yticks=range(len(methods)), yticklabels=[method.label for method in methods])
        axes.title.set_size(9)
        axes.tick_params(labelsize=8)
        axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(f"% of the trials that find the dictionary (error below {FOUND:g})", fontsize=9)
    return figure
