"""A progress line for runs that take longer than a glance."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, TextIO

Progress = Callable[[int, int, str], None]
"""What long work calls with steps done, steps in all, and a text."""
PAUSE = 2.0
"""Seconds between two lines where they are not rewritten."""
WORTH_TELLING = 0.5
"""Seconds of compilation that people notice."""


def silent(done: int, total: int, text: str) -> None:
    """Progress that nobody wants to see."""


class Reading(Protocol):
    """What the line shows of a run; ``roadict.runs.snapshot.Snapshot`` has it."""

    iteration: int
    max_iter: int
    start: int
    n_starts: int

    @property
    def objective(self) -> float:
        """What is minimised."""

    @property
    def residuals(self) -> dict[str, float]:
        """What falls to zero as the run converges, by name."""


def measures_text(reading: Reading) -> str:
    """Objective and residuals for a progress line; the start, too, where there may be several."""
    start = f"start {reading.start}  " if reading.n_starts > 1 else ""
    residuals = "  ".join(f"{name.replace('_', ' ')} {value:.1e}" for name, value in reading.residuals.items())
    return f"{start}objective {reading.objective:.6g}  {residuals}"


class ProgressLine:
    """Callback that writes iteration, objective, residuals and time left.

    One line that is rewritten on a terminal; elsewhere a new line, without control characters, every few seconds.

    Parameters
    ----------
    every_iteration : bool
        Write a line for each iteration instead.
    stream : text stream
        Standard error by default.
    """

    def __init__(self, every_iteration: bool = False, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._rewrite = self._stream.isatty() and not every_iteration
        self._pause = 0.0 if every_iteration else 0.1 if self._rewrite else PAUSE
        self._last = time.perf_counter() if self._pause else 0.0
        self._left = TimeLeft()

    def __call__(self, reading: Reading) -> None:
        """Write the line, if it is time to."""
        left = self._left(reading.iteration, reading.max_iter)
        now = time.perf_counter()
        if now - self._last >= self._pause:
            self._last = now
            text = f"iteration {reading.iteration}/{reading.max_iter}  {measures_text(reading)}  {left}"
            self._stream.write(f"\r{text}\x1b[K" if self._rewrite else f"{text}\n")
            self._stream.flush()

    def close(self, summary: str) -> None:
        """Write the last line."""
        summary += self._left.compiled()
        self._stream.write(f"\r{summary}\x1b[K\n" if self._rewrite else f"{summary}\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """Write a time for people.

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
    watchers: list[Callable[[float], None]]


@cache
def _compile_clock() -> _Stopwatch:
    """Seconds that Numba compiles in this process from now on; kernels from its cache on disk take none."""
    from numba.core import event

    class Clock(event.Listener):
        seconds, depth, started = 0.0, 0, 0.0

        def __init__(self) -> None:
            self.watchers: list[Callable[[float], None]] = []

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.started = time.perf_counter()
            self.depth += 1  # a kernel that calls others compiles them on the way
            for tell in self.watchers:
                tell(self.seconds + time.perf_counter() - self.started)

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.started

    clock = Clock()
    event.register("numba:compile", clock)
    return clock


class TimeLeft:
    """Rate and time left. The clock starts after a run's first step, and stands while kernels are compiled."""

    def __init__(self) -> None:
        self._compiling = _compile_clock()
        self._compiled_before = self._compiling.seconds
        self._first: tuple[int, float] = (0, 0.0)
        self._last: int | None = None

    def __call__(self, done: int, total: int) -> str:
        """Say it in a few words, after ``done`` of at most ``total`` steps; 0 tells that they are about to begin."""
        now = time.perf_counter() - self._compiling.seconds
        if self._last is None or done <= self._last:
            self._first = (done, now)
        self._last = done or None
        steps, seconds = done - self._first[0], now - self._first[1]
        if steps == 0 or seconds == 0:
            return f"time left unknown{self.compiled()}"
        return f"{steps / seconds:.3g}/s  at most {duration((total - done) * seconds / steps)} left{self.compiled()}"

    def compiled(self) -> str:
        """Say how long compiling took, if it did: it explains a slow first step, and is kept for the next time."""
        seconds = self._compiling.seconds - self._compiled_before
        return f"  (compiled once, in {duration(seconds)})" if seconds >= WORTH_TELLING else ""


@contextmanager
def watching_compilation(tell: Callable[[float], None]) -> Iterator[None]:
    """Have ``tell`` called when a kernel or a part of one is about to be compiled, with the seconds of all so far."""
    clock = _compile_clock()
    before = clock.seconds

    def watcher(seconds: float) -> None:
        tell(seconds - before)

    clock.watchers.append(watcher)
    try:
        yield
    finally:
        clock.watchers.remove(watcher)


class PlainProgress:
    """Steps done, the rate and the time left as plain lines on standard error, one every few seconds."""

    def __init__(self, verb: str, left: Callable[[int, int], str] | None = None) -> None:
        self._verb = verb
        self._last = time.perf_counter()
        self._left = left or TimeLeft()

    def __call__(self, done: int, total: int, text: str) -> None:
        """Write a line, if it is time to."""
        self._say(f"{done}/{total}  {self._left(done, total)}  {text}")

    def compiling(self, seconds: float) -> None:
        """Write a line on why nothing else moves, if it is time to."""
        self._say(f"waits for compilation, once: {duration(seconds)} so far")

    def _say(self, text: str) -> None:
        now = time.perf_counter()
        if now - self._last >= PAUSE:
            self._last = now
            print(f"{self._verb} {text}", file=sys.stderr, flush=True)


@contextmanager
def bar_on_terminal(
    verb: str, left: Callable[[int, int], str] | None = None
) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar with the rate and the time left on standard error, a terminal; ``left`` says them in its own way."""
    from rich import progress as rich
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn(verb), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None, text="starting (the first run compiles)")
        say = left or TimeLeft()

        def advance(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, text=f"{say(done, total)}  {text}")

        def compiling(seconds: float) -> None:
            bar.update(task, text=f"compiling, once: {duration(seconds)} so far")

        with watching_compilation(compiling):
            yield advance
