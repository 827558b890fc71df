"""Progress events for other programs: lines of JSON on standard error.

A program that sets the environment variable ``ROADICT_PROGRESS=json`` gets them instead of the progress meant for
users. Every event is an object with one key, "progress" or "snapshot"; all other lines are for users, as always.
"""

import base64
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.progress.compiling import Compiling
from roadict.progress.output import write
from roadict.progress.remaining import TimeLeft
from roadict.progress.terminal import RunProgress

VARIABLE = "ROADICT_PROGRESS"
ATOMS_EVERY = 0.5
"""Seconds between two snapshots with atoms, which cost a copy of them and a long line."""
_STEP_EVERY = 0.1


class RunSnapshot(RunProgress, Protocol):
    """The attributes of a run in an event; ``roadict.runs.snapshot.Snapshot`` has them."""

    @property
    def error(self) -> float:
        """Relative error of the data."""

    @property
    def dictionary(self) -> NDArray[np.floating]:
        """Atoms after this iteration."""


def requested() -> bool:
    """Whether the parent process asked for events."""
    return os.environ.get(VARIABLE) == "json"


class EventProgress:
    """Progress as events, instead of ``roadict.progress.terminal.PlainProgress``."""

    def __init__(self, verb: str, time_left: Callable[[int, int], str] | None = None, share: float = 0.0) -> None:
        self._verb = verb
        self._time_left = time_left or TimeLeft()
        self._last = 0.0
        self._share = share

    def __call__(self, done: int, total: int, text: str) -> None:
        """Write an event; at most a few per second, and always the last."""
        self._share = max(self._share, done / total if total else 0.0)
        self._emit(text, self._time_left(done, total), always=done == total)

    def compiling(self, state: Compiling | None) -> None:
        """Write an event at the present share: compilation explains the delay; at most a few per second."""
        if state is not None:
            self._emit(state.text, state.time_left, always=False)

    def _emit(self, text: str, time_left: str, *, always: bool) -> None:
        now = time.perf_counter()
        if always or now - self._last >= _STEP_EVERY:
            self._last = now
            stage = text.split("  ")[0]
            share = round(self._share, 4)
            values = {"verb": self._verb, "stage": stage, "share": share, "text": text, "left": time_left}
            _write("progress", values)


class SnapshotEvents:
    """Callback that writes the measures of every iteration, and the atoms at intervals and at ``max_iter``."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, snapshot: RunSnapshot) -> None:
        """Write an event."""
        measures = {**snapshot.residuals, "error": snapshot.error}
        values: dict[str, Any] = {
            "stage": snapshot.stage,
            "start": snapshot.start,
            "iteration": snapshot.iteration,
            "objective": snapshot.objective,
            "measures": {name: value if math.isfinite(value) else None for name, value in measures.items()},
        }
        now = time.perf_counter()
        if now - self._last >= ATOMS_EVERY or snapshot.iteration == snapshot.max_iter:
            self._last = now
            atoms = np.ascontiguousarray(snapshot.dictionary, "<f4")
            values |= {"shape": atoms.shape, "atoms": base64.b64encode(atoms.tobytes()).decode()}
        _write("snapshot", values)


def read(line: str) -> dict[str, dict[str, Any]] | None:
    """Return the event in a line, with its atoms as an array, or None for a line meant for users.

    Examples
    --------
    >>> read('{"snapshot": {"start": 1, "iteration": 1, "objective": 2.5}}')
    {'snapshot': {'start': 1, 'iteration': 1, 'objective': 2.5}}
    >>> read("sigma 20 of 255")
    >>> read("{a}.csv: 100 samples")
    """
    if not line.startswith("{"):
        return None
    try:
        event: dict[str, dict[str, Any]] = json.loads(line)
    except ValueError:  # a file name, or the last line of a process that was killed
        return None
    if event.keys() not in ({"progress"}, {"snapshot"}):
        return None
    snapshot = event.get("snapshot", {})
    if "atoms" in snapshot:
        values = np.frombuffer(base64.b64decode(snapshot["atoms"]), "<f4")
        snapshot["atoms"] = values.reshape(snapshot.pop("shape"))
    return event


def _write(kind: str, values: dict[str, Any]) -> None:
    write(f"{json.dumps({kind: values})}\n")
