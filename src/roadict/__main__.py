"""``python -m roadict`` is ``roadict``."""

import sys


def main() -> None:
    """Run the program; Ctrl-C while it is still being loaded is told in one line as well."""
    try:
        from roadict.cli import app

        app.main()
    except KeyboardInterrupt:
        print("roadict: error: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
