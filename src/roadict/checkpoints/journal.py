"""Save and resume a fit in progress: the fits of its finished starts, and the current run."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.schedule import Checkpoints
from roadict.checkpoints.storage import Arrays, CheckpointError, LoadedCheckpoint, Metadata
from roadict.runs.history import History
from roadict.runs.loop import Columns, Outcome
from roadict.runs.result import Fit
from roadict.runs.state import Restorable, RunState

SEARCH, DESCENT = "search", "descent"
"""Stages of a fit whose runs are saved."""


class FitJournal:
    """The finished starts of a fit in progress, and what it has found out before; saved with its current run.

    Parameters
    ----------
    checkpoints : Checkpoints or None
        None: nothing is saved.

    Attributes
    ----------
    fits : list of Fit
        The fits of the finished starts, of a loaded checkpoint to begin with.
    notes : dict
    arrays : dict of str to array
        JSON values, and arrays that are the same on every rank, saved with every checkpoint.
    """

    def __init__(self, checkpoints: Checkpoints | None) -> None:
        self._checkpoints = checkpoints
        self._loaded = None if checkpoints is None else checkpoints.take_loaded()
        self.fits: list[Fit] = [] if self._loaded is None else finished_fits(self._loaded)
        self.notes: Metadata = {} if checkpoints is None else checkpoints.notes
        self.arrays: Arrays = {} if checkpoints is None else checkpoints.arrays
        self._unsaved: RunJournal | None = None

    def aside(self) -> "FitJournal":
        """Return a journal for runs on other samples: they are stopped, but not saved, and repeated on resume."""
        other = FitJournal(None)
        other._unsaved = self.open_stage()
        return other

    @property
    def resumes_descent(self) -> bool:
        """Whether the run to resume is a descent."""
        return self._loaded is not None and _has_run(self._loaded) and self._loaded.metadata["stage"] == DESCENT

    def open_run(self, run: Restorable, stage: str = SEARCH) -> "tuple[RunJournal | None, tuple[History | None, int]]":
        """Return what saves this run; and the history and level it continues from, once its state is restored."""
        if self._unsaved is not None:
            return self._unsaved, (None, 0)
        loaded, self._loaded = self._loaded, None  # its arrays map files, freed with the last reference
        resumed = (None, 0) if loaded is None or not _has_run(loaded) else resume(loaded, run)
        return None if self._checkpoints is None else RunJournal(self._checkpoints, run, self.fits, stage), resumed

    def open_stage(self) -> "RunJournal | None":
        """Return what stops a run that is not saved, but repeated if the fit resumes."""
        if self._unsaved is not None:
            return self._unsaved
        return None if self._checkpoints is None else RunJournal(self._checkpoints, None, self.fits)


@dataclass(frozen=True)
class RunJournal:
    """Save a fit between two iterations; a ``Journal`` of the loop.

    Attributes
    ----------
    checkpoints : Checkpoints
    run : Restorable or None
        The current run; None: it is not saved, and a checkpoint is written only when the fit has to stop.
    fits : list of Fit
        The fits of earlier starts.
    stage : str
        SEARCH or DESCENT.
    level : int
        Of a search, number of residual levels at which the exact finish has been tried; of a descent, number of
        iterations before it.
    """

    checkpoints: Checkpoints
    run: Restorable | None
    fits: list[Fit]
    stage: str = SEARCH
    level: int = 0

    def wants(self) -> tuple[int, int]:
        """Whether a checkpoint is due, and the signal that asks the run to stop, or 0."""
        due, stop = self.checkpoints.wants()
        return (0 if self.run is None else due), stop

    def save(self, columns: Columns, stop: int) -> None:
        """Write a checkpoint."""
        state = RunState({}, {}) if self.run is None else self.run.state()
        shared = {f"run.{name}": array for name, array in state.shared.items()} | {"history": _table(columns)}
        local = {f"run.{name}": array for name, array in state.local.items()}
        metadata: Metadata = {
            "stage": self.stage,
            "level": self.level,
            "iteration": len(columns["objective"]),
            "columns": list(columns),
            "fits": [],
        }
        for index, fit in enumerate(self.fits):
            metadata["fits"].append(
                {
                    "stop_reason": fit.outcome.stop_reason,
                    "error": fit.error,
                    "objective": fit.objective,
                    "exact": fit.exact,
                    "columns": list(fit.outcome.history),
                }
            )
            shared |= {f"fit{index}.history": _table(fit.outcome.history), f"fit{index}.dictionary": fit.dictionary}
            local |= {f"fit{index}.codes": fit.codes}
        self.checkpoints.save(metadata, shared, local, stop)


def _table(columns: Any) -> NDArray[np.float64]:
    return np.array([columns[name] for name in columns], np.float64)


def _history(columns: list[str], table: NDArray[np.float64]) -> History:
    return History(dict(zip(columns, table, strict=True)))


def finished_fits(loaded: LoadedCheckpoint) -> list[Fit]:
    """Return the fits of earlier starts, with this rank's codes."""
    fits = []
    for index, values in enumerate(loaded.metadata["fits"]):
        codes = np.concatenate([part[f"fit{index}.codes"] for _, part in loaded.parts])
        outcome = Outcome(_history(values["columns"], loaded.shared[f"fit{index}.history"]), values["stop_reason"])
        dictionary = loaded.shared[f"fit{index}.dictionary"]
        fits.append(Fit(outcome, dictionary, codes, values["error"], values["objective"], values["exact"]))
    return fits


def resume(loaded: LoadedCheckpoint, run: Restorable) -> tuple[History, int]:
    """Restore the saved state into a new run; returns its history and its level."""
    fresh = run.state()
    shared = _run_arrays(loaded.shared)
    for start, part in loaded.parts:
        local = _run_arrays(part)
        _check(loaded, fresh.shared, shared, rows=False)
        _check(loaded, fresh.local, local, rows=True)
        run.restore(RunState(local, shared), start)
    return _history(loaded.metadata["columns"], loaded.shared["history"]), int(loaded.metadata["level"])


def _has_run(loaded: LoadedCheckpoint) -> bool:
    return any(name.startswith("run.") for name in loaded.shared)


def _run_arrays(arrays: Arrays) -> Arrays:
    return {name.removeprefix("run."): array for name, array in arrays.items() if name.startswith("run.")}


def _check(loaded: LoadedCheckpoint, expected: Arrays, given: Arrays, *, rows: bool) -> None:
    """Refuse arrays in the memory layout of another kind of machine."""
    for name, array in expected.items():
        other = given.get(name)
        if other is None:
            raise CheckpointError(
                f"{loaded.name} holds no {name!r}: another engine or another version of roadict wrote it; resume it "
                "with that one, or start again in an empty folder"
            )
        if other.dtype != array.dtype or other.shape[rows:] != array.shape[rows:]:
            raise CheckpointError(
                f"{loaded.name} holds {name!r} in another layout than this machine's (vectors of another length, or "
                "another engine); resume it on a machine of the kind that wrote it"
            )
