"""``python -m roadict`` is ``roadict``."""

import sys

from roadict.streams import guard_output, occupy_descriptors

OUTPUT_LOST = 1


def main() -> None:
    """Run the program; Ctrl-C during its import is reported in one line, too.

    No failure of standard error stops it; text lost on standard output makes the exit status 1 instead of 0.
    """
    occupy_descriptors()
    output = guard_output()
    code: str | int | None = None
    try:
        from roadict.cli import app

        app.main()
    except KeyboardInterrupt:
        print("roadict: error: interrupted; nothing was written", file=sys.stderr)
        code = 130
    except SystemExit as end:
        code = end.code
    output.flush()
    sys.exit(OUTPUT_LOST if output.failed and not code else code)


if __name__ == "__main__":
    main()
