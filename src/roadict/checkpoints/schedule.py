"""When and where the checkpoints of a run are written, and when the run should stop."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints import storage
from roadict.checkpoints.lock import FolderLock
from roadict.checkpoints.storage import Arrays, CheckpointError, DamagedError, LoadedCheckpoint, Metadata
from roadict.checks import warn_user
from roadict.progress.stages import ResumedShare
from roadict.ranks.collectives import allgather_json, counts, offset, on_all_ranks
from roadict.ranks.comm import Comm, is_restart

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

NOTED = "noted."
"""Prefix of the names of ``Checkpoints.arrays`` in files."""
EVERY = 60.0
"""Default seconds from one checkpoint to the next."""
DIGEST_ROWS = 4096


@dataclass(frozen=True)
class Checkpoint:
    """How a fit writes checkpoints: ``ROAD(checkpoint=Checkpoint(...))``.

    Parameters
    ----------
    folder : path
        Created if it does not exist; all ranks must have access to it. A second run at the same time is refused.
    every : float, default=60.0
        Seconds from the end of one checkpoint to the next; 0: after every iteration.
    resume : bool, default=True
        Resume from the last checkpoint of the same problem in the folder, if there is one; a checkpoint of another
        problem is refused. Those of a finished fit are taken up only by the same fit with the same integer as
        ``random_state``, and else removed: refits without a seed are new, and cross-validation can fit one part of
        the data after the other, but not in parallel (``n_jobs``). False: refuse a folder that holds checkpoints,
        unless torchrun has restarted the run that wrote them.
    stop : callable, default=None
        Called without arguments after every iteration; a nonzero number (of a signal) stops the run with a last
        checkpoint and a ``RunStoppedError``.
    lock : FolderLock, default=None
        Lock of the folder, if it should outlast the fit. None: the fit acquires its own.
    share : ResumedShare, default=None
        Share of the fit that is done, as a program shows it; saved with every checkpoint, for when it resumes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from roadict import ROAD, Checkpoint
    >>> from roadict.synthetic import planted
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> settings = Checkpoint(folder, every=0)
    >>> model = ROAD(6, checkpoint=settings, max_iter=20, tol=0, n_init=1, random_state=0)
    >>> _ = model.fit(planted(60, 6, 8, sparsity=2, random_state=0).data)
    >>> sorted(path.name for path in folder.glob("*.json"))
    ['checkpoint-000019.json', 'checkpoint-000020.json']
    """

    folder: str | os.PathLike[str]
    every: float = EVERY
    resume: bool = True
    stop: Callable[[], int] | None = None
    lock: FolderLock | None = None
    share: ResumedShare | None = None


class RunStoppedError(Exception):
    """A run was asked to stop; the message reports whether its last checkpoint could be written.

    Attributes
    ----------
    number : int
        Number that asked for the stop, usually of a signal.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class Checkpoints:
    """The checkpoints of one run; all ranks construct it at the same time.

    Parameters
    ----------
    settings : Checkpoint
    problem : dict
        JSON-serializable description of the problem: a run resumes only from a checkpoint of the same problem.
    n_rows : int
        Number of samples on this rank.
    comm : Comm
    lock : FolderLock
        Lock of the folder. It is acquired here; its creator releases it.

    Attributes
    ----------
    notes : dict
    arrays : dict of str to array
        JSON values, and arrays that are the same on every rank, written with every checkpoint; initially those of the
        loaded one.
    """

    def __init__(self, settings: Checkpoint, problem: Metadata, n_rows: int, comm: Comm, lock: FolderLock) -> None:
        self._settings, self._problem, self._comm = settings, problem, comm
        self._folder = Path(settings.folder)
        own = lock.acquire(comm) and is_restart(comm)
        present = allgather_json(comm, on_all_ranks(comm, lambda: self._open(settings.resume or own)))[0]
        self._number = max(present, default=0)
        self._damaged: list[int] = []
        self._loaded = self._load(present, n_rows)
        self.notes: Metadata = {} if self._loaded is None else self._loaded.metadata["notes"]
        self.arrays: Arrays = {} if self._loaded is None else _noted(self._loaded.shared)
        self._last = time.monotonic()
        lock.write_owner()

    def take_loaded(self) -> LoadedCheckpoint | None:
        """Return the checkpoint to resume from, if there is one, and forget it: its files can then be removed."""
        loaded, self._loaded = self._loaded, None
        return loaded

    def _open(self, resume: bool) -> list[int]:
        """Clean up the folder and return the numbers of its checkpoints; rank 0 acts."""
        if self._comm.rank > 0:
            return []
        present = storage.numbers(self._folder)
        if resume and storage.is_finished(self._folder) and not self._would_repeat(present[-1]):
            storage.clear(self._folder)
            present = []
        if present and not resume:
            raise ValueError(
                f"{self._folder} holds checkpoints of an earlier run; resume it (--resume), or choose another folder"
            )
        storage.remove_leftovers(self._folder)
        return present

    def _would_repeat(self, last: int) -> bool:
        """Whether the fit that wrote the last checkpoint is this one: of the same problem, and with the same seed."""
        return self._problem.get("random_state") is not None and storage.is_of_problem(
            self._folder, last, self._problem
        )

    def finish(self) -> None:
        """Note that the fit is finished: only the same fit with the same seed may begin with its checkpoints."""
        if self._comm.rank == 0:
            storage.mark_finished(self._folder)

    def _load(self, present: list[int], n_rows: int) -> LoadedCheckpoint | None:
        """Return the newest intact checkpoint; damaged ones are reported and skipped."""
        damage = []
        for number in reversed(present):
            try:
                loaded = storage.read(self._folder, number, self._problem, n_rows, self._comm)
            except DamagedError as error:
                damage.append(str(error))
                self._damaged.append(number)
                continue
            if damage and self._comm.rank == 0:
                warn_user(f"{'; '.join(damage)}; resuming from {loaded.name}")
            return loaded
        if damage:
            raise CheckpointError(f"{'; '.join(damage)}; no checkpoint is intact: remove the folder to start over")
        return None

    def wants(self) -> tuple[int, int]:
        """Whether a checkpoint is due, by the clock of rank 0; and the number that asks the run to stop, or 0."""
        due = self._comm.rank == 0 and time.monotonic() - self._last >= self._settings.every
        return int(due), 0 if self._settings.stop is None else int(self._settings.stop())

    def save(self, metadata: Metadata, shared: Arrays, local: Arrays, stop: int) -> None:
        """Write a checkpoint; a failed write harms neither the run nor earlier checkpoints."""
        self._number += 1
        metadata = metadata | {"notes": self.notes}
        if self._settings.share is not None:
            metadata["share"] = self._settings.share.done
        shared = shared | {f"{NOTED}{name}": array for name, array in self.arrays.items()}
        error = storage.write(
            self._folder, self._number, self._problem, metadata, shared, local, self._comm, self._damaged
        )
        if stop:
            outcome = f"{error}; earlier checkpoints are unchanged" if error else f"checkpoint in {self._folder}"
            raise RunStoppedError(f"stopped; {outcome}", stop)
        if error and self._comm.rank == 0:
            warn_user(f"{error}; the run continues, and earlier checkpoints are unchanged")
        self._last = time.monotonic()


