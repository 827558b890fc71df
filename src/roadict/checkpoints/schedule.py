"""When a run is kept, where, and when it should end: the checkpoints of one run."""

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints import storage
from roadict.checkpoints.lock import FolderLock
from roadict.checkpoints.storage import Arrays, CheckpointError, DamagedError, Facts, Found
from roadict.ranks.collectives import offset, together, words
from roadict.ranks.comm import Comm, is_restart

EVERY = 60.0
"""Seconds from one checkpoint to the next, where the user does not say."""
DIGEST_ROWS = 4096


@dataclass(frozen=True)
class Checkpoint:
    """How a run is kept.

    Parameters
    ----------
    folder : path
        Made if it does not exist. All ranks must see it. A second run at the same time is refused.
    every : float
        Seconds from the end of one checkpoint to the next; 0: after every iteration.
    resume : bool
        Go on from the last checkpoint of the same problem in the folder, if there is one. False: refuse a folder
        that holds any, unless torchrun has started the run again that they are of.
    stop : callable or None
        Called without arguments after every iteration; a number other than 0 (of a signal) ends the run with a last
        checkpoint and a ``RunStoppedError``.
    lock : FolderLock or None
        Of the folder, where it should outlast the fit. None: the fit has its own.
    """

    folder: str | os.PathLike[str]
    every: float = EVERY
    resume: bool = True
    stop: Callable[[], int] | None = None
    lock: FolderLock | None = None


class RunStoppedError(Exception):
    """A run was asked to end; the message says whether its last checkpoint could be written.

    Attributes
    ----------
    number : int
        What asked for it, as a rule a signal.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class Keeper:
    """The checkpoints of one run; all ranks make one together.

    Parameters
    ----------
    settings : Checkpoint
    problem : dict
        What JSON can hold of the problem: a run goes on only from a checkpoint with the same.
    n_rows : int
        This rank's samples.
    comm : Comm
    lock : FolderLock
        Of the folder. The keeper acquires it; its creator releases it.

    Attributes
    ----------
    found : Found or None
        The checkpoint to go on from.
    notes : dict
        Written with every checkpoint; those of the one found, to begin with.
    """

    def __init__(self, settings: Checkpoint, problem: Facts, n_rows: int, comm: Comm, lock: FolderLock) -> None:
        self._settings, self._problem, self._comm = settings, problem, comm
        self._folder = Path(settings.folder)
        own = lock.acquire(comm) and is_restart(comm)
        present = words(comm, together(comm, lambda: self._open(settings.resume or own)))[0]
        self._number = max(present, default=0)
        self._spoiled: list[int] = []
        self.found = self._find(present, n_rows)
        self.notes: Facts = {} if self.found is None else self.found.facts["notes"]
        self._last = time.monotonic()
        lock.write_owner()

    def _open(self, resume: bool) -> list[int]:
        """Make the folder ready and return the numbers of its checkpoints; rank 0 does this."""
        if self._comm.rank > 0:
            return []
        present = storage.numbers(self._folder)
        if present and not resume:
            raise ValueError(
                f"{self._folder} holds checkpoints of an earlier run; resume it (--resume), or name another folder"
            )
        storage.sweep(self._folder)
        return present

    def _find(self, present: list[int], n_rows: int) -> Found | None:
        """Return the newest whole checkpoint; a broken one is named and passed over."""
        damage = []
        for number in reversed(present):
            try:
                found = storage.read(self._folder, number, self._problem, n_rows, self._comm)
            except DamagedError as broken:
                damage.append(str(broken))
                self._spoiled.append(number)
                continue
            if damage and self._comm.rank == 0:
                warnings.warn(f"{'; '.join(damage)}; going on from {found.name}", stacklevel=2)
            return found
        if damage:
            raise CheckpointError(f"{'; '.join(damage)}; no other checkpoint is whole: remove the folder to start anew")
        return None

    def wants(self) -> tuple[int, int]:
        """Whether a checkpoint is due, by the clock of rank 0; and the number that asks the run to end, or 0."""
        due = self._comm.rank == 0 and time.monotonic() - self._last >= self._settings.every
        return int(due), 0 if self._settings.stop is None else int(self._settings.stop())

    def keep(self, facts: Facts, shared: Arrays, local: Arrays, stop: int) -> None:
        """Write a checkpoint; one that cannot be written does no harm to the run and to the one before."""
        self._number += 1
        facts = facts | {"notes": self.notes}
        trouble = storage.write(
            self._folder, self._number, self._problem, facts, shared, local, self._comm, self._spoiled
        )
        if stop:
            remedy = f"{trouble}; any earlier one is as it was" if trouble else f"checkpoint in {self._folder}"
            raise RunStoppedError(f"stopped; {remedy}", stop)
        if trouble and self._comm.rank == 0:
            warnings.warn(f"{trouble}; the run goes on, and any earlier one is as it was", stacklevel=2)
        self._last = time.monotonic()


def fingerprint(rows: NDArray[np.floating], comm: Comm) -> str:
    """Hash a matrix of which each rank has some rows; how they are split does not matter.

    Every entry is mixed with its place and all are added up, modulo 2⁶⁴. Good against mistakes, not against malice.

    Examples
    --------
    >>> from roadict.ranks.comm import SERIAL
    >>> first, second = fingerprint(np.eye(2), SERIAL), fingerprint(np.eye(2)[::-1], SERIAL)
    >>> first == fingerprint(np.eye(2), SERIAL), first == second
    (True, False)
    """
    n_columns = rows.shape[1]
    start = offset(comm, len(rows))
    added = np.zeros(1, np.uint64)
    for first in range(0, len(rows), DIGEST_ROWS):
        block: NDArray[Any] = np.ascontiguousarray(rows[first : first + DIGEST_ROWS]).reshape(-1)
        places = np.arange(block.size, dtype=np.uint64) + np.uint64((start + first) * n_columns)
        values = block.view(np.uint32 if block.itemsize == 4 else np.uint64).astype(np.uint64)
        added += _mixed(values ^ _mixed(places)).sum(dtype=np.uint64)
    return f"{int(comm.sum(added.view(np.int64)).view(np.uint64)[0]):016x}"


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64, by S. Vigna."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
