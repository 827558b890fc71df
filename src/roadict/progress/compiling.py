"""The time that goes into compiling kernels, and who hears of it.

Whoever compiles kernels ahead calls ``report``. Kernels that Numba compiles in this process, because nobody has done so
ahead, are noticed by themselves; how many will follow is then unknown.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from roadict.progress.words import duration, roughly

MIN_SECONDS = 0.5
"""Compiling in this process is told of from this total on: a small kernel alone is not worth a line."""


class Compiling(NamedTuple):
    """How far compiling is.

    Attributes
    ----------
    done, total : int
        Kernels; a total of 0: unknown.
    seconds : float
        Time so far.
    left : float or None
        Expected time left, if it is known.
    step : float
        How much of it is for the kernel that is compiled now: it counts down by as much until the next report.
    since : float or None
        Reading of the clock at the report; None: it does not count down.
    """

    done: int
    total: int
    seconds: float
    left: float | None
    step: float = 0.0
    since: float | None = None

    @property
    def left_now(self) -> float | None:
        """Expected time left at this moment, if it is known."""
        if self.left is None or self.since is None:
            return self.left
        return max(0.0, self.left - min(self.step, time.perf_counter() - self.since))

    @property
    def text(self) -> str:
        """What is going on, for a line that is rewritten."""
        far = f"{self.done} of {self.total}" if self.total else f"{duration(self.seconds)}"
        return f"compiling kernels, first run only: {far}"

    @property
    def time_left(self) -> str:
        """What is left of it; "" if that is unknown."""
        return "" if (left := self.left_now) is None else f"about {roughly(left)} left to compile"

    @property
    def line(self) -> str:
        """The one line about it where lines are not rewritten."""
        left = self.left_now
        return "compiling kernels (first run only)" + ("" if left is None else f", about {roughly(left)}")


Listener = Callable[[Compiling | None], None]
"""Called while kernels are compiled, and with None at the end."""


class _Clock:
    """Seconds spent compiling; what is compiled within something else counts once."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.ahead_since: float | None = None
        self.ahead: Compiling | None = None
        self._past, self._depth, self._started = 0.0, 0, 0.0

    @property
    def seconds(self) -> float:
        return self._past + (time.perf_counter() - self._started if self._depth else 0.0)

    def start(self) -> None:
        if self._depth == 0:
            self._started = time.perf_counter()
        self._depth += 1

    def stop(self) -> None:
        if self._depth == 1:
            self._past = self.seconds
        self._depth -= 1
        if self._depth == 0:
            self.tell(None)

    def tell(self, state: Compiling | None) -> None:
        for listener in tuple(self.listeners):
            listener(state)


_clock = _Clock()


def report(done: int, total: int, seconds: float = 0.0, step: float = 0.0) -> None:
    """Tell who watches, if anybody, that ``done`` of ``total`` kernels have been compiled.

    Called with 0 before the first, then after each; the time left never rises. Clocks of jobs stand until all are done:
    a caller that gives up reports ``total`` of ``total``.

    Parameters
    ----------
    done, total : int
    seconds : float
        Expected time left.
    step : float
        How much of it is for the kernel that is compiled now.
    """
    if done >= total:
        if _clock.ahead_since is not None:
            _clock.ahead_since = _clock.ahead = None
            _clock.stop()
        return
    if _clock.ahead_since is None:
        _clock.start()
        _clock.ahead_since = _clock.seconds
    before = None if _clock.ahead is None else _clock.ahead.left_now
    left = seconds if before is None else min(before, seconds)
    elapsed = _clock.seconds - _clock.ahead_since
    _clock.ahead = Compiling(done, total, elapsed, left, step, time.perf_counter())
    _clock.tell(_clock.ahead)


@cache
def _watch_numba() -> None:
    """Notice the kernels that Numba compiles in this process from now on; those from its disk cache take no time."""
    from numba.core import event

    class Watcher(event.Listener):
        def on_start(self, event: Any) -> None:
            _clock.start()  # compiling a kernel compiles those that it calls
            if _clock.ahead is not None:
                _clock.tell(_clock.ahead)  # for lines that are written only when they hear something
            elif _clock.seconds >= MIN_SECONDS:
                _clock.tell(Compiling(0, 0, _clock.seconds, None))

        def on_end(self, event: Any) -> None:
            _clock.stop()

    event.register("numba:compile", Watcher())


def seconds() -> float:
    """Return the seconds that this process has spent compiling, or waiting for it, since this was first asked."""
    _watch_numba()
    return _clock.seconds


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Call a listener while kernels are compiled inside the block."""
    _watch_numba()
    _clock.listeners.append(listener)
    try:
        yield
    finally:
        _clock.listeners.remove(listener)


class OneLine:
    """Listener that writes one line per process."""

    written = False

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, state: Compiling | None) -> None:
        """Write the line, if there is something to say and it has not been said."""
        if state is not None and not OneLine.written:
            OneLine.written = True
            self._write(state.line)
