"""A folder for the files of one studio, deleted when it stops, or at the latest when the next one starts."""

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

PREFIX = "roadict-studio-"


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Create a temporary folder, after removing those of killed studios."""
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"
    with _locked(folder):  # before it exists, so that no other studio removes it as abandoned
        _remove_abandoned()
        folder.mkdir(mode=0o700)
        yield folder


def _remove_abandoned() -> None:
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*.lock"):
        # OSError: a running studio holds the lock, or it is another user's.
        with contextlib.suppress(OSError), _locked(lock.with_suffix(""), timeout=0):
            pass


@contextlib.contextmanager
def _locked(folder: Path, timeout: float = -1) -> Iterator[None]:
    """Hold the lock of a folder, which the system releases even if this process is killed; then remove both."""
    lock = folder.with_suffix(".lock")
    with FileLock(lock, timeout=timeout, fallback_to_soft=False):
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():  # else the next studio tries again
                with contextlib.suppress(OSError):  # Windows removes it on release
                    lock.unlink()
