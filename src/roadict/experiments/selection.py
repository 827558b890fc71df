"""Select the rows of the current plans from a folder."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from roadict.experiments.plan import Experiment
from roadict.experiments.provenance import ROOTS, sources_digest
from roadict.experiments.rows import Row, RowError, code_of

MAX_TRIALS = 1_000
"""Of ``reproduce --trials``, ten times the published: more take minutes to plan, and may reach the seeds of tuning."""
MAX_SECONDS = 1_000_000
"""CPU seconds of a trial: eleven days."""
MAX_PSNR = 1_000
"""Far above any, in decibels: rounding alone leaves some 320."""
MAX_SHOWN = 40
"""Characters of a value in a message."""
_MISSING = object()
_Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is allowed, and what must hold, in words."""


def _number(low: int, high: int) -> _Rule:
    def holds(value: Any) -> bool:
        return type(value) in (int, float) and low <= value <= high  # False for NaN

    return holds, f"a number from {low:,} to {high:,}"


def _is_point(point: Any) -> bool:
    in_range, _ = _ERROR
    return isinstance(point, list | tuple) and len(point) == 2 and _is_positive(point[0]) and in_range(point[1])


def _is_positive(value: Any) -> bool:
    return type(value) is int and value >= 1


_TEXT: _Rule = (lambda value: isinstance(value, str), "text")
_ERROR = _number(0, 1)
_POINT: _Rule = (_is_point, "[iteration, error], a whole number from 1 on and a number from 0 to 1")
_EVERY: dict[str, _Rule] = {
    "settings.seed": (lambda value: type(value) is int, "a whole number"),
    "settings.engine": _TEXT,
    "seconds.cpu": _number(0, MAX_SECONDS),
    "versions": (
        lambda value: isinstance(value, dict) and all(isinstance(number, str) for number in value.values()),
        "names of packages with their versions as text",
    ),
    "machine": _TEXT,
}
_RECOVERY: dict[str, _Rule] = {"result.error": _ERROR, "result.error_greedy": _ERROR}
_TRACED: dict[str, _Rule] = {
    "result.trace": (lambda value: isinstance(value, list) and bool(value), "a list of points")
}
_PICTURE: dict[str, _Rule] = {"result.psnr": _number(-MAX_PSNR, MAX_PSNR)}
_OPTIONAL: dict[str, _Rule] = {
    "settings.problem.digest": _TEXT,
    "commit": _TEXT,
    "trials": (
        lambda value: _is_positive(value) and value <= MAX_TRIALS,
        f"a whole number from 1 to {MAX_TRIALS:,}",
    ),
}
"""Fields by the names of their dicts and their own."""


def current(rows: Iterable[Row], experiments: Iterable[Experiment]) -> tuple[list[Row], int]:
    """Select the rows of the current plans, every trial once, so that no other row enters a mean.

    All rows of a method in an experiment are of the same code: this one if there are any, else the code with the most
    rows. A trial of several engines counts once, by the engine with the most rows of that method. Of several sets of
    pictures the one with the most rows is selected.

    Parameters
    ----------
    rows : iterable of rows
    experiments : iterable of Experiment

    Returns
    -------
    selected : list of rows
    left_out : int
        Number of the other rows.
    """
    rows = list(rows)
    planned = {
        _canonical(experiment.name, panel.name, asdict(problem), asdict(method))
        for experiment in experiments
        for panel in experiment.panels
        for problem in panel.problems
        for method in experiment.methods
    }
    selected = [row for row in rows if isinstance(row.get("settings"), dict) and _plan_id(row) in planned]
    for row in selected:
        _check(row)
    selected = _one_engine_per_trial(_one_set_of_pictures(_one_code_per_method(selected)))
    return selected, len(rows) - len(selected)


def is_of_this_code(row: Row) -> bool:
    """Whether the sources that a row depends on are those of this package."""
    learner = row["settings"]["method"]["learner"]
    return learner in ROOTS and code_of(row) == sources_digest(learner)


def _one_code_per_method(rows: list[Row]) -> list[Row]:
    number = Counter((_method(row), code_of(row)) for row in rows)
    best: dict[tuple[str, str], tuple[bool, int, str]] = {}
    for row in rows:
        code = code_of(row)
        rank = is_of_this_code(row), number[_method(row), code], code
        best[_method(row)] = max(rank, best.get(_method(row), rank))
    return [row for row in rows if code_of(row) == best[_method(row)][2]]


def _one_set_of_pictures(rows: list[Row]) -> list[Row]:
    number = Counter((row["settings"]["experiment"], _digest(row)) for row in rows)
    most: dict[str, str] = {}
    for experiment, digest in sorted(number):  # ties are broken by name, so that the same rows give the same page
        if experiment not in most or number[experiment, digest] > number[experiment, most[experiment]]:
            most[experiment] = digest
    return [row for row in rows if _digest(row) == most[row["settings"]["experiment"]]]


def _one_engine_per_trial(rows: list[Row]) -> list[Row]:
    number = Counter((_method(row), row["settings"]["engine"]) for row in rows)

    def preferred(row: Row) -> tuple[int, str, str]:
        engine = row["settings"]["engine"]
        return -number[_method(row), engine], engine, row["key"]

    best: dict[tuple[str, int], Row] = {}
    for row in sorted(rows, key=preferred):
        best.setdefault((_plan_id(row), row["settings"]["seed"]), row)
    chosen = {row["key"] for row in best.values()}
    return [row for row in rows if row["key"] in chosen]


def _method(row: Row) -> tuple[str, str]:
    return row["settings"]["experiment"], row["settings"]["method"]["name"]


def _check(row: Row) -> None:
    """Refuse a row of the current plans that is not what reproduce writes."""
    problem = row["settings"]["problem"]
    rules = _EVERY | (_RECOVERY if "n_samples" in problem else _PICTURE) | (_TRACED if problem.get("trace") else {})
    for name, rule in rules.items():
        _require(row, name, _value(row, name), rule)
    for name, rule in _OPTIONAL.items():
        if (value := _value(row, name)) is not _MISSING:
            _require(row, name, value, rule)
    if problem.get("trace"):
        for index, point in enumerate(row["result"]["trace"]):
            _require(row, f"result.trace[{index}]", point, _POINT)


def _require(row: Row, name: str, value: Any, rule: _Rule) -> None:
    holds, bound = rule
    if not holds(value):
        shown = "missing" if value is _MISSING else json.dumps(value, default=repr)
        shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."
        raise RowError(row, f"{name} is {shown}, must be {bound}")


def _value(row: Row, name: str) -> Any:
    """Value of a field, whose name has a dot between each dict and its entry."""
    value: Any = row
    for part in name.split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _digest(row: Row) -> str:
    return str(row["settings"]["problem"].get("digest", ""))


def _plan_id(row: Row) -> str:
    settings = row["settings"]
    problem = settings.get("problem")
    if not isinstance(problem, dict):
        return ""
    return _canonical(settings.get("experiment"), settings.get("panel"), problem, settings.get("method"))


def _canonical(experiment: Any, panel: Any, problem: Row, method: Any) -> str:
    """Canonical text of what a plan sets: not seeds, engines and the user's pictures."""
    planned = {name: value for name, value in problem.items() if name not in ("source", "digest")}
    return json.dumps([experiment, panel, planned, method], sort_keys=True)
