"""``python -m roadict`` is ``roadict``."""

from roadict.cli import main

if __name__ == "__main__":
    main()
