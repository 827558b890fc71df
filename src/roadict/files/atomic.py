"""Atomic writes: a file is written completely or not at all."""

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` only if the block succeeds.

    The bytes go to a temporary file in the same folder, are flushed to disk, and are renamed to `path` in
    one step. If anything fails, the temporary file is removed and an existing `path` is unchanged.
    New files get the usual permissions (0666 less the umask), an existing file retains its own, and a
    symbolic link stays a link. Devices and pipes, which cannot be replaced, are written directly.

    Parameters
    ----------
    path : str or path-like
        The file to write, taken literally: no suffix is added.

    Yields
    ------
    BinaryIO
        Open for writing; do not close it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.bin"
    >>> with atomic_write(target) as file:
    ...     _ = file.write(b"complete")
    >>> target.read_bytes()
    b'complete'
    """
    target = Path(os.path.realpath(path))
    mode = _existing_mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            yield file
        return
    # A short name: a long target name plus a suffix may exceed the file system's limit.
    temporary = target.parent / f".roadict-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename in (None, os.fspath(temporary)):
            error.filename = os.fspath(path)  # report a full disk with the name that the user knows
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


class RescuedError(ValueError):
    """A file was written elsewhere than asked; the message names the place."""


def write_or_rescue(write: Callable[[Path], None], path: Path) -> None:
    """Write the result of long work; if that fails, write it to another folder and raise ``RescuedError``.

    Parameters
    ----------
    write : callable
        Called with the file to write; raises OSError if it cannot.
    path : Path

    Raises
    ------
    RescuedError
    OSError
        If nothing could be written anywhere.
    """
    try:
        write(path)
    except OSError as failure:
        for folder in (tempfile.gettempdir, Path.home, Path.cwd):
            with contextlib.suppress(OSError, RuntimeError):  # no folder for files, a user without a home
                other = Path(folder(), f"roadict-{secrets.token_hex(4)}-{path.name}")
                write(other)
                reason = failure.strerror or failure
                raise RescuedError(f"{path} cannot be written ({reason}); the result is in {other}, move it") from None
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, where the system supports it."""
    with contextlib.suppress(OSError):  # Windows cannot open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _existing_mode(target: Path) -> int | None:
    """Return the mode of the file to replace, None if there is none; refuse folders and protected files."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", str(target))
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    return mode
