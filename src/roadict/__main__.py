"""``python -m roadict`` is ``roadict``."""

import sys


def main() -> None:
    """Run the program; Ctrl-C during its import is reported in one line, too."""
    try:
        from roadict.cli import app

        app.main()
    except KeyboardInterrupt:
        print("roadict: error: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
