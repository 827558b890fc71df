"""What all commands share: progress, warnings, and checks of what people type."""

import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


class WorkStoppedError(Exception):
    """Ctrl-C in a command that keeps what it has done; says what, and how to go on."""


@contextmanager
def progress_bar(
    quiet: bool, verb: str, left: Callable[[int, int], str] | None = None
) -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on standard error: a bar on a terminal, else a plain line every two seconds.

    The time left is by the number of steps, unless ``left``, called with steps done and in all, knows better.
    """
    from roadict.progress import PlainProgress, bar_on_terminal

    if quiet:
        yield lambda done, total, text: None
    elif sys.stderr.isatty():
        with bar_on_terminal(verb, left) as advance:
            yield advance
    else:
        yield PlainProgress(verb, left)


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Print warnings as one line each, when the work is done."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"roadict: warning: {message}", err=True)


def check_output(path: Path, suffixes: tuple[str, ...], inputs: tuple[Path, ...] = ()) -> None:
    """Refuse, before any work, an output that cannot be written or would replace an input."""
    folder = Path(os.path.realpath(path)).parent
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"output {path} must end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ValueError(f"output {path} is a folder; name a file in it")
    if path.is_fifo() or path.is_socket():
        raise ValueError(f"output {path} is a pipe; name a file")
    if not folder.is_dir():
        raise ValueError(f"output folder {folder} does not exist; make it first")
    if (path.exists() and not os.access(path, os.W_OK)) or not _can_create(folder):
        raise ValueError(f"output {path} cannot be written; choose another place")
    if any(path.exists() and source.exists() and path.samefile(source) for source in inputs):
        raise ValueError(f"output {path} is also an input; choose another name")


def _can_create(folder: Path) -> bool:
    """Whether a new file can be made there; permissions do not tell, least of all those of root."""
    probe = folder / f".roadict-{secrets.token_hex(8)}.tmp"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(probe)
    except OSError:
        return False
    return True


def number_or_word(option: str, text: str) -> float | str:
    """Return the number, or the word auto."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {text} must be a number or auto") from None
