"""Verdicts on Figs. 1 to 4: recovery of planted dictionaries."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict.experiments.intervals import fewer, mean_interval, needed
from roadict.experiments.judgement import (
    ALMOST_ZERO,
    DEFAULTS,
    FOUND,
    GREEDY,
    NAMES,
    PAPER,
    TOO_FEW,
    Cells,
    Outcome,
    Verdict,
    by_leads,
    count_leads,
    count_zeros,
    listed,
    reaches_zero,
    short,
    stays_away,
)
from roadict.experiments.methods import BASELINES
from roadict.experiments.plan import PlantedProblem
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row
from roadict.experiments.summary import by_seed, panels_with_rows
from roadict.wording import agree, plural

INEXACT = ("iadmm-three", "iadmm-one")
ENOUGH = 300
"""The paper's claims on Fig. 1 are for at least this many samples."""
PLATEAU, FACTOR = 1e-2, 3.0
""""Near 0.01": the interval of the mean is within a factor of three."""


@dataclass(frozen=True)
class Compared:
    """Errors of a panel on the trials that the methods of a claim have in common.

    Attributes
    ----------
    numbers : list of float
        Numbers of samples, ascending.
    errors : dict
        Arrays (n_trials, n_numbers) by method: the same seeds in every one.
    missing : str
        Why there is nothing to compare; "" if there is.
    """

    numbers: list[float]
    errors: dict[str, NDArray[np.float64]]
    trials: int
    missing: str = ""

    def at(self, method: str, number: float) -> NDArray[np.float64]:
        """Errors of a method at a number of samples."""
        return self.errors[method][:, self.numbers.index(number)]

    def lead(self, method: str, other: str, number: float) -> int:
        """1 if a method's error is below another's by more than two standard errors of the paired differences."""
        return mean_interval(self.at(other, number) - self.at(method, number)).sign

    def table(self, number: float, *, with_needed: bool = False) -> Cells:
        """Means, medians and runs almost at 0 of all methods at a number of samples; samples until the mean is 0.01."""
        head = [
            f"N = {number:g}",
            "mean error",
            "median",
            f"below {ALMOST_ZERO:g}",
            *(["samples needed"] * with_needed),
        ]
        lines = []
        for name, errors in self.errors.items():
            own = self.at(name, number)
            last = [str(needed(self.numbers, errors, FOUND))] * with_needed
            lines.append((NAMES[name], short(own.mean()), short(np.median(own)), count_zeros(own), *last))
        return (tuple(head), *lines)


def compared(
    rows: list[Row],
    experiment: str,
    panel: str,
    methods: tuple[str, ...],
    numbers: list[float] | None = None,
    measure: str = "error",
) -> Compared:
    """Select the errors of methods on the same data: trials of single methods would bias the comparison.

    ROAD with our defaults is added if it has all those trials. ``numbers`` of samples: all of the plan by default.
    """
    numbers = numbers or _numbers_of_samples(experiment, panel)
    found = by_seed(rows, panel, measure)
    missing = [NAMES[name] for name in methods if not {*numbers} <= found.get(name, {}).keys()]
    if missing:
        return Compared([], {}, 0, f"Rows of {listed(missing)} are missing.")
    seeds = sorted(set.intersection(*(set(found[name][n]) for name in methods for n in numbers)))
    if not seeds:
        return Compared([], {}, 0, "No trial has rows of all methods at all numbers of samples.")
    with_defaults = all({*seeds} <= found.get(DEFAULTS, {}).get(n, {}).keys() for n in numbers)
    shown = (methods[0], *([DEFAULTS] * with_defaults), *methods[1:])
    errors = {name: np.array([[found[name][n][seed] for n in numbers] for seed in seeds]) for name in shown}
    return Compared(numbers, errors, len(seeds))


def _numbers_of_samples(experiment: str, panel: str, fewest: int = 0) -> list[float]:
    (plan,) = (plan for plan in EXPERIMENTS[experiment].panels if plan.name == panel)
    found = {problem.n_samples for problem in plan.problems if isinstance(problem, PlantedProblem)}
    return sorted(float(number) for number in found if number >= fewest)


def judge_solvers(rows: list[Row]) -> list[Verdict]:
    """Fig. 1: the three parts of its claim."""
    return [_exact_reaches_zero(rows), _exact_beats_inexact(rows), _inexact_stays(rows)]


