"""Ctrl-C, SIGTERM and SIGHUP as stop requests, polled between two steps."""

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 plus the number of the signal."""
IMPORTS = "<frozen importlib"
"""Start of the file names of frames that import a module."""
PATIENCE = 0.05
"""Seconds after which a postponed signal is tried again."""


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


def postponed(number: int, frame: FrameType | None, within: str = IMPORTS) -> bool:
    """Send a signal again a little later, if one of the frames that it interrupts is of such a file.

    Parameters
    ----------
    number : int
        The signal.
    frame : frame
        The frame that it interrupts.
    within : str
        Part of a file name.

    Returns
    -------
    bool
        Whether it is sent again; else it can be handled now.
    """
    while frame is not None and within not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        return False
    again = threading.Timer(PATIENCE, _thread.interrupt_main, (number,))
    again.daemon = True
    again.start()
    return True


def interrupted(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C by raising, but not within an import: there it may become any other exception, or get lost."""
    if not postponed(number, frame):
        raise KeyboardInterrupt


class Interrupt:
    """Ctrl-C as a request to end with the best so far.

    Parameters
    ----------
    notice : str
        Line that answers the request on standard error; "": none.

    Attributes
    ----------
    polled : bool
        Whether there is something to keep: a run has asked for requests, after its first iteration.
    requested : bool
        Whether to end with the best so far.
    heeded : bool
        Whether a run has ended for it; a result that was complete is not marked as interrupted.
    discarded : bool
        Whether to end with nothing.
    """

    def __init__(self, notice: str) -> None:
        self._notice = notice
        self.polled = self.requested = self.heeded = self.discarded = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Record a first Ctrl-C, or raise if there is nothing to keep, as at the second; the next ends the process."""
        if self.polled and not self.requested:
            self.requested = True
            if self._notice:
                with suppress(OSError):  # print may be at work already, and cannot be called again
                    os.write(2, f"\n{self._notice}\n".encode())
            return
        if postponed(number, frame):
            return
        self.discarded = True
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt


_current: list[Interrupt] = []
"""At most one, as a process has one handler of Ctrl-C. Programs set it; the library only polls."""


def stop_requested() -> bool:
    """Whether Ctrl-C has asked to end with the best so far; called when there is something to keep."""
    for interrupt in _current:
        if interrupt.discarded:  # some callbacks, of compilers too, swallow exceptions
            raise KeyboardInterrupt
        interrupt.polled = True
        interrupt.heeded = interrupt.requested
        return interrupt.requested
    return False


@contextmanager
def kept_at_interrupt(notice: str = "") -> Iterator[Interrupt]:
    """Let the first Ctrl-C end a fit in this block with its best so far, once there is one; the second raises.

    Where Ctrl-C is ignored or handled otherwise, and outside the main thread, nothing changes.

    Parameters
    ----------
    notice : str
        As for ``Interrupt``.
    """
    interrupt = Interrupt(notice)
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not ours or before not in (signal.default_int_handler, interrupted):
        yield interrupt
        return
    _current.append(interrupt)
    signal.signal(signal.SIGINT, interrupt.handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
        _current.remove(interrupt)
