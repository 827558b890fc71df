"""What benchmarks/paper.py writes of the ablation: who finds the dictionary at equal CPU time, and what helps ROAD."""

from dataclasses import asdict

import numpy as np

from roadict.drawing.curves import percent, spaced
from roadict.experiments.ablation import ABLATION
from roadict.experiments.figures import COLOURS as INDICES
from roadict.experiments.intervals import share_interval
from roadict.experiments.judge_ablation import (
    INGREDIENTS,
    OTHERS,
    found_by_problem,
    gains,
    in_points,
    judge_ablation,
    name_problem,
)
from roadict.experiments.judgement import DEFAULTS, FOUND
from roadict.experiments.noise_free import NOISE_FREE
from roadict.experiments.summary import by_samples, of_experiment
from roadict.wording import plural

PANEL = "16-32-3"
"""The panel of the figure: the one with several numbers of samples."""
SHOWN = {
    DEFAULTS: "ROAD",
    "lasso-annealed": "annealed Lasso\nwith restarts",
    "ksvd": "K-SVD\nwith restarts",
}
"""Methods of the figure: of the two forms of the Lasso the one that found more; in its time the finish is a loss."""
GAP, APART = 0.14, 0.012
"""Least distance of two labels, as a share of the height; and of two bars, of the width."""


def found_shares(rows):
    """Shares of trials that found the dictionary, by method and number of samples, on the seeds that all have."""
    problems = found_by_problem(of_experiment(rows, ABLATION.name))
    [panel] = [panel for panel in ABLATION.panels if panel.name == PANEL]
    shares = {method: {} for method in SHOWN}
    for problem in panel.problems:
        found = problems.get(name_problem(PANEL, asdict(problem)), {})
        for method in SHOWN.keys() & found.keys():
            trials = found[method]
            shares[method][problem.n_samples] = share_interval(int(trials.sum()), len(trials))
    return shares


def success_figure(rows, colours):
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
        colour, shift = colours[INDICES[method]], APART * width * (index - 1)
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


def success_words(rows, folder):
    """The figure with its caption, as Markdown of a page from which ``folder`` is the path of the results."""
    trials = [len(next(iter(found.values()))) for size, found in _problems(rows).items() if _in_panel(size)]
    if not trials:
        return ""
    number = f"{min(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    alt = "Share of hidden dictionaries found over the number of samples, by ROAD, an annealed Lasso and K-SVD"
    return (
        f"![{alt}]({folder}success.png)\n\n"
        f"*Hidden dictionaries of 32 atoms of 16 features, three per sample: share of {number} trials that find them "
        f"(error below {FOUND:g}), with 95 % intervals. The others restart for the CPU time of ROAD's defaults, and "
        "the last run may end late; all keep the best run by their own objective. The annealed Lasso alternates with "
        f"MOD under a falling weight, K-SVD is told the true number of coefficients.{_again(rows)} "
        f"[All methods and sizes]({folder}README.md), with ROAD's exact finish for the Lasso too.*"
    )


def _again(rows):
    """What ROAD finds from the fewest samples in the trials of Fig. 2, among which are these."""
    again = _in_figure_2(rows)
    size = next((size for size in _problems(rows) if _in_panel(size)), None)
    if size not in again:
        return ""
    found = [error < FOUND for error, _ in again[size]]
    where = f"the {len(found)} trials of {NOISE_FREE.paper}, which include these"
    return f" At {size.rpartition(', ')[2]}, ROAD finds {percent(np.mean(found))} in {where}."


def ablation_words(rows):
    """Sentence and table of the ablation for the headline."""
    problems = _problems(rows)
    if not problems:
        return ""
    verdict = judge_ablation(of_experiment(rows, ABLATION.name))[0]
    labels = {method.name: method.label for method in ABLATION.methods}
    methods, again = (DEFAULTS, *OTHERS), _in_figure_2(rows)
    head = ["", *(labels[name] for name in methods), "trials", f"{labels[DEFAULTS]}, in {NOISE_FREE.paper}"]
    lines = [head, ["---"] * len(head)]
    for size, found in problems.items():
        other = [error < FOUND for error, _ in again.get(size, ())]
        cell = f"{percent(np.mean(other))} of {len(other)}" if other else "–"
        lines.append([size, *(_share(found[name]) for name in methods), len(found[DEFAULTS]), cell])
    text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return (
        f"Our own claim, that {verdict.claim}: {verdict.label}. {verdict.reason} Share of the trials that "
        f"find the dictionary (error below {FOUND:g}), with 95 % intervals:\n\n{text}"
        f"{_of_figure_2([engine for size in problems for _, engine in again.get(size, ())])}"
    )


