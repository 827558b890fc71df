"""A fit in progress on disk and back: what has been found so far, and the run that is under way."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.schedule import Keeper
from roadict.checkpoints.storage import Arrays, CheckpointError, Facts, Found
from roadict.runs.history import COLUMNS, History
from roadict.runs.loop import Columns, Outcome
from roadict.runs.result import Fit
from roadict.runs.state import Restorable, RunState


@dataclass(frozen=True)
class Journal:
    """What the loop keeps of a fit; a ``Watch``.

    Attributes
    ----------
    keeper : Keeper
    run : Restorable
        The run under way.
    fits : list of Fit
        Of the runs before it.
    level : int
        How many of the rougher tolerances it has met.
    """

    keeper: Keeper
    run: Restorable
    fits: list[Fit]
    level: int = 0

    def wants(self) -> tuple[int, int]:
        """As the keeper says."""
        return self.keeper.wants()

    def keep(self, columns: Columns, stop: int) -> None:
        """Write a checkpoint."""
        state = self.run.state()
        shared = {f"run.{name}": array for name, array in state.shared.items()} | {"history": _table(columns)}
        local = {f"run.{name}": array for name, array in state.local.items()}
        facts: Facts = {"level": self.level, "iteration": len(columns["rho"]), "fits": []}
        for index, fit in enumerate(self.fits):
            facts["fits"].append(
                {
                    "stop_reason": fit.outcome.stop_reason,
                    "error": fit.error,
                    "objective": fit.objective,
                    "exact": fit.exact,
                }
            )
            shared |= {f"fit{index}.history": _table(fit.outcome.history), f"fit{index}.dictionary": fit.dictionary}
            local |= {f"fit{index}.codes": fit.codes}
        self.keeper.keep(facts, shared, local, stop)


def _table(columns: Any) -> NDArray[np.float64]:
    return np.array([columns[name] for name in COLUMNS], np.float64)


def _history(table: NDArray[Any]) -> History:
    return History(dict(zip(COLUMNS, table, strict=True)))


def finished_fits(found: Found) -> list[Fit]:
    """Return the fits of the runs before the one under way, with this rank's codes."""
    fits = []
    for index, facts in enumerate(found.facts["fits"]):
        codes = np.concatenate([part[f"fit{index}.codes"] for _, part in found.parts])
        outcome = Outcome(_history(found.shared[f"fit{index}.history"]), facts["stop_reason"])
        dictionary = found.shared[f"fit{index}.dictionary"]
        fits.append(Fit(outcome, dictionary, codes, facts["error"], facts["objective"], facts["exact"]))
    return fits


def resume(found: Found, run: Restorable) -> tuple[History, int]:
    """Bring a fresh run to where the one under way was; returns its history and its level."""
    fresh = run.state()
    shared = _of_run(found.shared)
    for start, part in found.parts:
        local = _of_run(part)
        _check(found, fresh.shared, shared, rows=False)
        _check(found, fresh.local, local, rows=True)
        run.restore(RunState(local, shared), start)
    return _history(found.shared["history"]), int(found.facts["level"])


def _of_run(arrays: Arrays) -> Arrays:
    return {name.removeprefix("run."): array for name, array in arrays.items() if name.startswith("run.")}


def _check(found: Found, expected: Arrays, given: Arrays, *, rows: bool) -> None:
    """Refuse arrays that another kind of machine has laid out."""
    for name, array in expected.items():
        other = given.get(name)
        if other is None:
            raise CheckpointError(
                f"{found.name} holds no {name!r}: another engine or another version of roadict wrote it; go on with "
                "that one, or start again in an empty folder"
            )
        if other.dtype != array.dtype or other.shape[rows:] != array.shape[rows:]:
            raise CheckpointError(
                f"{found.name} holds {name!r} in another layout than this machine's (vectors of another length, or "
                "another engine); resume it on a machine of the kind that wrote it"
            )
