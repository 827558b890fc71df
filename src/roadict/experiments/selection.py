"""Select the rows of the current plans from a folder."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from roadict.experiments.plan import Experiment
from roadict.experiments.provenance import ROOTS, sources_digest
from roadict.experiments.rows import Row, code_of

MAX_VALUE = 1e6
"""Far above any error or PSNR."""


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
    settings, result = row["settings"], row.get("result")
    measures = ("error", "error_greedy") if "n_samples" in settings["problem"] else ("psnr",)
    seconds = row.get("seconds")
    valid = (
        type(settings.get("seed")) is int
        and isinstance(settings.get("engine"), str)
        and isinstance(settings["problem"].get("digest", ""), str)
        and isinstance(result, dict)
        and all(_is_number(result.get(name)) for name in measures)
        and (not settings["problem"].get("trace") or _is_trace(result.get("trace")))
        and isinstance(seconds, dict)
        and _is_number(seconds.get("cpu"))
        and isinstance(row.get("versions"), dict)
        and all(isinstance(number, str) for number in row["versions"].values())
        and isinstance(row.get("machine"), str)
        and isinstance(row.get("commit", ""), str)
        and type(row.get("trials", 0)) is int
    )
    if not valid:
        raise ValueError(
            f"the row {row['key']} of {settings['experiment']} is not as roadict reproduce writes it: something is "
            "missing or out of range; remove that line and run reproduce again"
        )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= MAX_VALUE  # False for NaN


def _is_trace(trace: Any) -> bool:
    return (
        isinstance(trace, list)
        and bool(trace)
        and all(isinstance(point, (list, tuple)) and len(point) == 2 for point in trace)
        and all(_is_number(at) and at >= 1 and _is_number(error) for at, error in trace)
    )


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
