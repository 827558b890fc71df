"""The bar on a terminal: one line that is rewritten, and nothing once it ends."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roadict.progress import compiling
from roadict.progress.output import lines_above
from roadict.progress.remaining import TimeLeft
from roadict.progress.stages import Progress
from roadict.progress.terminal import columns

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

SPINNER, ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
FULL, ASCII_FULL = "━", "#"
SHORTEST, LONGEST = 5, 30
"""Length of the bar, a quarter of the line in between."""
ECHO = len("^C")
"""Columns left free: a terminal echoes Ctrl-C there, and on a new line would push the bar up, where it stays."""


class Line:
    """What the line shows, in the order in which narrow terminals keep it: verb, bar, percent, time left, text."""

    def __init__(self, verb: str, share: float) -> None:
        self.verb, self.share, self.time_left, self.text = verb, share, "starting", ""
        self.compiling: compiling.Compiling | None = None

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Fit the line into the width: what does not fit is elided at its end."""
        coloured = console.color_system is not None and not console.no_color
        yield self._drawn(options.max_width, options.ascii_only, coloured)

    def _drawn(self, width: int, ascii_only: bool, coloured: bool) -> "Text":
        from rich.text import Text

        frames, full = (ASCII_SPINNER, ASCII_FULL) if ascii_only else (SPINNER, FULL)
        length = min(LONGEST, max(SHORTEST, width // 4))
        filled = int(length * self.share)
        line = Text(no_wrap=True, overflow="crop" if ascii_only else "ellipsis", end="")
        line.append(frames[int(10 * time.monotonic()) % len(frames)], "progress.spinner")
        line.append(f" {self.verb} ")
        line.append(full * filled, "bar.complete")
        line.append((full if coloured else " ") * (length - filled), "bar.back")
        line.append(f" {int(100 * self.share):3d} %", "progress.percentage")
        state = self.compiling
        for part in (self.time_left, self.text) if state is None else (state.time_left, state.text):
            line.append(f"  {part}" if part else "")
        line.truncate(max(1, width - ECHO), overflow="crop" if ascii_only else "ellipsis")
        return line


@contextmanager
def bar_on_terminal(
    verb: str, time_left: Callable[[int, int], str] | None = None, share: float = 0.0
) -> Iterator[Progress]:
    """Show a bar on standard error, a terminal, with the time left, or what ``time_left`` returns.

    ``share``: what has been done before.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.width:  # rich takes COLUMNS=0 at its word
        console.width = columns(sys.stderr)
    line, estimate = Line(verb, share), time_left or TimeLeft()

    def advance(done: int, total: int, text: str) -> None:
        line.share = max(line.share, min(1.0, done / total if total else 0.0))
        line.time_left, line.text = estimate(done, total), text

    def hear(state: compiling.Compiling | None) -> None:
        line.compiling = state

    def print_above(text: str) -> None:
        console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    live = Live(line, console=console, transient=True, refresh_per_second=10, redirect_stdout=sys.stdout.isatty())
    with live, lines_above(print_above), compiling.heard_by(hear):
        yield advance
