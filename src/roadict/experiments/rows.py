"""Rows in a file: one JSON line per finished trial, safe against kills, a full disk and concurrent runs."""

import codecs
import contextlib
import errno
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from roadict.wording import no_folder, path_problem

Row = dict[str, Any]
PACKED = ".jsonl.gz"
"""Ending of compressed rows; they are read, but not added to."""
_POLL_SECONDS = 0.02


class RowError(ValueError):
    """A row is refused; ``naming_lines`` names its place.

    Parameters
    ----------
    row : Row
    problem : str
        The field, its value and its bound.
    """

    def __init__(self, row: Row, problem: str) -> None:
        experiment = row["settings"]["experiment"]
        super().__init__(f"row {row['key']} of {experiment}: {problem}; remove it and run reproduce again")
        self.key, self.problem = row["key"], problem


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
    return [row for _, row in _numbered(path)]


def _numbered(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the numbers of lines, and their rows."""
    complete, newline, rest = _content(path).rpartition(b"\n")
    if rest.strip() and not newline:
        raise _incomplete(path, rest)
    for number, line in enumerate(complete.split(b"\n"), 1):
        if line.strip():
            yield number, _parse(path, number, line)


def _incomplete(path: Path, line: bytes) -> ValueError:
    """Make an error for a file that is one line without an end, as if its newlines had been lost."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line)  # which may end within a character
    except UnicodeDecodeError:
        return _not_text(path, 1)
    return ValueError(
        f"{path} is one line without a newline at its end, so it is incomplete; copy the file again, or remove it and "
        "run reproduce again"
    )


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
    rows = {row["key"]: row for path in _files(folder) for row in read_rows(path)}
    if not rows:
        raise ValueError(f"{folder} holds no rows (*.jsonl); run roadict reproduce NAME --out {folder} first")
    return [rows[key] for key in sorted(rows)]


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob(f"*{PACKED}")])


def read_folders(folders: Iterable[Path]) -> list[Row]:
    """Read the rows of several folders, as machines that shared the work wrote them, each key once."""
    rows: dict[str, Row] = {}
    for folder in folders:
        for row in read_folder(folder):
            rows.setdefault(row["key"], row)
    return [rows[key] for key in sorted(rows)]


@contextlib.contextmanager
def naming_lines(folders: Iterable[Path]) -> Iterator[None]:
    """Name file and line in errors about rows that ``read_folders`` has read from these folders."""
    try:
        yield
    except RowError as error:
        for folder in folders:
            places = [(path, at) for path in _files(folder) for at, row in _numbered(path) if row["key"] == error.key]
            if places:  # of lines with the same key, the last one counts
                raise _refusal(*places[-1], error.problem) from None
        raise


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
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _not_text(path, number) from None
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ValueError(f"{path}, line {number}, is not a row of roadict reproduce; remove that line")
    if isinstance(row.get("settings"), dict) and row["key"] != (key := _key(row["settings"])):
        problem = f"key is {json.dumps(row['key'])}, must be {json.dumps(key)}, the digest of the settings"
        raise _refusal(path, number, problem)
    return row


def _key(settings: Row) -> str:
    """Digest of all settings, as ``Trial.key`` computes it: rows of other code and plans, too, have their own in it."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


def _not_text(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, line {number}, is not UTF-8 text; save the file as UTF-8, or remove that line")


def _refusal(path: Path, number: int, problem: str) -> ValueError:
    packed = path.name.endswith(PACKED)
    remedy = "copy the file again" if packed else "remove that line and run reproduce again"
    return ValueError(f"{path}, line {number}: {problem}; {remedy}")


def unwritable(path: Path, failure: OSError) -> OSError:
    """Make a one-line error with the reason and the remedy, for rows, pictures and the page."""
    full = failure.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    remedy = "free some space, and run the same command again" if full else "choose another place with --out"
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