def _exact_reaches_zero(rows: list[Row]) -> Verdict:
    claim = f"eADMM reaches an error of almost 0 in 300 iterations for N ≥ {ENOUGH}"
    both = compared(rows, "solvers", "samples", (PAPER,), _numbers_of_samples("solvers", "samples", ENOUGH))
    if both.missing:
        return Verdict("solvers", claim, TOO_FEW, both.missing)
    order: list[Outcome] = ["not reproduced", "partly", "reproduced"]
    outcomes = {n: reaches_zero(both.at(PAPER, n)) for n in both.numbers}
    outcome = min(outcomes.values(), key=order.index)
    words = {
        "reproduced": "at least nine runs in ten end",
        "partly": "at least half of the runs, but not nine in ten, end",
        "not reproduced": "fewer than half of the runs end",
    }[outcome]
    where = [f"{n:g}" for n in both.numbers if outcomes[n] == outcome]
    words = words[0].upper() + words[1:] if len(where) == len(outcomes) else f"At N = {listed(where)} {words}"
    counts = listed(f"{count_zeros(both.at(PAPER, n))} at N = {n:g}" for n in both.numbers)
    reason = f"{words} below {ALMOST_ZERO:g} ({counts}){_others_end(both.errors[PAPER])}."
    head = ("", "mean error", "median", f"below {ALMOST_ZERO:g}")
    lines = [
        (f"N = {n:g}", short(own.mean()), short(np.median(own)), count_zeros(own))
        for n in both.numbers
        for own in (both.at(PAPER, n),)
    ]
    return Verdict("solvers", claim, outcome, reason, both.trials, (head, *lines))


def _others_end(errors: NDArray[np.float64]) -> str:
    """Where the other runs end."""
    failed = errors[errors >= ALMOST_ZERO]
    return f"; the others end at {short(np.median(failed))} in the median" if failed.size else ""


def _exact_beats_inexact(rows: list[Row]) -> Verdict:
    claim = f"eADMM after 300 iterations beats iADMM after 10,000, for N ≥ {ENOUGH}"
    numbers = _numbers_of_samples("solvers", "samples", ENOUGH)
    both = compared(rows, "solvers", "samples", (PAPER, *INEXACT), numbers)
    if both.missing:
        return Verdict("solvers", claim, TOO_FEW, both.missing)
    signs = [both.lead(PAPER, name, n) for n in both.numbers for name in INEXACT]
    reason = f"At {len(both.numbers)} numbers of samples, against both variants of iADMM, eADMM {count_leads(signs)}."
    return Verdict("solvers", claim, by_leads(signs), reason, both.trials, both.table(ENOUGH))


def _inexact_stays(rows: list[Row]) -> Verdict:
    claim = "iADMM stays near 0.01 after 10,000 iterations"
    matchings = {"error": "optimal matching", "error_greedy": GREEDY}
    found = {words: compared(rows, "solvers", "samples", INEXACT, [ENOUGH], name) for name, words in matchings.items()}
    if missing := found["optimal matching"].missing:
        return Verdict("solvers", claim, TOO_FEW, missing)
    near, times, lines = [], [], []
    for words, both in found.items():
        means = [mean_interval(both.at(name, ENOUGH)) for name in INEXACT]
        near.append(all(mean.low >= PLATEAU / FACTOR and mean.high <= PLATEAU * FACTOR for mean in means))
        ends = dict.fromkeys(short(mean.value / PLATEAU) for mean in sorted(means, key=lambda mean: mean.value))
        times.append(f"{' to '.join(ends)} times {PLATEAU:g} by {words}")
        lines.append((f"mean, {words}", *(f"{short(m.value)} ± {short(m.high - m.value)}" for m in means)))
    outcome: Outcome = "reproduced" if all(near) else "partly" if any(near) else "not reproduced"
    reason = (
        f"The mean error at N = {ENOUGH} is {listed(times)}; near: the 95 % interval within a factor of {FACTOR:g}."
    )
    head = (f"N = {ENOUGH}", *(NAMES[name] for name in INEXACT))
    return Verdict("solvers", claim, outcome, reason, found["optimal matching"].trials, (head, *lines))


def judge_noise_free(rows: list[Row]) -> list[Verdict]:
    """Fig. 2: samples needed and floors, one verdict for every size."""
    return [_fewer_samples_no_floor(rows, panel) for panel in panels_with_rows(rows)]


