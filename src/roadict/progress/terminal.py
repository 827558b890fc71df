"""Progress lines for long runs: plain lines of commands, and the line of ``verbose=1``."""

import math
import os
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from roadict.progress import compiling
from roadict.progress.compiling import OneLine
from roadict.progress.output import say
from roadict.progress.remaining import RECENT, TimeLeft
from roadict.progress.stages import Progress
from roadict.progress.words import duration
from roadict.streams import GuardedStream

__all__ = ["PlainProgress", "Progress", "ProgressLine", "run_text", "silent"]

PAUSE = 2.0
"""Seconds between two lines that are not rewritten."""
UNKNOWN_WIDTH = 80
"""Columns of a terminal that does not tell."""


def silent(done: int, total: int, text: str) -> None:
    """Report nothing."""


class RunProgress(Protocol):
    """The attributes of a run that the line shows; ``roadict.runs.snapshot.Snapshot`` has them."""

    iteration: int
    max_iter: int
    start: int
    n_starts: int
    stage: str
    share: float

    @property
    def objective(self) -> float:
        """Value that is minimised."""

    @property
    def residuals(self) -> dict[str, float]:
        """Residuals by name; they fall to zero as the run converges."""


def stage_name(reading: RunProgress) -> str:
    """Return the stage of a fit for people; "" if there is only one."""
    if reading.stage == "noise":
        return f"noise level, round {reading.start}"
    if reading.n_starts > 1:
        return f"{reading.stage} {reading.start} of {reading.n_starts}"
    return "" if reading.stage == "search" else reading.stage


def run_text(reading: RunProgress) -> str:
    """Return the stage, its iteration, objective and residuals for a progress line."""
    residuals = (f"{name.replace('_', ' ')} {value:.1e}" for name, value in reading.residuals.items())
    rate = getattr(reading, "samples_per_second", math.nan)
    speed = f"{rate:.0f} samples/s" if math.isfinite(rate) else ""
    parts = [stage_name(reading), f"iteration {reading.iteration}", f"objective {reading.objective:.6g}"]
    return "  ".join(part for part in (*parts, *residuals, speed) if part)


class ProgressLine:
    """Callback that writes the share of the whole fit that is done, the time left, and the state of the run.

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
        self._time_left = TimeLeft(RECENT)
        self._compiled_before = compiling.seconds()
        self._announce = OneLine(self._write_line)
        self._shown = False

    def __call__(self, reading: RunProgress) -> None:
        """Write the line, if it is due."""
        time_left = self._time_left(reading.share, 1.0)
        if self._due():
            self._show(f"{int(100 * reading.share):3d} %  {time_left}  {run_text(reading)}")

    def compiling(self, state: compiling.Compiling | None) -> None:
        """Tell that kernels are compiled: in place on a terminal, elsewhere in one line."""
        if not self._rewrite:
            self._announce(state)
        elif state is not None and self._due():
            self._show("  ".join(part for part in (state.text, state.time_left) if part))

    def say(self, summary: str) -> None:
        """Write a line that stays; the first also reports how long compiling took."""
        seconds, self._compiled_before = compiling.seconds() - self._compiled_before, compiling.seconds()
        long = seconds >= compiling.MIN_SECONDS
        self._write_line(f"{summary}  (compiled in {duration(seconds)}, first run only)" if long else summary)

    def close(self) -> None:
        """Erase the line."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _due(self) -> bool:
        now = time.perf_counter()
        if now - self._last < self._pause:
            return False
        self._last = now
        return True

    def _show(self, text: str) -> None:
        if not self._rewrite:
            self._write(f"{text}\n")
            return
        self._shown = True
        self._write(f"\r{elided(text, columns(self._stream) - 1)}\x1b[K")

    def _write_line(self, text: str) -> None:
        self.close()
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def columns(stream: TextIO) -> int:
    """Return the width of the terminal of a stream; 0 columns, as some terminals report, are an unknown width."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or UNKNOWN_WIDTH
    except (OSError, ValueError):  # no terminal, or no file descriptor
        return UNKNOWN_WIDTH


def elided(text: str, width: int) -> str:
    """Cut a text to a width.

    Examples
    --------
    >>> elided("objective 12.5", 9), elided("objective", 9)
    ('objecti..', 'objective')
    """
    return text if len(text) <= width else f"{text[: max(0, width - 2)]}.."[: max(0, width)]


class PlainProgress:
    """Share done, time left and stage of a whole job as plain lines on standard error, one every few seconds."""

    def __init__(self, verb: str, time_left: Callable[[int, int], str] | None = None, share: float = 0.0) -> None:
        self._verb = verb
        self._last = time.perf_counter()
        self._time_left = time_left or TimeLeft()
        self.compiling = OneLine(say)
        self._share = share

    def __call__(self, done: int, total: int, text: str) -> None:
        """Print a line, if one is due."""
        time_left = self._time_left(done, total)
        self._share = max(self._share, done / total if total else 0.0)
        now = time.perf_counter()
        if now - self._last >= PAUSE:
            self._last = now
            say(f"{self._verb} {int(100 * self._share):3d} %  {time_left}  {text}")
