"""The command line: the program, show, demo; the other commands have files of their own."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from roadict import __version__
from roadict.cli import encode, experiments, learn, pictures, studio
from roadict.cli.console import (
    BAD_INPUT,
    EXPECTED_ERRORS,
    check_output,
    error_text,
    print_error,
    progress_bar,
)
from roadict.cli.help import UsageError, examples, usage_message
from roadict.cli.learn import fit_with_progress
from roadict.cli.options import ModelArgument, QuietOption
from roadict.cli.stability import stability_summary, stability_table
from roadict.cli.summary import report
from roadict.extras import PAGES, require
from roadict.runs.signals import INTERRUPTED, WorkStoppedError
from roadict.wording import plural

DEMO_FIT = 0.1
"""Share of the demo's time that its fit takes, about; the picture takes the rest."""

app = typer.Typer(
    name="roadict",
    help="Dictionary learning: find atoms such that every signal is a combination of a few.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    # Typer converts a missing --help by Pydantic, whose import takes half the time of the help.
    context_settings={"default_map": {"help": False}},
)
learn.add_commands(app)
encode.add_commands(app)
pictures.add_commands(app)
experiments.add_commands(app)
studio.add_commands(app)


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
    except learn.SilentExitError as end:
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


@app.command(epilog=examples("roadict show model.npz -o atoms.png"))
def show(
    model_file: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture to write: .png, .pdf or .svg.")],
    quiet: QuietOption = False,
) -> None:
    """Draw the atoms of a model, as square pictures if possible, else as curves.

    The most used atoms come first. If learn has measured their stability, the most stable ones come first, a table
    lists them, and those that do not recur in halves of the data are marked: not to be trusted.
    """
    require("roadict show", "matplotlib")
    check_output(output, (".png", ".pdf", ".svg"), inputs=(model_file,))
    from roadict.estimators import load
    from roadict.plotting import atoms_figure, save_figure

    model = load(model_file)
    title = f"{plural(len(model.components_), 'atom')} of {plural(model.n_features_in_, 'feature')}"
    stability = getattr(model, "atom_stability_", None)
    save_figure(atoms_figure(model.components_, title, model.atom_usage_, stability), output)
    if not quiet:
        if stability is not None:
            typer.echo(stability_table(stability, model.atom_usage_))
            typer.echo(stability_summary(stability))
        typer.echo(f"atoms: {output}")


@app.command(epilog=examples("roadict demo --out roadict-demo --seed 0"))
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the pictures.")] = Path("roadict-demo"),
    seed: Annotated[int, typer.Option(help="Random seed; same seed, same result.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Recover a planted dictionary from samples, upscale a picture, and show both on a page."""
    require("roadict demo", *PAGES)
    from roadict.demo.page import Times, found_atoms, headline, make_demo_page, recovery_text
    from roadict.estimators import ROAD
    from roadict.files.atomic import atomic_write
    from roadict.metrics import dictionary_error
    from roadict.plotting import compare_atoms_figure, save_figure
    from roadict.progress import compiling
    from roadict.synthetic import planted

    truth = planted(400, 16, 32, sparsity=3, random_state=seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise ValueError(f"folder {out} cannot be created ({failure.strerror}); choose another with --out") from None
    for name in ("model.npz", "atoms.png", "convergence.png", "demo.html"):
        check_output(out / name, (".npz", ".png", ".html"))
    model = ROAD(32, random_state=seed)
    started, compiled = time.perf_counter(), compiling.seconds()
    heading = "400 samples of 16 features, each a combination of 3 of 32 hidden atoms"
    fit_with_progress(model, truth.data, quiet, heading, (0.0, DEMO_FIT))
    compiled = compiling.seconds() - compiled
    times = Times(time.perf_counter() - started - compiled, compiled)
    model.save(out / "model.npz")

    def echo(text: str) -> None:
        if not quiet:
            typer.echo(text)

    echo(headline(found_atoms(model, truth), len(truth.dictionary), times))
    echo(recovery_text(dictionary_error(model.components_, truth.dictionary)))
    echo(f"objective {model.objective_:.3f} (of the planted codes: {abs(truth.codes).sum():.3f})")
    if not quiet:
        report(model)
    echo(f"model: {out / 'model.npz'}")
    save_figure(compare_atoms_figure(truth.dictionary, model.components_), out / "atoms.png")
    echo(f"true and learned atoms: {out / 'atoms.png'}")
    save_figure(model.history_.plot(), out / "convergence.png")
    echo(f"convergence: {out / 'convergence.png'}")
    with progress_bar(quiet, "enlarging a picture", span=(DEMO_FIT, 1.0)) as advance:
        page = make_demo_page(truth, model, times, seed, advance)
    with atomic_write(out / "demo.html") as file:
        file.write(page.encode())
    echo(f"page: {out / 'demo.html'}")