def _noted(shared: Arrays) -> Arrays:
    """Return copies: the arrays of a checkpoint map its files."""
    noted = {name: array for name, array in shared.items() if name.startswith(NOTED)}
    return {name.removeprefix(NOTED): np.array(array) for name, array in noted.items()}


@contextmanager
def open_checkpoints(
    checkpoint: "str | os.PathLike[str] | Checkpoint | None", problem: Metadata, data: Array, observed: Mask, comm: Comm
) -> Iterator[Checkpoints | None]:
    """Open the checkpoints of a fit, if it has any; the fit owns their folder within the block.

    Parameters
    ----------
    checkpoint : path, Checkpoint or None
        As for ``ROAD``.
    problem : dict
        Description of the fit, apart from its data.
    data, observed
        This rank's, as passed by the user.
    comm : Comm
    """
    if checkpoint is None:
        yield None
        return
    settings = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    rows = data if observed is None else np.where(observed, data, np.nan).astype(data.dtype)
    problem = problem | {
        "n_samples": sum(counts(comm, len(data))),
        "n_features": data.shape[1],
        "dtype": str(data.dtype),
        "data": fingerprint(rows, comm),
    }
    if settings.lock is not None:
        yield Checkpoints(settings, problem, len(data), comm, settings.lock)
        return
    with FolderLock(settings.folder) as lock:
        checkpoints = Checkpoints(settings, problem, len(data), comm, lock)
        yield checkpoints
        checkpoints.finish()


def fingerprint(rows: NDArray[np.floating], comm: Comm) -> str:
    """Hash a matrix whose rows are distributed over ranks; how they are split does not matter.

    Every entry is mixed with its position and all are summed modulo 2⁶⁴: protects from mistakes, not from attacks.

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
        positions = np.arange(block.size, dtype=np.uint64) + np.uint64((start + first) * n_columns)
        values = block.view(np.uint32 if block.itemsize == 4 else np.uint64).astype(np.uint64)
        added += _mixed(values ^ _mixed(positions)).sum(dtype=np.uint64)
    return f"{int(comm.sum(added.view(np.int64)).view(np.uint64)[0]):016x}"


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64, by S. Vigna."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
