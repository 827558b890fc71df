"""The command line: the program; its commands have files of their own."""

import os
import sys
from typing import Annotated

import typer

from roadict import __version__
from roadict.cli import demo, encode, experiments, learn, pictures, show, studio
from roadict.cli.console import BAD_INPUT, EXPECTED_ERRORS, error_text, print_error
from roadict.cli.help import UsageError, usage_message
from roadict.cli.several import SilentExitError
from roadict.runs.signals import INTERRUPTED, WorkStoppedError

app = typer.Typer(
    name="roadict",
    help="Dictionary learning: find atoms such that every signal is a combination of a few.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    # Typer converts a missing --help by Pydantic, whose import takes half the time of the help.
    context_settings={"default_map": {"help": False}},
)
for commands in (learn, encode, show, pictures, demo, studio, experiments):
    commands.add_commands(app)


def main() -> None:
    """Run the program; every expected error is one line on standard error."""
    try:
        code = app(prog_name="roadict", standalone_mode=False)
    except UsageError as error:
        print_error(usage_message(error))
        sys.exit(BAD_INPUT)
    except WorkStoppedError as stop:
        print_error(str(stop))
        sys.exit(stop.code)
    except SilentExitError as end:
        sys.exit(end.code)
    except EXPECTED_ERRORS as error:
        print_error(error_text(error))
        sys.exit(BAD_INPUT)
    except RuntimeError as error:
        from roadict.engines.gpu.cuda import GpuError

        if not isinstance(error, GpuError):
            raise
        print_error(error_text(error))
        sys.exit(BAD_INPUT)
    if code == INTERRUPTED:  # Typer has caught Ctrl-C
        print_error("interrupted; nothing was written")
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"roadict {__version__}")
        raise typer.Exit
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        text = "NUMBA_DISABLE_JIT turns the compiler off, and all work is hundreds of times slower; unset it"
        typer.echo(f"roadict: warning: {text}", err=True)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BAD_INPUT)
