"""What the rows of the ablation say: who finds the dictionary, and what each ingredient of ROAD adds."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.curves import percent
from roadict.experiments.ablation import ABLATION
from roadict.experiments.intervals import Interval, found_more, mean_interval
from roadict.experiments.judgement import DEFAULTS, FOUND, TOO_FEW, Outcome, Verdict, listed
from roadict.experiments.rows import Row
from roadict.wording import plural

Found = dict[str, NDArray[np.float64]]
"""Whether each trial of a method found the dictionary."""
OTHERS = ("lasso-annealed", "lasso-annealed-finished", "ksvd", "blotless")
RESTARTS = "restarts"
INGREDIENTS = {"the finish": "road-unfinished", RESTARTS: "road-one-start", "the moving ρ": "road-paper-finished"}
"""What the defaults have that a method has not."""
MIN_PAIRS = 6
"""Trials that the sign test needs: of fewer, not even a lead in all is beyond chance."""
CLAIMS = (
    "at equal CPU time ROAD finds more dictionaries than the others with restarts, one of them with its finish too",
    "the finish, restarts and the moving ρ each add dictionaries",
)


@dataclass(frozen=True)
class Gain:
    """What an ingredient of ROAD adds.

    Attributes
    ----------
    found, without : float
        Shares of the trials that find the dictionary, means over the problems.
    difference : Interval
        Of the two, from the paired differences.
    where, problems : int
        Problems where it leads beyond chance, of how many.
    trials : int
        Of the problem that has fewest.
    """

    ingredient: str
    found: float
    without: float
    difference: Interval
    where: int
    problems: int
    trials: int

    @property
    def adds(self) -> bool:
        """Whether the difference is above two standard errors: one test, where those of the problems would be many."""
        return self.difference.low > 0


def judge_ablation(rows: list[Row]) -> list[Verdict]:
    """Compare ROAD's defaults with the others, and with ROAD without one of its ingredients."""
    problems = found_by_problem(rows)
    if missing := missing_in(problems):
        return [Verdict("ablation", claim, TOO_FEW, missing, ours=True) for claim in CLAIMS]
    return [_against_the_others(problems), _of_the_ingredients(problems)]


def missing_in(problems: dict[str, Found]) -> str:
    """Why nothing can be judged, in a sentence; "" if it can be."""
    if absent := [size for size in _sizes() if size not in problems]:
        return f"No trial has rows of all methods at {listed(absent)}."
    if _trials(problems) < MIN_PAIRS:
        return f"Fewer than {MIN_PAIRS} trials have rows of all methods: no lead can be told from chance."
    return ""


def found_by_problem(rows: list[Row]) -> dict[str, Found]:
    """Whether each trial found the dictionary, by problem and method, on the seeds that all methods have."""
    problems: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        settings = row["settings"]
        size = name_problem(settings["panel"], settings["problem"])
        seeds = problems.setdefault(size, {}).setdefault(settings["method"]["name"], {})
        seeds[settings["seed"]] = float(row["result"]["error"] < FOUND)
    complete = {}
    for size in _sizes():
        methods = problems.get(size, {})
        common = set.intersection(*(set(methods.get(method.name, {})) for method in ABLATION.methods))
        if common:
            complete[size] = {name: np.array([found[s] for s in sorted(common)]) for name, found in methods.items()}
    return complete


def _sizes() -> list[str]:
    """Texts of the problems, in the order of the figures."""
    return [name_problem(panel.name, asdict(problem)) for panel in ABLATION.panels for problem in panel.problems]


def name_problem(panel: str, problem: dict[str, Any]) -> str:
    """Sizes of a problem, as text."""
    return f"({panel.replace('-', ', ')}), N = {problem['n_samples']}"


def _against_the_others(problems: dict[str, Found]) -> Verdict:
    labels, held = {method.name: method.label for method in ABLATION.methods}, []
    table = [("problem", "ROAD's defaults", "best of the others", "")]
    for size, found in problems.items():
        best = max(OTHERS, key=lambda name: found[name].mean())
        held.append(found_more(found[DEFAULTS], found[best]))
        table.append((size, percent(found[DEFAULTS].mean()), percent(found[best].mean()), labels[best]))
    reason = (
        f"At {sum(held)} of {plural(len(held), 'problem')} ROAD's defaults find the dictionary more often than the "
        "best of the others, beyond chance by the sign test of the paired trials."
    )
    return Verdict("ablation", CLAIMS[0], _outcome(held), reason, _trials(problems), tuple(table), ours=True)


def gains(problems: dict[str, Found]) -> list[Gain]:
    """What each ingredient adds, from what ``found_by_problem`` returns."""
    added, number = [], len(problems)
    for ingredient, without in INGREDIENTS.items():
        pairs = [(found[DEFAULTS], found[without]) for found in problems.values()]
        each = [mean_interval(one - two) for one, two in pairs]
        value = float(np.mean([gain.value for gain in each]))
        half = float(np.linalg.norm([gain.high - gain.value for gain in each])) / number  # problems are independent
        with_it, without_it = (float(np.mean([pair[i].mean() for pair in pairs])) for i in (0, 1))
        where = sum(found_more(*pair) for pair in pairs)
        difference = Interval(value, value - half, value + half)
        added.append(Gain(ingredient, with_it, without_it, difference, where, number, _trials(problems)))
    return added


def _of_the_ingredients(problems: dict[str, Found]) -> Verdict:
    table = [
        (
            "ingredient",
            "dictionaries found more, percentage points, mean of the problems",
            "problems where it leads beyond chance",
        )
    ]
    added = gains(problems)
    table += [(gain.ingredient, in_points(gain), f"{gain.where} of {gain.problems}") for gain in added]
    adding, idle = ([gain.ingredient for gain in added if gain.adds == adds] for adds in (True, False))
    who = f"{listed(adding)} {'add' if _several(adding) else 'adds'}" if adding else "none of them adds"
    but = f"; {listed(idle)} {'do' if _several(idle) else 'does'} not" if adding and idle else ""
    over = plural(len(problems), "problem")
    reason = f"Over {over}, {who} dictionaries by more than two standard errors of the mean paired difference{but}."
    outcome = _outcome([gain.adds for gain in added])
    return Verdict("ablation", CLAIMS[1], outcome, reason, _trials(problems), tuple(table), ours=True)


def in_points(gain: Gain) -> str:
    """Difference of shares in percentage points, with two standard errors."""
    share = gain.difference
    return f"{round(100 * share.value):+d} ± {100 * (share.high - share.value):.0f}".replace("-", "−")


def _several(ingredients: list[str]) -> bool:
    return len(ingredients) > 1 or ingredients == [RESTARTS]


def _trials(problems: dict[str, Found]) -> int:
    """Trials of the problem that has fewest."""
    return min(len(found[DEFAULTS]) for found in problems.values())


def _outcome(held: list[bool]) -> Outcome:
    return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"