def _fewer_samples_no_floor(rows: list[Row], panel: str) -> Verdict:
    size = f"({panel.replace('-', ', ')})"
    claim = f"{size}: ROAD needs fewer samples than the others, and its error goes to 0 where theirs do not"
    both = compared(rows, "noise-free", panel, (PAPER, *BASELINES))
    if both.missing:
        return Verdict("noise-free", claim, TOO_FEW, both.missing)
    most = both.numbers[-1]
    signs = {name: fewer(both.numbers, both.errors[PAPER], both.errors[name], FOUND) for name in BASELINES}
    zero, floors = reaches_zero(both.at(PAPER, most)), _floors(both, most)
    outcome: Outcome = "not reproduced"
    if min(signs.values()) > 0 or (zero != "not reproduced" and all(floors.values())):
        whole = min(signs.values()) > 0 and zero == "reproduced" and all(floors.values())
        outcome = "reproduced" if whole else "partly"
    reached = _zero_words(both.at(PAPER, most), zero, "its")
    reason = f"ROAD needs {_fewer_words(signs)}; at N = {most:g}, {reached}; {_floor_words(both, most, floors)}."
    return Verdict("noise-free", claim, outcome, reason, both.trials, both.table(most, with_needed=True))


def _floors(both: Compared, number: float) -> dict[str, bool]:
    """Whether the baselines stay away from 0: clearly fewer than half of their runs end there."""
    return {name: stays_away(both.at(name, number)) for name in BASELINES}


def _fewer_words(signs: dict[str, int]) -> str:
    words = {1: "fewer samples than {}", 0: "as many samples as {}, within chance", -1: "more samples than {}"}
    names = {sign: [NAMES[name] for name, own in signs.items() if own == sign] for sign in words}
    return listed(text.format(listed(names[sign])) for sign, text in words.items() if names[sign])


def _zero_words(errors: NDArray[np.float64], zero: Outcome, owner: str) -> str:
    count, number = int(np.sum(errors < ALMOST_ZERO)), len(errors)
    only = "only " if zero == "not reproduced" else ""
    but = ", but not nine in ten," if zero == "partly" else ""
    return f"{only}{count} of {owner} {number} runs{but} end below {ALMOST_ZERO:g}"


def _floor_words(both: Compared, number: float, floors: dict[str, bool]) -> str:
    reached = [f"{NAMES[name]} ({count_zeros(both.at(name, number))})" for name, floor in floors.items() if not floor]
    if reached:
        return f"so do runs of {listed(reached)}"
    most = max(int(np.sum(both.at(name, number) < ALMOST_ZERO)) for name in floors)
    return (
        f"at most {plural(most, 'run')} of each of the others {agree(most, 'does', 'do')}"
        if most
        else "none of the others do"
    )


def judge_noisy(rows: list[Row]) -> list[Verdict]:
    """Fig. 3: ROAD below the others, one verdict for every level of noise."""
    return [_below_the_others(rows, panel) for panel in panels_with_rows(rows)]


def _below_the_others(rows: list[Row], panel: str) -> Verdict:
    claim = f"{panel.replace('-db', ' dB')}: ROAD's error is below those of BLOTLESS, K-SVD and MOD"
    both = compared(rows, "noisy", panel, (PAPER, *BASELINES))
    if both.missing:
        return Verdict("noisy", claim, TOO_FEW, both.missing)
    signs = [both.lead(PAPER, name, n) for n in both.numbers for name in BASELINES]
    reason = f"At {len(both.numbers)} numbers of samples, against three methods, ROAD {count_leads(signs)}."
    return Verdict("noisy", claim, by_leads(signs), reason, both.trials, both.table(both.numbers[-1]))


def judge_bernoulli(rows: list[Row]) -> list[Verdict]:
    """Fig. 4: ROAD recovers the dictionary from the largest number of samples, and the others do not."""
    return [_found_by_road_only(rows, panel) for panel in panels_with_rows(rows)]


def _found_by_road_only(rows: list[Row], panel: str) -> Verdict:
    theta = panel.replace("theta-", "θ = ") + "/48"
    claim = f"{theta}: ROAD recovers the dictionary exactly with varying sparsity, the others do not"
    both = compared(rows, "bernoulli", panel, (PAPER, *BASELINES))
    if both.missing:
        return Verdict("bernoulli", claim, TOO_FEW, both.missing)
    most = both.numbers[-1]
    zero, floors = reaches_zero(both.at(PAPER, most)), _floors(both, most)
    ahead = all(both.lead(PAPER, name, most) > 0 for name in BASELINES)
    outcome: Outcome = "not reproduced"
    if zero == "reproduced":
        outcome = "reproduced" if all(floors.values()) else "partly"
    elif zero == "partly" and (ahead or all(floors.values())):
        outcome = "partly"
    reached = _zero_words(both.at(PAPER, most), zero, "ROAD's")
    reason = f"At N = {most:g}, {reached}; {_floor_words(both, most, floors)}."
    return Verdict("bernoulli", claim, outcome, reason, both.trials, both.table(most))
