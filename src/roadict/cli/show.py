"""The command that draws the atoms of a model."""

from pathlib import Path
from typing import Annotated

import typer

from roadict.cli.console import check_output, telling_what_was_written
from roadict.cli.help import add_command
from roadict.cli.options import ModelArgument, QuietOption
from roadict.cli.stability import stability_summary, stability_table
from roadict.extras import require
from roadict.wording import plural


def add_commands(app: typer.Typer) -> None:
    """Add the command to the program."""
    add_command(app, show, "roadict show model.npz -o atoms.png")


def show(
    model_file: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture to write: .png, .pdf or .svg.")],
    quiet: QuietOption = False,
) -> None:
    """Draw the atoms of a model.

    Atoms are drawn as square pictures if possible, else as curves, the most used first. If learn has measured their
    stability, the most stable ones come first, a table lists them, and those that do not recur in halves of the data
    are marked: not to be trusted.
    """
    require("roadict show", "matplotlib")
    check_output(output, (".png", ".pdf", ".svg"), inputs=(model_file,))
    from roadict.estimators import load
    from roadict.plotting import atoms_figure, save_figure

    model = load(model_file)
    title = f"{plural(len(model.components_), 'atom')} of {plural(model.n_features_in_, 'feature')}"
    stability = getattr(model, "atom_stability_", None)
    save_figure(atoms_figure(model.components_, title, model.atom_usage_, stability), output)
    if quiet:
        return
    with telling_what_was_written([output]):
        if stability is not None:
            typer.echo(stability_table(stability, model.atom_usage_))
            typer.echo(stability_summary(stability))
        typer.echo(f"atoms: {output}")
