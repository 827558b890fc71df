"""Rows in a file: one JSON line per finished trial, safe against kill, a full disk and other runs."""

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

Row = dict[str, Any]
_LOCK_PAUSE = 0.02


def read_rows(path: Path) -> list[Row]:
    r"""Read the rows of a file; a last line without its end was cut short by a kill and is left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "noisy.jsonl"
    >>> _ = path.write_text('{"key": "a"}\n{"key": "b')
    >>> read_rows(path)
    [{'key': 'a'}]
    """
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [_parsed(path, number, line) for number, line in enumerate(whole.split(b"\n"), 1) if line.strip()]


def read_folder(folder: Path) -> list[Row]:
    """Read the rows of all experiments in a folder, each key once, in the order of their keys."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: No such file or directory; name the folder that reproduce wrote to")
    rows = {row["key"]: row for path in sorted(folder.glob("*.jsonl")) for row in read_rows(path)}
    if not rows:
        raise ValueError(f"{folder} holds no rows (*.jsonl); run roadict reproduce NAME --out {folder} first")
    return [rows[key] for key in sorted(rows)]


def _parsed(path: Path, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ValueError(f"{path}, line {number}, is not a row of roadict reproduce; remove that line")
    return row


def unwritable(path: Path, failure: OSError) -> OSError:
    """Say in one line why a file cannot be written, and what to do."""
    full = failure.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    remedy = "free some space: the same command then goes on" if full else "choose another place with --out"
    return OSError(f"{path} cannot be written ({failure.strerror}); {remedy}")


class RowFile:
    """A file that rows are added to, by this run and perhaps others at the same time.

    A row is one ``write`` to a file opened for appending, made while holding a lock and flushed to disk. The system
    releases the lock when a process ends, however that comes about. Whoever holds it first cuts off what a killed run
    left of a line, so a reader never meets half a row in the middle.

    Parameters
    ----------
    path : Path
        Made, with its folder, if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # A soft lock, which filelock falls back to, would outlive a killed process.
        self._lock = FileLock(path.with_suffix(".lock"), poll_interval=_LOCK_PAUSE, fallback_to_soft=False)
        self._seen = self._lines = 0
        self._keys: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self._look()
        except OSError as failure:
            raise unwritable(path, failure) from None

    def known(self) -> set[str]:
        """Keys of the rows, those of other runs included."""
        with self._lock:
            self._look()
        return set(self._keys)

    def append(self, row: Row) -> bool:
        """Add a row, unless another run has added it meanwhile; returns whether it did."""
        line = json.dumps(row, sort_keys=True, allow_nan=False, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock:
                self._look()
                if row["key"] in self._keys:
                    return False
                self._write(line)
        except OSError as failure:
            raise unwritable(self.path, failure) from None
        self._keys.add(row["key"])
        return True

    def _write(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            try:
                if os.write(descriptor, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self._seen)
                raise
        finally:
            os.close(descriptor)
        self._seen += len(line)

    def _look(self) -> None:
        """Learn of the rows added since the last look, and cut off half a line; the lock must be held."""
        with open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() < self._seen:  # somebody has shortened the file
                self._seen, self._lines, self._keys = 0, 0, set()
            file.seek(self._seen)
            text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            if len(whole) < len(text):
                file.truncate(self._seen + len(whole))
        for line in whole.split(b"\n")[:-1]:
            self._lines += 1
            if line.strip():
                self._keys.add(_parsed(self.path, self._lines, line)["key"])
        self._seen += len(whole)
