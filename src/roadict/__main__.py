"""``python -m roadict`` is ``roadict``."""

import os
import signal
import sys

OUTPUT_LOST = 1
INTERRUPTED = 130


def main() -> None:
    """Run the program; Ctrl-C during any import ends it in one line, too.

    No failure of standard error stops it; text lost on standard output makes the exit status 1 instead of 0.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _end)
    from roadict.streams import guard_output, occupy_descriptors

    occupy_descriptors()
    output = guard_output()
    from roadict.cli import app
    from roadict.runs.signals import interrupted

    if ours:
        signal.signal(signal.SIGINT, interrupted)
    code: str | int | None = None
    try:
        app.main()
    except KeyboardInterrupt:
        print("roadict: error: interrupted; nothing was written", file=sys.stderr)
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    output.flush()
    sys.exit(OUTPUT_LOST if output.failed and not code else code)


def _end(number: int, frame: object) -> None:
    """End the process at once: an exception in the middle of an import may become any other."""
    try:
        os.write(2, b"roadict: error: interrupted; nothing was written\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
