"""Shared by all commands: progress, warnings, output checks, parsing of option values."""

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from roadict.cli.naming import as_options, of_file
from roadict.runs.signals import WorkStoppedError, interrupted
from roadict.wording import agree, path_problem

if TYPE_CHECKING:
    from roadict.progress.json_lines import SnapshotEvents

BAD_INPUT = 2
SIGNAL_BASE = 128
"""Exit status of a process ended by a signal, minus the signal's number."""
MAX_SECONDS = 10 * 365 * 24 * 3600.0
"""Ten years; clocks that count in nanoseconds overflow at about thirty times as many."""
EXPECTED_ERRORS = (ValueError, OSError, ImportError, MemoryError)
"""Reported in one line, without a traceback."""


def error_text(failure: BaseException) -> str:
    """Return the message of an error in one line, with options for parameters."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    if isinstance(failure, MemoryError):
        needed = re.search(r"allocate ([\d.]+ \w+)", text)
        size = f" for {needed[1]} more" if needed else ""
        return f"not enough memory{size}; use fewer samples, fewer atoms or float32 data"
    if isinstance(failure, OSError) and failure.filename and failure.strerror:
        remedy = "check its name and folder" if isinstance(failure, FileNotFoundError) else "choose another"
        return f"{path_problem(failure.filename, failure)}; {remedy}"
    return as_options(text)


def print_error(text: str) -> None:
    """Print an error."""
    print(f"roadict: error: {text}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(
    quiet: bool,
    verb: str,
    time_left: Callable[[int, int], str] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    done_before: float = 0.0,
) -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on standard error: a bar on a terminal, else a plain line every two seconds.

    Writes JSON lines instead if another program asks for them; see ``roadict.progress.json_lines``. Lines that ``say``
    writes meanwhile stand above the bar.

    Parameters
    ----------
    quiet : bool
    verb : str
    time_left : callable or None
        Called with steps done and in total for a text. None: the time left is extrapolated from these.
    span : (float, float)
        The part of the whole command that the steps are.
    done_before : float
        Share of the steps that an earlier command has done.
    """
    from roadict.progress import json_lines
    from roadict.progress.compiling import heard_by
    from roadict.progress.stages import FINE_STEPS
    from roadict.progress.terminal import PlainProgress

    first, last = span
    shown = first + (last - first) * done_before

    def of_command(done: int, total: int, text: str) -> None:
        advance(round(FINE_STEPS * (first + (last - first) * done / max(1, total))), FINE_STEPS, text)

    if quiet:
        yield lambda done, total, text: None
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not json_lines.requested():
        from roadict.progress.bar import bar_on_terminal

        with bar_on_terminal(verb, time_left, shown) as advance:
            yield advance if span == (0.0, 1.0) else of_command
    else:
        kind = json_lines.EventProgress if json_lines.requested() else PlainProgress
        advance = progress = kind(verb, time_left, shown)
        with heard_by(progress.compiling):
            yield advance if span == (0.0, 1.0) else of_command


def snapshot_callback(quiet: bool) -> "SnapshotEvents | None":
    """Return a callback for learners that writes snapshots, if another program asks for them."""
    from roadict.progress import json_lines

    return json_lines.SnapshotEvents() if json_lines.requested() and not quiet else None


def stop_notice(quiet: bool, text: str) -> str:
    """Return the line that answers a first Ctrl-C; "" where nobody, or another program, reads it."""
    from roadict.progress import json_lines

    return "" if quiet or json_lines.requested() else f"stopping: {text}; Ctrl-C again discards it"


