"""Where messages and progress are written: standard error, and above the bar while there is one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roadict.streams import GuardedStream

_above: list[Callable[[str], None]] = []
"""Writers of lines above the bars on the terminal, the current one last."""


def write(text: str) -> None:
    """Write to standard error at once."""
    stream = GuardedStream(sys.stderr)
    stream.write(text)
    stream.flush()


def say(line: str) -> None:
    """Write one line: above the bar on the terminal, if there is one."""
    if _above:
        _above[-1](line)
    else:
        write(f"{line}\n")


@contextmanager
def lines_above(writer: Callable[[str], None]) -> Iterator[None]:
    """Let ``say`` use this writer inside the block."""
    _above.append(writer)
    try:
        yield
    finally:
        _above.remove(writer)
