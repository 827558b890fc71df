"""Whose a folder of checkpoints is: one run at a time, and a run that torchrun starts again knows its own."""

import contextlib
import errno
import json
import os
import socket
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

from roadict.ranks.collectives import together, words
from roadict.ranks.comm import Comm

NAME = ".roadict-run"
"""File in the folder: locked while a run lasts, with words on who that is."""
LONGEST = 1 << 20
"""Bytes that are read of it."""
TAKEN = (errno.EAGAIN, errno.EACCES)
"""What systems say of a file that another process has locked."""


class Claim:
    """The hold of one run on a folder: ``take`` begins it, and leaving the context ends it.

    The system frees the lock however the process ends. The file is removed when the run has ended well, and stays
    where it has not: a run that torchrun starts again finds there that the folder is its own.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / NAME
        self._descriptor: int | None = None
        self._starters: list[Any] = []

    def take(self, comm: Comm) -> bool:
        """Make the folder and hold it; returns whether the last run in it was started by the same torchrun.

        All ranks call it, rank 0 acts.

        Raises
        ------
        ValueError
            Where another run holds the folder, or it cannot be used.
        """
        self._starters = words(comm, _starter())
        before = together(comm, self._hold if comm.rank == 0 else dict)
        return bool(words(comm, any(starter in before.get("starters", ()) for starter in self._starters))[0])

    def sign(self) -> None:
        """Write down who holds the folder, once nothing speaks against the run."""
        if self._descriptor is not None:
            facts = {"process": os.getpid(), "host": socket.gethostname(), "starters": self._starters}
            with contextlib.suppress(OSError):  # a full disk: without it a restart has to be told to --resume
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, json.dumps(facts).encode())

    def __enter__(self) -> "Claim":
        """Do nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the folder go."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            if kind is None or os.fstat(self._descriptor).st_size == 0:
                self._path.unlink()  # while it is locked, lest it be another's by then
        os.close(self._descriptor)
        self._descriptor = None

    def _hold(self) -> dict[str, Any]:
        """Lock the file, and return what the last run has left in it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while self._descriptor is None:
                self._descriptor = _locked(self._path)
        except OSError as failure:
            raise ValueError(f"checkpoint folder {self._path.parent} cannot be used ({failure.strerror})") from None
        return _facts(self._descriptor)


def _locked(path: Path) -> int | None:
    """Open and lock a file; None where its owner has just removed it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(descriptor, path.parent)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failure:
        if failure.errno not in TAKEN:
            warnings.warn(
                f"the file system of {folder} has no locks ({failure.strerror}): see that no other run uses the folder",
                stacklevel=2,
            )
            return
        facts = _facts(descriptor)
        who = f"process {facts['process']} on {facts['host']}" if "process" in facts else "another process"
        raise ValueError(
            f"checkpoint folder {folder} is in use by {who}; wait for that run or end it (processes outlive a "
            "torchrun that was killed), or name another folder"
        ) from None


def _facts(descriptor: int) -> dict[str, Any]:
    """Return what a run has written of itself; nothing where that is empty or damaged."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        facts = json.loads(os.read(descriptor, LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(facts, dict) and {"process", "host"} <= facts.keys() and isinstance(facts.get("starters"), list)
    return facts if whole else {}


def _starter() -> list[Any]:
    """Name the process that has started this one: the machine, its number, and when it began, as numbers come again."""
    parent = os.getppid()
    try:
        began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # not Linux
        began = ""
    return [socket.gethostname(), parent, began]
