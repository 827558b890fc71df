"""What the command line says of itself: examples below the help, and wrong usage in one line."""

from typing import Any

import typer

# Typer carries Click inside itself since 0.24 and beside itself before; this is the class in both.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Raised where words on the command line cannot be understood."""


def examples(*lines: str) -> str:
    r"""Write an epilog for ``--help``, each line to be copied whole.

    Examples
    --------
    >>> examples("roadict show model.npz -o atoms.png")
    'Example: roadict show model.npz -o atoms.png'
    >>> examples("roadict learn a.npy -o a.npz", "roadict learn b.csv -o b.npz")
    '\x08\nExamples:\n  roadict learn a.npy -o a.npz\n  roadict learn b.csv -o b.npz'
    """
    if len(lines) == 1:
        return f"Example: {lines[0]}"
    return "\n  ".join(["\b\nExamples:", *lines])  # \b: not to be wrapped


def told(error: Any) -> str:
    """Say in one line what is wrong, which name is near, and where to look.

    Parameters
    ----------
    error : UsageError
    """
    near = getattr(error, "possibilities", None)
    if near is not None or hasattr(error, "option_name"):
        text = error.message if not near else f"{error.message}; did you mean {' or '.join(sorted(near))}?"
    else:
        text = error.format_message()
    text = " ".join(text.split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    place = "roadict" if error.ctx is None else error.ctx.command_path
    return f"{text}{' ' if text.endswith('?') else '; '}see {place} --help"
