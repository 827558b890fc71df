"""Exclusive ownership of a checkpoint folder: one run at a time; a run that torchrun restarts recognizes its own."""

import contextlib
import errno
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from roadict.checks import warn_user
from roadict.files.atomic import atomic_write
from roadict.ranks.collectives import allgather_json, on_all_ranks
from roadict.ranks.comm import Comm
from roadict.wording import path_problem

OWNER_FILE = ".roadict-run"
"""File that names the folder's owner; the lock is a second file, which no other process can read on Windows."""
MAX_OWNER_BYTES = 1 << 20
"""Bytes read from it at most."""
RETRY = 0.2
"""Seconds to retry: its last owner may remove the file between our opening and locking it."""
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""Error codes of file systems without locks."""


class FolderLock:
    """The lock of one run on a folder: ``acquire`` acquires it, and leaving the context releases it.

    The operating system releases the lock however the process ends. The owner file is removed after a successful run
    and stays otherwise: a run that torchrun restarts reads there that the folder is its own.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._owner_file = Path(folder) / OWNER_FILE
        self._lock_file = Path(f"{self._owner_file}.lock")
        self._lock: FileLock | None = None
        self._launchers: list[Any] = []

    def acquire(self, comm: Comm) -> bool:
        """Create the folder and lock it; returns whether the last run in it was started by the same torchrun.

        All ranks call it, rank 0 acts.

        Raises
        ------
        ValueError
            If another run holds the lock, or the folder cannot be used.
        """
        self._launchers = allgather_json(comm, _launcher())
        before = on_all_ranks(comm, self._acquire if comm.rank == 0 else dict).get("starters", ())
        return bool(allgather_json(comm, any(launcher in before for launcher in self._launchers))[0])

    def write_owner(self) -> None:
        """Write the owner file, once the run is accepted."""
        if self._lock is not None:
            owner = {"process": os.getpid(), "host": socket.gethostname(), "starters": self._launchers}
            # On a full disk: without the file a restart needs --resume.
            with contextlib.suppress(OSError), atomic_write(self._owner_file) as file:
                file.write(json.dumps(owner).encode())

    def __enter__(self) -> "FolderLock":
        """Do nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""
        if self._lock is None:
            return
        for path in (self._owner_file, self._lock_file) if kind is None else (self._lock_file,):
            with contextlib.suppress(OSError):  # Windows can remove the lock file only once it is released
                path.unlink(missing_ok=True)  # while it is locked: afterwards it may be another run's
        self._lock.release()
        self._lock = None

    def _acquire(self) -> dict[str, Any]:
        """Lock the folder, and return the owner file that the last run left there."""
        folder = self._owner_file.parent
        # A soft lock, which filelock falls back to, would outlive a killed process.
        lock = FileLock(self._lock_file, timeout=RETRY, thread_local=False, fallback_to_soft=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            owner = _read_owner(self._owner_file)
            name = f"process {owner['process']} on {owner['host']}" if owner else "another process"
            raise ValueError(
                f"checkpoint folder {folder} is in use by {name}; wait for that run or stop it (processes outlive a "
                "torchrun that was killed), or choose another folder; of fits in parallel, as in a cross-validation, "
                "only one can have checkpoints there"
            ) from None
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise ValueError(f"{path_problem(folder, failure)}; choose another folder for checkpoints") from None
            warn_user(
                f"the file system of {folder} has no locks ({failure.strerror}): make sure that no other run uses it"
            )
        self._lock = lock
        return _read_owner(self._owner_file)


def _read_owner(path: Path) -> dict[str, Any]:
    """Return the content of an owner file; {} if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            owner = json.loads(file.read(MAX_OWNER_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    valid = isinstance(owner, dict) and {"process", "host"} <= owner.keys() and isinstance(owner.get("starters"), list)
    return owner if valid else {}


def _launcher() -> list[Any]:
    """Identify the process that started this one: host, process id, and start time, as process ids are reused."""
    parent = os.getppid()
    try:
        began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # not Linux
        began = ""
    return [socket.gethostname(), parent, began]
