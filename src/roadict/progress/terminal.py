"""Progress lines and bars for long runs, with the time left and the time spent compiling."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, TextIO

from roadict.streams import GuardedStream

Progress = Callable[[int, int, str], None]
"""Called by long tasks with steps done, steps in total, and a text."""
PAUSE = 2.0
"""Seconds between two lines that are not rewritten."""
MIN_COMPILE_SECONDS = 0.5
"""Shorter compilations are not reported."""


def silent(done: int, total: int, text: str) -> None:
    """Report nothing."""


class RunProgress(Protocol):
    """The attributes of a run that the line shows; ``roadict.runs.snapshot.Snapshot`` has them."""

    iteration: int
    max_iter: int
    start: int
    n_starts: int
    stage: str

    @property
    def objective(self) -> float:
        """Value that is minimised."""

    @property
    def residuals(self) -> dict[str, float]:
        """Residuals by name; they fall to zero as the run converges."""


def measures_text(reading: RunProgress) -> str:
    """Return objective and residuals for a progress line, and the stage or the start if there are several."""
    start = f"start {reading.start}  " if reading.n_starts > 1 else ""
    if reading.stage == "noise":
        start = f"noise level, round {reading.start}  "
    elif reading.stage != "search":
        start = f"{reading.stage}  "
    residuals = "  ".join(f"{name.replace('_', ' ')} {value:.1e}" for name, value in reading.residuals.items())
    rate = getattr(reading, "samples_per_second", math.nan)
    speed = f"  {rate:.0f} samples/s" if math.isfinite(rate) else ""
    return f"{start}objective {reading.objective:.6g}  {residuals}{speed}"


class ProgressLine:
    """Callback that writes iteration, objective, residuals and time left.

    Rewrites one line on a terminal; elsewhere prints a line without control characters every few seconds.

    Parameters
    ----------
    every_iteration : bool
        Print a line for each iteration instead.
    stream : text stream
        Default: standard error.
    """

    def __init__(self, every_iteration: bool = False, stream: TextIO | None = None) -> None:
        self._stream = GuardedStream(sys.stderr if stream is None else stream)
        self._rewrite = self._stream.isatty() and not every_iteration
        self._pause = 0.0 if every_iteration else 0.1 if self._rewrite else PAUSE
        self._last = time.perf_counter() if self._pause else 0.0
        self._time_left = TimeLeft()

    def __call__(self, reading: RunProgress) -> None:
        """Write the line, if it is due."""
        time_left = self._time_left(reading.iteration, reading.max_iter)
        now = time.perf_counter()
        if now - self._last >= self._pause:
            self._last = now
            text = f"iteration {reading.iteration}/{reading.max_iter}  {measures_text(reading)}  {time_left}"
            self._stream.write(f"\r{text}\x1b[K" if self._rewrite else f"{text}\n")
            self._stream.flush()

    def close(self, summary: str) -> None:
        """Write the last line."""
        summary += self._time_left.compiled()
        self._stream.write(f"\r{summary}\x1b[K\n" if self._rewrite else f"{summary}\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """Format a time.

    Examples
    --------
    >>> duration(0.25), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Stopwatch(Protocol):
    seconds: float
    listeners: list[Callable[[float], None]]


@cache
def _compile_clock() -> _Stopwatch:
    """Seconds that Numba spends compiling in this process from now on; kernels from its disk cache take none."""
    from numba.core import event

    class Clock(event.Listener):
        seconds, depth, started = 0.0, 0, 0.0

        def __init__(self) -> None:
            self.listeners: list[Callable[[float], None]] = []

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.started = time.perf_counter()
            self.depth += 1  # compiling a kernel compiles those that it calls
            for report in self.listeners:
                report(self.seconds + time.perf_counter() - self.started)

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.started

    clock = Clock()
    event.register("numba:compile", clock)
    return clock


class TimeLeft:
    """Rate and time left. The clock starts after a run's first step, and stops while kernels are compiled."""

    def __init__(self) -> None:
        self._compiling = _compile_clock()
        self._compiled_before = self._compiling.seconds
        self._first: tuple[int, float] = (0, 0.0)
        self._last: int | None = None

    def __call__(self, done: int, total: int) -> str:
        """Return a short text after ``done`` of at most ``total`` steps; 0 marks that they are about to begin."""
        now = time.perf_counter() - self._compiling.seconds
        if self._last is None or done <= self._last:
            self._first = (done, now)
        self._last = done or None
        steps, seconds = done - self._first[0], now - self._first[1]
        if steps == 0 or seconds == 0:
            return f"time left unknown{self.compiled()}"
        return f"{steps / seconds:.3g}/s  at most {duration((total - done) * seconds / steps)} left{self.compiled()}"

    def compiled(self) -> str:
        """Report how long compiling took, if it did: this explains a slow first step, and kernels are cached."""
        seconds = self._compiling.seconds - self._compiled_before
        return f"  (compiled in {duration(seconds)}, first run only)" if seconds >= MIN_COMPILE_SECONDS else ""


@contextmanager
def reporting_compilation(report: Callable[[float], None]) -> Iterator[None]:
    """Call ``report`` before each compilation of a kernel or a part of one, with the total seconds so far."""
    clock = _compile_clock()
    before = clock.seconds

    def listener(seconds: float) -> None:
        report(seconds - before)

    clock.listeners.append(listener)
    try:
        yield
    finally:
        clock.listeners.remove(listener)


class PlainProgress:
    """Steps done, rate and time left as plain lines on standard error, one every few seconds."""

    def __init__(self, verb: str, time_left: Callable[[int, int], str] | None = None) -> None:
        self._verb = verb
        self._last = time.perf_counter()
        self._time_left = time_left or TimeLeft()

    def __call__(self, done: int, total: int, text: str) -> None:
        """Print a line, if one is due."""
        self._print(f"{done}/{total}  {self._time_left(done, total)}  {text}")

    def compiling(self, seconds: float) -> None:
        """Print a line that explains the delay, if one is due."""
        self._print(f"waits for compilation (first run only): {duration(seconds)} so far")

    def _print(self, text: str) -> None:
        now = time.perf_counter()
        if now - self._last >= PAUSE:
            self._last = now
            print(f"{self._verb} {text}", file=sys.stderr, flush=True)


@contextmanager
def bar_on_terminal(
    verb: str, time_left: Callable[[int, int], str] | None = None
) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar on standard error, a terminal, with rate and time left, or the text that ``time_left`` returns."""
    from rich import progress as rich
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn(verb), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None, text="starting (the first run compiles)")
        estimate = time_left or TimeLeft()

        def advance(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, text=f"{estimate(done, total)}  {text}")

        def compiling(seconds: float) -> None:
            bar.update(task, text=f"compiling (first run only): {duration(seconds)} so far")

        with reporting_compilation(compiling):
            yield advance
