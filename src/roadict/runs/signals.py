"""Ctrl-C and SIGTERM as requests that work hears between two steps."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of the signal."""


class WorkStoppedError(Exception):
    """Ctrl-C or SIGTERM in a command that keeps what it has done; says what, and how to go on."""

    def __init__(self, message: str, code: int = INTERRUPTED) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def stop_requests(patience: float) -> Iterator[Callable[[], int]]:
    """Note the first Ctrl-C or SIGTERM; the second ends the process at once.

    Parameters
    ----------
    patience : float
        Seconds for which a second one counts as the first: torchrun passes on what the terminal has already sent.

    Yields
    ------
    callable
        Returns the number of the signal, 0 if there was none.
    """
    asked: list[tuple[int, float]] = []

    def note(number: int, frame: object) -> None:
        if not asked:
            asked.append((number, time.monotonic()))
        elif time.monotonic() - asked[0][1] >= patience:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked[0][0] if asked else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
