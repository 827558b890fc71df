"""Help epilogs with examples, and messages for usage errors."""

from typing import Any

import typer

# Typer bundles Click since 0.24 and depended on it before; this is the class in both cases.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Raised if the command line cannot be parsed."""


def examples(*lines: str) -> str:
    r"""Return an epilog for ``--help`` with commands to copy, one per line.

    Examples
    --------
    >>> examples("roadict show model.npz -o atoms.png")
    'Example: roadict show model.npz -o atoms.png'
    >>> examples("roadict learn a.npy -o a.npz", "roadict learn b.csv -o b.npz")
    '\x08\nExamples:\n  roadict learn a.npy -o a.npz\n  roadict learn b.csv -o b.npz'
    """
    if len(lines) == 1:
        return f"Example: {lines[0]}"
    return "\n  ".join(["\b\nExamples:", *lines])  # \b: do not wrap


def usage_message(error: Any) -> str:
    """Return in one line what is wrong, similar names, and which help to read.

    Parameters
    ----------
    error : UsageError
    """
    similar = getattr(error, "possibilities", None)
    if similar is not None or hasattr(error, "option_name"):
        text = error.message if not similar else f"{error.message}; did you mean {' or '.join(sorted(similar))}?"
    else:
        text = error.format_message()
    text = " ".join(text.split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    command = "roadict" if error.ctx is None else error.ctx.command_path
    return f"{text}{' ' if text.endswith('?') else '; '}see {command} --help"
