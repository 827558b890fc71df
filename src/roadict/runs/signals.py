"""Ctrl-C, SIGTERM and SIGHUP as stop requests, polled between two steps."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 plus the number of the signal."""


class WorkStoppedError(Exception):
    """Work stopped by Ctrl-C or SIGTERM; the message says what was saved and how to resume."""

    def __init__(self, message: str, code: int = INTERRUPTED) -> None:
        super().__init__(message)
        self.code = code


def hang_up() -> tuple[signal.Signals, ...]:
    """Return SIGHUP, which a closed terminal sends, unless the system has none or nohup ignores it."""
    number = getattr(signal, "SIGHUP", None)
    return () if number is None or signal.getsignal(number) is not signal.SIG_DFL else (number,)


@contextmanager
def stop_requests(patience: float) -> Iterator[Callable[[], int]]:
    """Record the first Ctrl-C, SIGTERM or SIGHUP; the second ends the process at once.

    Parameters
    ----------
    patience : float
        Seconds within which a second signal is ignored: torchrun forwards what the terminal has already sent.

    Yields
    ------
    callable
        Returns the number of the signal, 0 if there was none.
    """
    received: list[tuple[int, float]] = []

    def handle(number: int, frame: object) -> None:
        if not received:
            received.append((number, time.monotonic()))
        elif time.monotonic() - received[0][1] >= patience:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, *hang_up())
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield lambda: received[0][0] if received else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
