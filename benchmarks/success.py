"""What benchmarks/paper.py writes of the ablation: who finds the dictionary at equal CPU time, and what helps ROAD."""

import numpy as np
from paper_figures import problems_shown
from results import table

from roadict.drawing.curves import percent
from roadict.experiments.ablation import ABLATION
from roadict.experiments.intervals import share_interval
from roadict.experiments.judge_ablation import (
    INGREDIENTS,
    OTHERS,
    found_by_problem,
    gains,
    in_points,
    judge_ablation,
    missing_in,
    name_problem,
)
from roadict.experiments.judgement import DEFAULTS, FOUND
from roadict.experiments.noise_free import NOISE_FREE
from roadict.experiments.summary import of_experiment
from roadict.wording import plural


def success_words(rows, folder):
    """The figure with its caption, as Markdown of a page from which ``folder`` is the path of the results."""
    problems = _problems(rows)
    trials = [len(found[DEFAULTS]) for found in (problems.get(size, {}) for size in problems_shown()) if found]
    if not trials:
        return ""
    number = f"{min(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    alt = "Share of hidden dictionaries found over the number of samples, by ROAD, an annealed Lasso and K-SVD"
    return (
        f"![{alt}]({folder}success.png)\n\n"
        f"*Hidden dictionaries of 32 atoms of 16 features, three per sample: share of {number} trials that find them "
        f"(error below {FOUND:g}), with 95 % intervals. The others restart for the CPU time of ROAD's defaults, and "
        "the last run may overrun; all keep the best run by their own objective. The annealed Lasso alternates with "
        f"MOD under a falling weight, K-SVD is told the true number of coefficients.{_again(rows)} "
        f"[All methods and sizes]({folder}README.md), with ROAD's exact finish for the Lasso too.*"
    )


def _again(rows):
    """What ROAD finds from the fewest samples in the trials of Fig. 2."""
    again, size = _in_figure_2(rows), next(iter(problems_shown()))
    if size not in again:
        return ""
    found = [row["result"]["error"] < FOUND for row in again[size]]
    where = f"the {plural(len(found), 'trial')} of {NOISE_FREE.paper}{_which(rows, again[size])}"
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
    lines = []
    for size, found in problems.items():
        other = [row["result"]["error"] < FOUND for row in again.get(size, ())]
        cell = f"{percent(np.mean(other))} of {len(other)}" if other else "–"
        lines.append([size, *(_share(found[name]) for name in methods), len(found[DEFAULTS]), cell])
    return (
        f"Our own claim, that {verdict.claim}: {verdict.label}. {verdict.reason} Share of the trials that "
        f"find the dictionary (error below {FOUND:g}), with 95 % intervals:\n\n{table(head, lines)}"
        f"{_of_figure_2(rows, [row for size in problems for row in again.get(size, ())])}"
    )


def _in_figure_2(rows):
    """Rows of ROAD's defaults in Fig. 2, by problem."""
    found = {}
    for row in of_experiment(rows, NOISE_FREE.name):
        settings = row["settings"]
        if settings["method"]["name"] == DEFAULTS:
            size = name_problem(settings["panel"], settings["problem"])
            found.setdefault(size, []).append(row)
    return found


def _which(rows, again):
    """Where runs of Fig. 2 differ from those of the ablation: seeds and engines."""
    seeds = [{row["settings"]["seed"] for row in own} for own in (of_experiment(rows, ABLATION.name), again)]
    which = ", on these seeds and more" if seeds[0] < seeds[1] else ", on these seeds" if seeds[0] == seeds[1] else ""
    engines = [row["settings"]["engine"] for row in again]
    if "cuda" in engines:
        which += f", {'' if {*engines} == {'cuda'} else 'some of them '}on a GPU"
    return which


def _of_figure_2(rows, again):
    """What the column of Fig. 2 is, after the table; nothing without its rows."""
    if not again:
        return ""
    which = _which(rows, again)
    why = ", where other rounding lets fits from few samples end elsewhere" if which.endswith("GPU") else ""
    return f"\n\nThe last column has other runs of the defaults, those of {NOISE_FREE.paper}{which}{why}."


def gains_words(rows):
    """What starts, moving ρ and finish contribute, as a table, with the CPU time of the fits without them."""
    problems = _problems(rows)
    if missing_in(problems):
        return ""
    added, times = gains(problems), _times(rows, problems)
    head = [
        *("addition", "found with it", "without it", "difference, percentage points", "leads beyond chance"),
        "times the defaults' CPU time, without it",
    ]
    lines = [
        [
            gain.ingredient,
            percent(gain.found),
            percent(gain.without),
            in_points(gain),
            f"at {gain.where} of {gain.problems} problems",
            times[INGREDIENTS[gain.ingredient]],
        ]
        for gain in added
    ]
    return (
        "Shares of planted dictionaries that ROAD's defaults find, and the same without one addition; means over "
        f"{added[0].problems} problems, at least {plural(added[0].trials, 'trial')} of each, plus and minus two "
        "standard errors. The moving ρ comes with samples of unit norm and up to 2,000 iterations. Without it or the "
        "finish, restarts begin in the CPU time of the defaults, and the last one may overrun; without restarts there "
        "is a single fit, which takes the time that it takes. ROAD without the finish is told that the data are exact "
        f"and often takes longer, so that the finish may add more than is shown:\n\n{table(head, lines)}"
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


def _problems(rows):
    return found_by_problem(of_experiment(rows, ABLATION.name))


def _share(found):
    share = share_interval(int(found.sum()), len(found))
    return f"{percent(share.value)} ({100 * share.low:.0f}–{100 * share.high:.0f})"
