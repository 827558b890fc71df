"""Exclusive ownership of a checkpoint folder: one run at a time; one that torchrun restarts recognizes its own."""

import contextlib
import errno
import json
import os
import socket
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from roadict.files.atomic import atomic_write
from roadict.ranks.collectives import together, words
from roadict.ranks.comm import Comm

NAME = ".roadict-run"
"""File in the folder that names its owner; the lock itself is a second file, which Windows lets nobody else read."""
LONGEST = 1 << 20
"""Bytes that are read of it."""
RETRY = 0.2
"""Seconds to retry: the file may be removed by its last owner between opening and locking it."""
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""What file systems without locks answer."""


class FolderLock:
    """The lock of one run on a folder: ``acquire`` takes it, and leaving the context releases it.

    The system releases the lock however the process ends. The file that names the owner is removed after a run that
    ended well, and stays otherwise: a run that torchrun restarts finds there that the folder is its own.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._owner = Path(folder) / NAME
        self._path = Path(f"{self._owner}.lock")
        self._lock: FileLock | None = None
        self._starters: list[Any] = []

    def acquire(self, comm: Comm) -> bool:
        """Make the folder and lock it; returns whether the last run in it was started by the same torchrun.

        All ranks call it, rank 0 acts.

        Raises
        ------
        ValueError
            Where another run holds the lock, or the folder cannot be used.
        """
        self._starters = words(comm, _starter())
        before = together(comm, self._acquire if comm.rank == 0 else dict)
        return bool(words(comm, any(starter in before.get("starters", ()) for starter in self._starters))[0])

    def write_owner(self) -> None:
        """Write down who owns the folder, once nothing speaks against the run."""
        if self._lock is not None:
            facts = {"process": os.getpid(), "host": socket.gethostname(), "starters": self._starters}
            # A full disk: without the file a restart has to be given --resume.
            with contextlib.suppress(OSError), atomic_write(self._owner) as file:
                file.write(json.dumps(facts).encode())

    def __enter__(self) -> "FolderLock":
        """Do nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the folder."""
        if self._lock is None:
            return
        for path in (self._owner, self._path) if kind is None else (self._path,):
            with contextlib.suppress(OSError):  # Windows removes a lock file when it is released, and not before
                path.unlink(missing_ok=True)  # while it is locked, lest it be another's by then
        self._lock.release()
        self._lock = None

    def _acquire(self) -> dict[str, Any]:
        """Lock the folder, and return what the last run has left in it."""
        folder = self._owner.parent
        # A soft lock, which filelock falls back to, would outlive a killed process.
        lock = FileLock(self._path, timeout=RETRY, thread_local=False, fallback_to_soft=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            facts = _facts(self._owner)
            who = f"process {facts['process']} on {facts['host']}" if facts else "another process"
            raise ValueError(
                f"checkpoint folder {folder} is in use by {who}; wait for that run or end it (processes outlive a "
                "torchrun that was killed), or name another folder"
            ) from None
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise ValueError(f"checkpoint folder {folder} cannot be used ({failure.strerror or failure})") from None
            warnings.warn(
                f"the file system of {folder} has no locks ({failure.strerror}): see that no other run uses the folder",
                stacklevel=2,
            )
        self._lock = lock
        return _facts(self._owner)


def _facts(path: Path) -> dict[str, Any]:
    """Return what a run has written of itself; nothing where that is missing or damaged."""
    try:
        with path.open("rb") as file:
            facts = json.loads(file.read(LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(facts, dict) and {"process", "host"} <= facts.keys() and isinstance(facts.get("starters"), list)
    return facts if whole else {}


def _starter() -> list[Any]:
    """Name the process that started this one: host, process id, and start time, as process ids are reused."""
    parent = os.getppid()
    try:
        began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # not Linux
        began = ""
    return [socket.gethostname(), parent, began]
