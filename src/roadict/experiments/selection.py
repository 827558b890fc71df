"""Which rows of a folder belong together: those of the plans as they are now."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict

from roadict import __version__
from roadict.experiments.plan import Experiment
from roadict.experiments.rows import Row


def current(rows: Iterable[Row], experiments: Iterable[Experiment]) -> tuple[list[Row], int]:
    """Keep the rows of the present plans and version; rows of older settings must not mix into a mean.

    Where a folder holds rows of several engines, or of several sets of pictures, those with the most rows are kept.

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
    kept = [row for row in rows if row["settings"].get("roadict") == __version__ and _name(row) in planned]
    for kind in (_engine, _digest):
        # Ties go to the name, so that the same rows give the same page.
        for experiment in {row["settings"]["experiment"] for row in kept}:
            own = [row for row in kept if row["settings"]["experiment"] == experiment]
            number = Counter(found for row in own if (found := kind(row)))
            if number:
                most = max(sorted(number), key=lambda name: number[name])
                dropped = {row["key"] for row in own if kind(row) not in ("", most)}
                kept = [row for row in kept if row["key"] not in dropped]
    return kept, len(rows) - len(kept)


def _engine(row: Row) -> str:
    return str(row["settings"]["engine"])


def _digest(row: Row) -> str:
    return str(row["settings"]["problem"].get("digest", ""))


def _name(row: Row) -> str:
    settings = row["settings"]
    return _plain(settings["experiment"], settings["panel"], settings["problem"], settings["method"])


def _plain(experiment: str, panel: str, problem: Row, method: Row) -> str:
    """A text for what a plan fixes: not seeds, engines and the user's pictures."""
    fixed = {name: value for name, value in problem.items() if name not in ("source", "digest")}
    return json.dumps([experiment, panel, fixed, method], sort_keys=True)
