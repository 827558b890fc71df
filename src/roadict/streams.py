"""Text streams that may be closed, full or lost: work goes on without them."""

import io
import os
import sys
from typing import TextIO

FAILURES = (OSError, ValueError)
"""What a full or lost, and a closed stream raise."""


class GuardedStream(io.TextIOBase, TextIO):
    """A text stream that drops what cannot be written, and never raises.

    Parameters
    ----------
    stream : text stream or None
        None: there is none, as in a process that was started without it.

    Attributes
    ----------
    failed : bool
        Whether text was lost.

    Examples
    --------
    >>> closed = io.StringIO()
    >>> closed.close()
    >>> stream = GuardedStream(closed)
    >>> print("lost", file=stream)
    >>> stream.failed
    True
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failed = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """That of the stream."""
        return getattr(self._stream, "errors", None)

    def write(self, text: str) -> int:
        """Write text, with escapes for characters that the stream cannot encode."""
        if self._stream is None:
            self.failed = self.failed or bool(text)
            return len(text)
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            return self.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        except FAILURES:
            self.failed = True
            return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except FAILURES:
            self.failed = True

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        try:
            return self._stream is not None and self._stream.isatty()
        except FAILURES:
            return False

    def fileno(self) -> int:
        """Return the descriptor; raises OSError if there is none."""
        if self._stream is None:
            raise OSError("there is no such stream")
        return self._stream.fileno()

    def writable(self) -> bool:
        """Whether text may be written, which is always the case."""
        return True


def occupy_descriptors() -> None:
    """Open the null device in place of closed standard streams; a data file would get their descriptors otherwise."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the smallest free descriptor: this one
            os.set_inheritable(opened, True)


def guard_output() -> GuardedStream:
    """Guard standard output and standard error for the rest of the process; returns standard output."""
    output = GuardedStream(sys.stdout)
    sys.stdout, sys.stderr = output, GuardedStream(sys.stderr)
    return output
