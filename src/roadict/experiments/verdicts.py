"""Whether the paper's claims hold, computed from rows and nothing else."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from roadict.experiments.methods import OPPONENTS
from roadict.experiments.rows import Row
from roadict.experiments.summary import by_method, by_samples, means, of_experiment

Outcome = Literal["reproduced", "partly", "not reproduced", "no rows"]
FOUND = 1e-2
"""An error below which a dictionary counts as found: its atoms correlate 0.99 with the true ones, on average."""
ZERO = 1e-3
""""Almost 0"."""
NEAR = (3e-3, 3e-2)
""""Near 1e-2": within a factor of three."""
MOST, SOME = 0.9, 0.5
"""Shares of trials."""
PAPER = "road-paper"
DEFAULTS = "road-defaults"
NAMES = {
    "blotless": "BLOTLESS",
    "ksvd": "K-SVD",
    "mod": "MOD",
    PAPER: "ROAD (ρ = 10)",
    DEFAULTS: "ROAD with our defaults",
}
TABLE_ORDERS = {
    ("digits", "yang"): ("road", "mod", "ksvd", "blotless"),
    ("digits", "zeyde"): ("road", "ksvd", "blotless", "mod"),
    ("zebra", "zeyde"): ("road", "ksvd", "blotless", "mod"),
}
"""Methods from the best to the worst, as in the paper's tables."""


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it held, and the numbers that say so."""

    experiment: str
    claim: str
    outcome: Outcome
    numbers: str


def verdicts(rows: Iterable[Row]) -> list[Verdict]:
    """Judge every claim that there are rows for.

    Parameters
    ----------
    rows : iterable of rows
        Of any experiments.

    Returns
    -------
    list of Verdict
    """
    rows = list(rows)
    found: list[Verdict] = []
    for name, judge in JUDGES.items():
        own = of_experiment(rows, name)
        if own:
            found += judge(own)
    return found


def judge_solvers(rows: list[Row]) -> list[Verdict]:
    """Fig. 1: both halves of its claim."""
    return [_exact_reaches_zero(rows), _inexact_stays(rows)]


def _exact_reaches_zero(rows: list[Row]) -> Verdict:
    claim = "eADMM reaches an error of almost 0 in 300 iterations for N ≥ 300"
    points = {n: errors for n, errors in by_samples(rows, "samples").get(PAPER, {}).items() if n >= 300}
    if not points:
        return Verdict("solvers", claim, "no rows", "")
    shares = {n: float(np.mean(np.array(errors) < ZERO)) for n, errors in points.items()}
    text = "; ".join(
        f"N = {n:g}: mean error {_short(np.mean(points[n]))}, median {_short(np.median(points[n]))}, "
        f"{share:.0%} of {counted(len(points[n]))} below {ZERO:g}"
        for n, share in shares.items()
    )
    return Verdict("solvers", claim, _graded(min(shares.values())), text)


def _inexact_stays(rows: list[Row]) -> Verdict:
    claim = "iADMM stays near 0.01 after 10,000 iterations"
    ends = {
        method: errors
        for method, points in by_samples(rows, "samples").items()
        if method.startswith("iadmm")
        for errors in [points.get(300, [])]
        if errors
    }
    if not ends:
        return Verdict("solvers", claim, "no rows", "")
    near = [NEAR[0] <= float(np.mean(errors)) <= NEAR[1] for errors in ends.values()]
    words = {"iadmm-three": "three ρ", "iadmm-one": "one ρ"}
    text = "N = 300: " + "; ".join(
        f"{words.get(method, method)}: mean error {_short(np.mean(errors))} over {counted(len(errors))}"
        for method, errors in ends.items()
    )
    return Verdict("solvers", claim, _all_some_none(near), text)


def judge_noise_free(rows: list[Row]) -> list[Verdict]:
    """Fig. 2: samples needed and floors, one verdict for every size."""
    return [_fewer_samples_no_floor(rows, panel) for panel in _panels(rows)]


def _fewer_samples_no_floor(rows: list[Row], panel: str) -> Verdict:
    size = f"({panel.replace('-', ', ')})"
    claim = f"{size}: ROAD needs fewer samples than the others and has no error floor"
    curves = {method: means(points) for method, points in by_samples(rows, panel).items()}
    others = [name for name in OPPONENTS if name in curves]
    if PAPER not in curves or not others:
        return Verdict("noise-free", claim, "no rows", "")
    needs = {name: needed(curve) for name, curve in curves.items()}
    last = {name: curve[max(curve)] for name, curve in curves.items()}
    fewer = needs[PAPER] < min(needs[name] for name in others)
    no_floor = last[PAPER] < ZERO and all(last[name] > ZERO for name in others)
    shown = [name for name in (PAPER, DEFAULTS, *others) if name in curves]
    text = f"samples until the mean error is below {FOUND:g}: " + ", ".join(
        f"{NAMES[name]} {samples_needed(curves[name])}" for name in shown
    )
    text += f"; mean error at N = {max(curves[PAPER]):g}: "
    text += ", ".join(f"{NAMES[name]} {_short(last[name])}" for name in shown)
    return Verdict("noise-free", claim, _all_some_none([fewer, no_floor]), text)


def needed(curve: dict[float, float]) -> float:
    """Fewest samples from which on the mean error stays below the bound; infinite where it never does."""
    fewest = np.inf
    for n in sorted(curve, reverse=True):
        if curve[n] >= FOUND:
            break
        fewest = n
    return float(fewest)


def samples_needed(curve: dict[float, float]) -> str:
    """The same in words."""
    found = needed(curve)
    return f"{found:g}" if np.isfinite(found) else f"more than {max(curve):g}"


def judge_noisy(rows: list[Row]) -> list[Verdict]:
    """Fig. 3: ROAD below the others, one verdict for every level of noise."""
    found = []
    for panel in _panels(rows):
        level = panel.replace("-db", " dB")
        claim = f"{level}: ROAD is more robust to noise"
        curves = {method: means(points) for method, points in by_samples(rows, panel).items()}
        others = [name for name in OPPONENTS if name in curves]
        if PAPER not in curves or not others:
            found.append(Verdict("noisy", claim, "no rows", ""))
            continue
        shared = [n for n in curves[PAPER] if all(n in curves[name] for name in others)]
        below = [all(curves[PAPER][n] < curves[name][n] for name in others) for n in shared]
        shown = [name for name in (PAPER, DEFAULTS, *others) if name in curves]
        text = (
            f"below all of them at {sum(below)} of {len(below)} numbers of samples; mean error at N = {max(shared):g}: "
        )
        text += ", ".join(f"{NAMES[name]} {_short(curves[name].get(max(shared), np.nan))}" for name in shown)
        found.append(Verdict("noisy", claim, _graded(float(np.mean(below)), most=1.0), text))
    return found


def judge_bernoulli(rows: list[Row]) -> list[Verdict]:
    """Fig. 4: ROAD finds the dictionary from the most samples, and the others do not."""
    found = []
    for panel in _panels(rows):
        theta = panel.replace("theta-", "θ = ") + "/48"
        claim = f"{theta}: ROAD recovers the dictionary with varying sparsity, the others do not"
        curves = {method: means(points) for method, points in by_samples(rows, panel).items()}
        others = [name for name in OPPONENTS if name in curves]
        if PAPER not in curves or not others:
            found.append(Verdict("bernoulli", claim, "no rows", ""))
            continue
        n = max(curves[PAPER])
        last = {name: curve.get(n, np.nan) for name, curve in curves.items()}
        outcome = _all_some_none([last[PAPER] < FOUND, all(last[name] > FOUND for name in others)])
        shown = [name for name in (PAPER, DEFAULTS, *others) if name in curves]
        text = f"mean error at N = {n:g}: " + ", ".join(f"{NAMES[name]} {_short(last[name])}" for name in shown)
        found.append(Verdict("bernoulli", claim, outcome, text))
    return found


def judge_table(rows: list[Row]) -> list[Verdict]:
    """Tables I and II: ROAD best, and the others in the paper's order, with the Lasso on all sides."""
    found = []
    name = rows[0]["settings"]["experiment"]
    for panel in _panels(rows):
        order = TABLE_ORDERS[name, panel]
        claim = f"{panel.capitalize()}'s approach: " + " > ".join(NAMES.get(method, "ROAD") for method in order)
        scores = {method: float(np.mean(values)) for method, values in by_method(rows, panel).items()}
        ours = {method: scores.get(f"{method}-lasso") for method in order}
        known = {method: score for method, score in ours.items() if score is not None}
        if len(known) < len(order):
            found.append(Verdict(name, claim, "no rows", ""))
            continue
        ranked = sorted(known, key=lambda method: -known[method])
        best = ranked[0] == "road"
        text = "mean PSNR: " + ", ".join(f"{NAMES.get(method, 'ROAD')} {known[method]:.2f} dB" for method in ranked)
        for yardstick, words in (("bicubic", "bicubic"), ("random-lasso", "random patches")):
            if yardstick in scores:
                text += f"; {words} {scores[yardstick]:.2f} dB"
        second = next(method for method in ranked if method != "road")
        text += f"; {_lead(rows, panel, second)}"
        outcome: Outcome = "reproduced" if tuple(ranked) == order else "partly" if best else "not reproduced"
        found.append(Verdict(name, claim, outcome, text))
    return found


