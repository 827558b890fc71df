"""What a command tells the program that started it: lines of JSON on standard error.

A program that sets the environment variable ``ROADICT_PROGRESS=json`` gets them in the place of the progress that
people read. Every such line is an object with one key, "progress" or "snapshot"; all others are for people, as always.
"""

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.progress.terminal import Reading, TimeLeft, duration

VARIABLE = "ROADICT_PROGRESS"
ATOMS_EVERY = 0.5
"""Seconds between two snapshots that hold the atoms, which cost a copy of them and a long line."""
_STEP_EVERY = 0.1


class Watched(Reading, Protocol):
    """What an event holds of a run; ``roadict.runs.snapshot.Snapshot`` has it."""

    @property
    def dictionary(self) -> NDArray[np.floating]:
        """Atoms after this iteration."""


def wanted() -> bool:
    """Whether the program that started this one asked for events."""
    return os.environ.get(VARIABLE) == "json"


class EventProgress:
    """Progress as events, in the place of ``roadict.progress.terminal.PlainProgress``."""

    def __init__(self, verb: str, left: Callable[[int, int], str] | None = None) -> None:
        self._verb = verb
        self._left = left or TimeLeft()
        self._last = 0.0
        self._steps = (0, 0)

    def __call__(self, done: int, total: int, text: str) -> None:
        """Write an event; but few in a second, and always the last."""
        self._steps = (done, total)
        self._tell(text, self._left(done, total), always=done == total)

    def compiling(self, seconds: float) -> None:
        """Write an event, at the step reached, on why nothing else moves; but few in a second."""
        self._tell("compiling, once", f"{duration(seconds)} so far", always=False)

    def _tell(self, text: str, left: str, *, always: bool) -> None:
        now = time.perf_counter()
        if always or now - self._last >= _STEP_EVERY:
            self._last = now
            done, total = self._steps
            _write("progress", {"verb": self._verb, "done": done, "total": total, "text": text, "left": left})


class SnapshotEvents:
    """Callback that writes the measures of every iteration, and now and then the atoms."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, snapshot: Watched) -> None:
        """Write an event."""
        values: dict[str, Any] = {
            "start": snapshot.start,
            "iteration": snapshot.iteration,
            "objective": snapshot.objective,
        }
        now = time.perf_counter()
        if now - self._last >= ATOMS_EVERY:
            self._last = now
            atoms = np.ascontiguousarray(snapshot.dictionary, "<f4")
            values |= {"shape": atoms.shape, "atoms": base64.b64encode(atoms.tobytes()).decode()}
        _write("snapshot", values)


def read(line: str) -> dict[str, dict[str, Any]] | None:
    """Return the event that a line holds, with its atoms as an array, or None for a line for people.

    Examples
    --------
    >>> read('{"snapshot": {"start": 1, "iteration": 1, "objective": 2.5}}')
    {'snapshot': {'start': 1, 'iteration': 1, 'objective': 2.5}}
    >>> read("sigma 20 of 255")
    """
    if not line.startswith("{"):
        return None
    event: dict[str, dict[str, Any]] = json.loads(line)
    snapshot = event.get("snapshot", {})
    if "atoms" in snapshot:
        values = np.frombuffer(base64.b64decode(snapshot["atoms"]), "<f4")
        snapshot["atoms"] = values.reshape(snapshot.pop("shape"))
    return event


def _write(kind: str, values: dict[str, Any]) -> None:
    print(json.dumps({kind: values}), file=sys.stderr, flush=True)
