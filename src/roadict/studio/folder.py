"""A folder for the files of one studio, which goes with it; at the latest when the next one starts."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PREFIX = "roadict-studio-"
_SIGN = "in-use"
"""A file that a studio holds for as long as it lives; the system lets go of it, however the studio ends."""


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Give a temporary folder, after removing those of studios that were killed."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        if os.name == "nt":  # files that are open cannot be renamed or removed there, so nothing is cleared up
            yield folder
            return
        with open(folder / "new", "w", encoding="utf-8") as sign:
            _hold(sign)
            os.rename(sign.name, folder / _SIGN)  # so that nobody sees a sign that is not held yet
            _remove_those_left_behind()
            yield folder


def _remove_those_left_behind() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # What a living studio holds, or is somebody else's, cannot be had.
        with contextlib.suppress(OSError), open(folder / _SIGN, "r+", encoding="utf-8") as sign:
            _hold(sign)
            shutil.rmtree(folder)


def _hold(sign: IO[str]) -> None:
    """Take the file for this process alone; OSError where another has it."""
    import fcntl

    fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