def _lead(rows: list[Row], panel: str, other: str) -> str:
    """Say by how much ROAD leads another method on the same trials, and how sure that is."""
    scores: dict[str, dict[int, float]] = {"road-lasso": {}, f"{other}-lasso": {}}
    for row in rows:
        settings = row["settings"]
        if settings["panel"] == panel and settings["method"]["name"] in scores:
            scores[settings["method"]["name"]][settings["seed"]] = row["result"]["psnr"]
    ours, theirs = scores.values()
    gains = np.array([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])
    text = f"ROAD minus {NAMES[other]} {gains.mean():+.2f} dB"
    if len(gains) < 2:
        return f"{text} in one trial, which proves little"
    return f"{text} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.2f} (standard error of {len(gains)} trials)"


JUDGES: dict[str, Callable[[list[Row]], list[Verdict]]] = {
    "solvers": judge_solvers,
    "noise-free": judge_noise_free,
    "noisy": judge_noisy,
    "bernoulli": judge_bernoulli,
    "digits": judge_table,
    "zebra": judge_table,
}


def _panels(rows: list[Row]) -> list[str]:
    return sorted({row["settings"]["panel"] for row in rows})


def _graded(share: float, most: float = MOST) -> Outcome:
    return "reproduced" if share >= most else "partly" if share >= SOME else "not reproduced"


def _all_some_none(held: list[bool]) -> Outcome:
    return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"


def counted(number: int) -> str:
    """Say how many trials.

    Examples
    --------
    >>> counted(1), counted(20)
    ('1 trial', '20 trials')
    """
    return f"{number} trial" + "s" * (number != 1)


def _short(value: float | np.floating[Any]) -> str:
    """A number for a sentence: two digits.

    Examples
    --------
    >>> _short(0.0123), _short(0.0000042)
    ('0.012', '4.2e-06')
    """
    return f"{float(value):.2g}"
