"""Help in groups of options, epilogs with examples, and messages for usage errors."""

import re
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

# Typer bundles Click since 0.24 and depended on it before; this is the class in both cases.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Raised if the command line cannot be parsed."""

FEW_OPTIONS = 8
"""Options up to which a command lists them under one heading."""
_KINDS = {
    r"Input should be a valid integer.*": "a whole number",
    r"Input should be a valid number.*": "a number",
    r"Input should be greater than or equal to (\S+)": r"at least \1",
}
"""What a value must be, by the words of Typer."""


class Command(TyperCommand):
    """A command whose help has its options in groups, and whose summary in the overview is wrapped, never cut."""

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first sentence of the help, whatever its length."""
        return super().get_short_help_str(limit=1000)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the name of the command."""
        parameters = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(each.metavar) for each in parameters)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and then the options, by their ``rich_help_panel``; the others come last."""
        shown = [(parameter, parameter.get_help_record(ctx)) for parameter in self.get_params(ctx)]
        known = [(parameter, record) for parameter, record in shown if record is not None]
        arguments = [(each.metavar, record[1]) for each, record in known if each.param_type_name == "argument"]
        options = [
            (getattr(parameter, "rich_help_panel", None), _readable(record))
            for parameter, record in known
            if parameter.param_type_name == "option"
        ]
        groups: dict[str | None, list[tuple[str, str]]] = {}
        for panel, record in options:
            groups.setdefault(panel if len(options) > FEW_OPTIONS else None, []).append(record)
        others = groups.pop(None, [])
        sections = {"Arguments": arguments, **groups, "Other options" if groups else "Options": others}
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _readable(record: tuple[str, str]) -> tuple[str, str]:
    """Say in words which numbers an option takes."""
    return record[0].replace("<int range>", "<int>"), re.sub(r"\bx>=(\d+)", r"at least \1", record[1])


def add_command(app: typer.Typer, function: Callable[..., None], *lines: str) -> None:
    """Add a command to the program, with examples of its use."""
    app.command(cls=Command, epilog=examples(*lines))(function)


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
    for words, kind in _KINDS.items():
        if (found := re.fullmatch(words, error.message.strip())) and getattr(error, "param", None) is not None:
            return f"{_given(error.param.opts)} must be {found.expand(kind)}; see {error.ctx.command_path} --help"
    similar = getattr(error, "possibilities", None)
    if similar is not None or hasattr(error, "option_name"):
        text = error.message if not similar else f"{error.message}; did you mean {' or '.join(sorted(similar))}?"
    else:
        text = error.format_message()
    text = " ".join(text.split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    command = "roadict" if error.ctx is None else error.ctx.command_path
    return f"{text}{' ' if text.endswith('?') else '; '}see {command} --help"


def _given(names: list[str]) -> str:
    """Return an option as it was given, with its value; given twice, the last one counts."""
    for option, value in reversed(list(zip(sys.argv, [*sys.argv[1:], ""], strict=True))):
        if option.partition("=")[0] in names:
            return option.replace("=", " ", 1) if "=" in option else f"{option} {value}"
    return names[-1]
