"""Which rows of a folder belong together: those of the plans as they are now."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from roadict import __version__
from roadict.experiments.plan import Experiment
from roadict.experiments.rows import Row

LARGEST = 1e6
"""No error and no PSNR of ours comes near."""


def current(rows: Iterable[Row], experiments: Iterable[Experiment]) -> tuple[list[Row], int]:
    """Keep the rows of the present plans and version, every trial once: others must not mix into a mean.

    A trial that several engines carried out counts once, by the engine that has the most rows of that method, and where
    there are rows of several sets of pictures, those of the set with the most are kept.

    Parameters
    ----------
    rows : iterable of rows
    experiments : iterable of Experiment

    Returns
    -------
    kept : list of rows
    left_out : int
        Number of the others.
    """
    rows = list(rows)
    planned = {
        _plain(experiment.name, panel.name, asdict(problem), asdict(method))
        for experiment in experiments
        for panel in experiment.panels
        for problem in panel.problems
        for method in experiment.methods
    }
    kept = [row for row in rows if _is_of_this_version(row) and _name(row) in planned]
    for row in kept:
        _check(row)
    kept = _one_engine_per_trial(_one_set_of_pictures(kept))
    return kept, len(rows) - len(kept)


def _one_set_of_pictures(rows: list[Row]) -> list[Row]:
    number = Counter((row["settings"]["experiment"], _digest(row)) for row in rows)
    most: dict[str, str] = {}
    for experiment, digest in sorted(number):  # ties go to the name, so that the same rows give the same page
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
        best.setdefault((_name(row), row["settings"]["seed"]), row)
    chosen = {row["key"] for row in best.values()}
    return [row for row in rows if row["key"] in chosen]


def _method(row: Row) -> tuple[str, str]:
    return row["settings"]["experiment"], row["settings"]["method"]["name"]


def _is_of_this_version(row: Row) -> bool:
    settings = row.get("settings")
    return isinstance(settings, dict) and settings.get("roadict") == __version__


def _check(row: Row) -> None:
    """Refuse a row that claims to be of the present plans and is not what reproduce writes."""
    settings, result = row["settings"], row.get("result")
    measures = ("error", "error_greedy") if "n_samples" in settings["problem"] else ("psnr",)
    seconds = row.get("seconds")
    well = (
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
    )
    if not well:
        raise ValueError(
            f"the row {row['key']} of {settings['experiment']} is not as roadict reproduce writes it: something is "
            "missing or out of range; remove that line and run reproduce again"
        )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST  # which no NaN is


def _is_trace(trace: Any) -> bool:
    return (
        isinstance(trace, list)
        and bool(trace)
        and all(isinstance(point, (list, tuple)) and len(point) == 2 for point in trace)
        and all(_is_number(at) and at >= 1 and _is_number(error) for at, error in trace)
    )


def _digest(row: Row) -> str:
    return str(row["settings"]["problem"].get("digest", ""))


def _name(row: Row) -> str:
    settings = row["settings"]
    problem = settings.get("problem")
    if not isinstance(problem, dict):
        return ""
    return _plain(settings.get("experiment"), settings.get("panel"), problem, settings.get("method"))


def _plain(experiment: Any, panel: Any, problem: Row, method: Any) -> str:
    """A text for what a plan fixes: not seeds, engines and the user's pictures."""
    fixed = {name: value for name, value in problem.items() if name not in ("source", "digest")}
    return json.dumps([experiment, panel, fixed, method], sort_keys=True)
