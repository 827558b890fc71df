"""Rows in a file: one JSON line per finished trial, safe against kills, a full disk and concurrent runs."""

import contextlib
import errno
import gzip
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from roadict.wording import no_folder, path_problem

Row = dict[str, Any]
PACKED = ".jsonl.gz"
"""Ending of compressed rows; they are read, but not added to."""
_POLL_SECONDS = 0.02


def read_rows(path: Path) -> list[Row]:
    r"""Read the rows of a file; an incomplete last line, left by a kill, is skipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "noisy.jsonl"
    >>> _ = path.write_text('{"key": "a"}\n{"key": "b')
    >>> read_rows(path)
    [{'key': 'a'}]
    """
    complete, _, _ = _content(path).rpartition(b"\n")
    return [_parse(path, number, line) for number, line in enumerate(complete.split(b"\n"), 1) if line.strip()]


def _content(path: Path) -> bytes:
    if not path.name.endswith(PACKED):
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"{path} is damaged: it cannot be decompressed; copy it again") from None


def read_folder(folder: Path) -> list[Row]:
    """Read the rows of all experiments in a folder, each key once, in the order of their keys."""
    if not folder.is_dir():
        raise ValueError(f"{no_folder(folder)}; name the folder that reproduce wrote to")
    files = sorted([*folder.glob("*.jsonl"), *folder.glob(f"*{PACKED}")])
    rows = {row["key"]: row for path in files for row in read_rows(path)}
    if not rows:
        raise ValueError(f"{folder} holds no rows (*.jsonl); run roadict reproduce NAME --out {folder} first")
    return [rows[key] for key in sorted(rows)]


def read_folders(folders: Iterable[Path]) -> list[Row]:
    """Read the rows of several folders, as machines that shared the work wrote them, each key once."""
    rows: dict[str, Row] = {}
    for folder in folders:
        for row in read_folder(folder):
            rows.setdefault(row["key"], row)
    return [rows[key] for key in sorted(rows)]


def pack(rows: Iterable[Row]) -> bytes:
    """Rows as a compressed file; the same rows give the same bytes."""
    lines = (json.dumps(row, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n" for row in rows)
    return gzip.compress("".join(lines).encode(), mtime=0)


def code_of(row: Row) -> str:
    """Which code made a row: the digest of its sources, or the version in rows older than that.

    Examples
    --------
    >>> code_of({"settings": {"sources": "1f2e"}}), code_of({"settings": {"roadict": "0.1.0"}})
    ('1f2e', 'roadict 0.1.0')
    """
    settings = row["settings"]
    return str(settings.get("sources") or f"roadict {settings.get('roadict', 'of an unknown version')}")


def _parse(path: Path, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ValueError(f"{path}, line {number}, is not a row of roadict reproduce; remove that line")
    return row


def unwritable(path: Path, failure: OSError) -> OSError:
    """Make a one-line error with the reason and the remedy."""
    full = failure.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    remedy = "free some space: the same command then resumes" if full else "choose another folder with --out"
    if isinstance(failure, FileExistsError | NotADirectoryError | PermissionError):
        return OSError(f"{path_problem(path.parent, failure)}; {remedy}")
    return OSError(f"{path} cannot be written ({failure.strerror}); {remedy}")


class RowFile:
    """A file that rows are appended to, by this run and perhaps others at the same time.

    A row is one ``write`` to a file opened for appending, made while holding a lock and flushed to disk. The system
    releases the lock even if the process is killed. The next holder truncates an incomplete line of a killed run, so
    incomplete rows never stay in the middle.

    Parameters
    ----------
    path : Path
        Created, with its folder, if missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # A soft lock, filelock's fallback, would outlive a killed process.
        self._lock = FileLock(path.with_suffix(".lock"), poll_interval=_POLL_SECONDS, fallback_to_soft=False)
        self._end = self._lines = 0
        self._keys: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self._read_new()
        except OSError as failure:
            raise unwritable(path, failure) from None

    def read_keys(self) -> set[str]:
        """Keys of the rows, including those of other runs."""
        with self._lock:
            self._read_new()
        return set(self._keys)

    def append(self, row: Row) -> bool:
        """Append a row, unless another run has appended it; returns whether it did."""
        line = json.dumps(row, sort_keys=True, allow_nan=False, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock:
                self._read_new()
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
                    os.ftruncate(descriptor, self._end)
                raise
        finally:
            os.close(descriptor)
        self._end += len(line)

    def _read_new(self) -> None:
        """Read the rows added since the last call, and truncate an incomplete line; the lock must be held."""
        with open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() < self._end:  # another process has truncated the file
                self._end, self._lines, self._keys = 0, 0, set()
            file.seek(self._end)
            text = file.read()
            complete = text[: text.rfind(b"\n") + 1]
            if len(complete) < len(text):
                file.truncate(self._end + len(complete))
        for line in complete.split(b"\n")[:-1]:
            self._lines += 1
            if line.strip():
                self._keys.add(_parse(self.path, self._lines, line)["key"])
        self._end += len(complete)