@contextmanager
def showing_warnings(shown: bool = True, file: Path | None = None) -> Iterator[None]:
    """Print each warning in one line at the end of the block, also of one that fails, or none; of data from a file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of numbers that checks refuse in words
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught if shown):
                text = message if file is None else of_file(message, str(file))
                typer.echo(f"roadict: warning: {as_options(text)}", err=True)


@contextmanager
def telling_what_was_written(files: Sequence[Path]) -> Iterator[None]:
    """Name the files that have been written when Ctrl-C ends the block; none: the program says so."""
    try:
        yield
    except KeyboardInterrupt:
        if not files:
            raise
        listed = ", ".join(map(str, files))
        raise WorkStoppedError(f"interrupted; {listed} {agree(len(files), 'was', 'were')} written") from None


def save(write: Callable[[Path], None], path: Path, interrupted: bool = False) -> None:
    """Write the result of work that is done, elsewhere if its disk is full or lost.

    A first Ctrl-C meanwhile ends the program when the file is written, a second one discards it. ``interrupted``: the
    first one was before.
    """
    from roadict.files.atomic import write_or_rescue

    if interrupted:
        write_or_rescue(write, path)
        return
    with _interrupt_deferred() as pressed:
        write_or_rescue(write, path)
    if pressed:
        raise WorkStoppedError(f"interrupted; {path} was written")


@contextmanager
def _interrupt_deferred() -> Iterator[list[int]]:
    """Collect a first Ctrl-C in the block; the second raises. Where Ctrl-C is handled otherwise nothing changes."""
    pressed: list[int] = []

    def handle(number: int, frame: object) -> None:
        pressed.append(number)
        if len(pressed) > 1:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if not ours or before not in (signal.default_int_handler, interrupted):
        yield pressed
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def confirm_large(text: str, remedy: str) -> None:
    """Ask on a terminal whether to begin long work; without one, or if the answer is no, refuse it."""
    from roadict.progress import json_lines

    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()) or json_lines.requested():
        raise ValueError(f"{text}; {remedy} (on a terminal you are asked)")
    try:
        agreed = typer.confirm(f"{text}. Begin?", err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        typer.echo(err=True)
        raise KeyboardInterrupt from None
    if not agreed:
        raise ValueError(f"{text}; {remedy}")


@contextmanager
def naming_places(path: Path) -> Iterator[None]:
    """Name the file, and the place in it, in errors about data that were read from it."""
    from roadict.checks import PlaceError
    from roadict.files.tables import position

    try:
        yield
    except PlaceError as error:
        raise ValueError(error.in_file(str(path), position(path, *error.place))) from None


def check_output(path: Path, suffixes: tuple[str, ...], inputs: tuple[Path, ...] = ()) -> None:
    """Refuse, before any work, an output that cannot be written or would replace an input."""
    folder = Path(os.path.realpath(path)).parent
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"output {path} must end in {' or '.join(suffixes)}")
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as failure:
        raise ValueError(f"output {path_problem(path, failure)}; choose another path") from None
    if path.is_dir():
        raise ValueError(f"output {path} is a folder; name a file in it")
    if path.is_fifo() or path.is_socket():
        raise ValueError(f"output {path} is a pipe; name a file")
    if not folder.is_dir():
        raise ValueError(f"output folder {folder} does not exist; create it first")
    if (path.exists() and not os.access(path, os.W_OK)) or not _can_create(folder):
        raise ValueError(f"output {path} cannot be written; choose another path")
    if any(path.exists() and source.exists() and path.samefile(source) for source in inputs):
        raise ValueError(f"output {path} is also an input; choose another name")


def _can_create(folder: Path) -> bool:
    """Whether a file can be created there; permission bits are not enough, least of all for root."""
    probe = folder / f".roadict-{os.urandom(8).hex()}.tmp"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(probe)
    except OSError:
        return False
    return True


def parse_seconds(option: str, text: str, minimum: float = 0.0) -> float:
    """Parse a time such as 60s, 5min or 2h, of at least ``minimum`` seconds; a bare number means seconds.

    Examples
    --------
    >>> parse_seconds("--every", "90"), parse_seconds("--every", "1.5min"), parse_seconds("--every", "2h")
    (90.0, 90.0, 7200.0)
    """
    for unit, size in (("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)):
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.isascii() and number.replace(".", "", 1).isdigit():
            if not minimum <= float(number) * size <= MAX_SECONDS:
                raise ValueError(f"{option} {text} must lie between {minimum:g}s and {MAX_SECONDS / 3600:.0f}h")
            return float(number) * size
    raise ValueError(f"{option} {text} must be a time such as 60s, 5min or 2h")


def parse_number_or_auto(option: str, text: str) -> float | str:
    """Return the number, or "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {text} must be a number or auto") from None


def parse_signs(option: str, text: str | None) -> dict[str, bool]:
    """Return which of codes and atoms must not be negative, as parameters of a learner; None: neither.

    Examples
    --------
    >>> parse_signs("--positive", "codes")
    {'positive_code': True, 'positive_dict': False}
    """
    if text not in (None, "codes", "atoms", "both"):
        raise ValueError(f"{option} {text} must be codes, atoms or both")
    return {"positive_code": text in ("codes", "both"), "positive_dict": text in ("atoms", "both")}


def parse_one_or_three(option: str, text: str) -> float | tuple[float, float, float]:
    """Return one number, or three separated by commas."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) != 3:
        raise ValueError(f"{option} {text} must be one number, or three separated by commas")
    return numbers[0], numbers[1], numbers[2]