def _in_figure_2(rows):
    """Errors and engines of ROAD's defaults in Fig. 2, by problem."""
    found = {}
    for row in of_experiment(rows, NOISE_FREE.name):
        settings = row["settings"]
        if settings["method"]["name"] == DEFAULTS:
            size = name_problem(settings["panel"], settings["problem"])
            found.setdefault(size, []).append((row["result"]["error"], settings["engine"]))
    return found


def _of_figure_2(engines):
    """What the column of Fig. 2 is, after the table; nothing without its rows."""
    if not engines:
        return ""
    number = engines.count("cuda")
    which = "" if number == len(engines) else "some of them "
    gpu = f", {which}on a GPU, where other rounding lets fits from few samples end elsewhere" if number else ""
    return f"\n\nThe last column has the runs of the defaults in {NOISE_FREE.paper}, on these seeds and more{gpu}."


def gains_words(rows):
    """What starts, moving ρ and finish contribute, as a table, with the CPU time of the fits without them."""
    problems = _problems(rows)
    if not problems:
        return ""
    added, times = gains(problems), _times(rows, problems)
    lines = [
        [
            *("addition", "found with it", "without it", "difference, percentage points", "leads beyond chance"),
            "times the defaults' CPU time, without it",
        ],
        ["---"] * 6,
        *(
            [
                gain.ingredient,
                percent(gain.found),
                percent(gain.without),
                in_points(gain),
                f"at {gain.where} of {gain.problems} problems",
                times[INGREDIENTS[gain.ingredient]],
            ]
            for gain in added
        ),
    ]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        "Shares of planted dictionaries that ROAD's defaults find, and the same without one addition; means over "
        f"{added[0].problems} problems, at least {plural(added[0].trials, 'trial')} of each, plus and minus two "
        "standard errors. The moving ρ comes with samples of unit norm and up to 2,000 iterations. Without it or the "
        "finish, restarts begin in the CPU time of the defaults, and the last one may end late; without restarts there "
        "is a single fit, which takes the time that it takes. ROAD without the finish is told that the data are exact "
        f"and often takes longer, so that the finish may add more than is shown:\n\n{text}"
    )


def _times(rows, sizes):
    """Mean CPU time of ROAD without each addition over that of its defaults: the range over the problems."""
    used = {}
    for row in of_experiment(rows, ABLATION.name):
        settings = row["settings"]
        size = name_problem(settings["panel"], settings["problem"])
        used.setdefault((settings["method"]["name"], size), []).append(row["seconds"]["cpu"])
    times = {}
    for name in INGREDIENTS.values():
        ratios = sorted(np.mean(used[name, size]) / np.mean(used[DEFAULTS, size]) for size in sizes)
        times[name] = " to ".join(dict.fromkeys(f"{ratio:.1f}" for ratio in (ratios[0], ratios[-1])))
    return times


def problems_figure(experiment, rows, colours):
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
                share = share_interval(int(np.sum(np.array(errors) < FOUND)), len(errors))
                colour = colours[0] if method.name.startswith("road") else colours[8]
                axes.plot([share.low, share.high], [y, y], color=colour, linewidth=1.6, alpha=0.55, clip_on=False)
                axes.plot(share.value, y, "o", color=colour, markersize=5, clip_on=False)
        axes.set(xlim=(0, 1), xticks=(0, 0.5, 1), title=f"({panel.name.replace('-', ', ')})\nN = {number:g}")
        axes.set(yticks=range(len(methods)), yticklabels=[method.label for method in methods])
        axes.title.set_size(9)
        axes.tick_params(labelsize=8)
        axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(f"% of the trials that find the dictionary (error below {FOUND:g})", fontsize=9)
    return figure


def _problems(rows):
    return found_by_problem(of_experiment(rows, ABLATION.name))


def _in_panel(size):
    return size.startswith(name_problem(PANEL, {"n_samples": ""}))


def _share(found):
    share = share_interval(int(found.sum()), len(found))
    return f"{percent(share.value)} ({100 * share.low:.0f}–{100 * share.high:.0f})"
