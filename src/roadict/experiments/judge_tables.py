"""Verdicts on Tables I and II: the order of the methods by PSNR."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roadict.experiments.intervals import Interval, mean_interval
from roadict.experiments.judgement import NAMES, PAPER, TOO_FEW, Cells, Outcome, Verdict, listed
from roadict.experiments.methods import BASELINES
from roadict.experiments.rows import Row
from roadict.experiments.summary import by_seed, panels_with_rows

Scores = dict[str, NDArray[np.float64]]
"""PSNR by method, one for each of the same trials."""
ORDERS = {
    ("digits", "yang"): ("mod", "ksvd", "blotless"),
    ("digits", "zeyde"): ("ksvd", "blotless", "mod"),
    ("zebra", "zeyde"): ("ksvd", "blotless", "mod"),
}
"""The baselines from the best to the worst, as in the paper's tables; ROAD leads them all. The literal digits are not
judged a second time."""
ROADS = ("road", PAPER)
FEWER = "-fewer"
"""Ending of the names of two-stage methods with a sixth of ROAD's iterations, where others count."""
EQUAL = 0.95
"""Share of ROAD's CPU time from which on the others have as much."""
TABLE_NAMES = NAMES | {"road": "ROAD", "random": "random patches"}
TABLE_NAMES |= {f"{name}{FEWER}": f"{NAMES[name]}, fewer iterations" for name in BASELINES}


def judge_table(rows: list[Row]) -> list[Verdict]:
    """Tables I and II: ROAD best, and the others in the paper's order, with the Lasso on all sides.

    ROAD has two entries, as the paper does not give the pixel scale that ρ = 10 depends on. A table is reproduced if
    both lead all others, and these come in the paper's order; partly, if one of the two leads. A lead is a mean paired
    difference above two standard errors. Where the others have rows of more iterations in all trials, these count, and
    those of fewer are shown beside them. The reason names the CPU time of ROAD with our ρ only if these rows took it
    in the same trials; with ρ = 10 ROAD takes more.
    """
    experiment = rows[0]["settings"]["experiment"]
    return [_order_of(rows, experiment, panel) for panel in panels_with_rows(rows) if (experiment, panel) in ORDERS]


def _order_of(rows: list[Row], experiment: str, panel: str) -> Verdict:
    order = ORDERS[experiment, panel]
    claim = f"{panel.capitalize()}'s approach: " + " > ".join(("ROAD", *(NAMES[method] for method in order)))
    found = {name: points[0] for name, points in by_seed(rows, panel, "psnr").items()}
    ours = [name for name in ROADS if f"{name}-lasso" in found]
    missing = [NAMES[method] for method in order if f"{method}-lasso" not in found] + ([] if ours else ["ROAD"])
    if missing:
        return Verdict(experiment, claim, TOO_FEW, f"Rows of {listed(missing)} are missing.")
    # Every seed has its own training pictures: learners are compared on the same seeds only.
    seeds = sorted(set.intersection(*(set(found[f"{method}-lasso"]) for method in (*ours, *order))))
    if not seeds:
        return Verdict(experiment, claim, TOO_FEW, "No trial has rows of all methods.")
    shown = (*ours, *order, *(["random"] if {*seeds} <= found.get("random-lasso", {}).keys() else []))
    scores = {method: np.array([found[f"{method}-lasso"][seed] for seed in seeds]) for method in shown}
    fewer: Scores = {}
    if all({*seeds} <= found.get(f"{method}-lasso-long", {}).keys() for method in order):
        fewer = {f"{method}{FEWER}": scores[method] for method in order}
        scores |= {method: np.array([found[f"{method}-lasso-long"][seed] for seed in seeds]) for method in order}
    outcome, reason = _judged(scores, ours, order)
    if fewer:
        equal = _had_the_time(rows, panel, order, seeds)
        reason = f"{'At the CPU time of ROAD with our ρ' if equal else 'With more iterations'}, {reason}"
    table = _table(scores | fewer, ours, found.get("bicubic", {}).values())
    return Verdict(experiment, claim, outcome, reason, len(seeds), table)


def _had_the_time(rows: list[Row], panel: str, order: tuple[str, ...], seeds: list[int]) -> bool:
    """Whether the longer runs of all others took ROAD's CPU time, on average; that of a GPU cannot be compared."""
    used: dict[str, list[float]] = {}
    for row in rows:
        settings = row["settings"]
        name = settings["method"]["name"]
        if settings["panel"] == panel and settings["seed"] in seeds:
            if name == "road-lasso" and settings["engine"] == "cuda":
                return False
            used.setdefault(name, []).append(row["seconds"]["cpu"])
    if "road-lasso" not in used:
        return False
    return all(np.mean(used[f"{name}-lasso-long"]) >= EQUAL * np.mean(used["road-lasso"]) for name in order)


def _judged(scores: Scores, ours: list[str], order: tuple[str, ...]) -> tuple[Outcome, str]:
    signs = {name: [mean_interval(scores[name] - scores[other]).sign for other in order] for name in ours}
    leading = [name for name in ours if min(signs[name]) > 0]
    pairs = [mean_interval(scores[a] - scores[b]).sign for a, b in pairwise(order)]
    ordered = {1: "come in the paper's order", 0: "are too close to rank", -1: "come in another order"}[min(pairs)]
    outcome: Outcome = "not reproduced"
    if leading:
        outcome = "reproduced" if leading == [*ROADS] and min(pairs) > 0 else "partly"
    facts = [_position(scores, name, order) for name in ours]
    return outcome, f"{'; '.join(facts)}; the others {ordered}{_random(scores)}."


def _position(scores: Scores, name: str, order: tuple[str, ...]) -> str:
    """Whether an entry of ROAD leads the best of the others."""
    best = max(order, key=lambda method: float(scores[method].mean()))
    lead = mean_interval(scores[name] - scores[best])
    verb = {1: "leads", 0: "ties with", -1: "trails"}[lead.sign]
    return f"{TABLE_NAMES[name]} {verb} {NAMES[best]}, the best of the others ({_with_error(lead)} dB)"


def _random(scores: Scores) -> str:
    """Say which learned dictionaries random patches beat."""
    if "random" not in scores:
        return ""
    beaten = [name for name in scores if name != "random" and mean_interval(scores["random"] - scores[name]).sign > 0]
    return (
        f"; random patches, not learned at all, beat {listed(TABLE_NAMES[name] for name in beaten)}" if beaten else ""
    )


def _with_error(lead: Interval) -> str:
    text = f"{lead.value:+.2f}".replace("-", "−")
    return f"{text} ± {lead.high - lead.value:.2f}" if lead.high > lead.low else text


def _table(scores: Scores, ours: list[str], bicubic: Iterable[float]) -> Cells:
    """PSNR, best first, and the leads of ROAD with two standard errors."""
    ranked = sorted(scores, key=lambda name: -float(scores[name].mean()))
    lines = [
        (
            TABLE_NAMES[name],
            f"{scores[name].mean():.2f}",
            *("–" if name == road else _with_error(mean_interval(scores[road] - scores[name])) for road in ours),
        )
        for name in ranked
    ]
    values = [*bicubic]
    lines += [("bicubic", f"{np.mean(values):.2f}", *["–"] * len(ours))] if values else []
    return (("dB", "mean PSNR", *(f"lead of {TABLE_NAMES[name]}" for name in ours)), *lines)
