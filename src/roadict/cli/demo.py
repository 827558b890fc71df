"""The demo: a planted dictionary recovered, a picture enlarged, and a page of both."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadict.cli.console import check_output, progress_bar, telling_what_was_written
from roadict.cli.fitting import fit_with_progress
from roadict.cli.help import add_command
from roadict.cli.options import QuietOption
from roadict.cli.summary import report
from roadict.extras import PAGES, require
from roadict.wording import path_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadict.demo.page import Times
    from roadict.estimators import ROAD
    from roadict.synthetic import Planted

DEMO_FIT = 0.1
"""Share of the demo's time that its fit takes, about; the picture takes the rest."""


def add_commands(app: typer.Typer) -> None:
    """Add the command to the program."""
    add_command(app, demo, "roadict demo --out roadict-demo --seed 0")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the pictures.")] = Path("roadict-demo"),
    seed: Annotated[int, typer.Option(help="Random seed; same seed, same result.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Recover a planted dictionary, enlarge a picture, and show both.

    The results are on one page, OUT/demo.html.
    """
    require("roadict demo", *PAGES)
    from roadict.synthetic import planted

    truth = planted(400, 16, 32, sparsity=3, random_state=seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise ValueError(f"{path_problem(out, failure)}; choose another folder with --out") from None
    for name in ("model.npz", "atoms.png", "convergence.png", "demo.html"):
        check_output(out / name, (".npz", ".png", ".html"))
    written: list[Path] = []
    with telling_what_was_written(written):
        for path, text in _written(truth, out, seed, quiet):
            written.append(path)
            if not quiet:
                typer.echo(f"{text}: {path}")


def _written(truth: "Planted", out: Path, seed: int, quiet: bool) -> "Iterator[tuple[Path, str]]":
    """Learn and draw; yields every file that is written, and what it holds."""
    from roadict.demo.page import make_demo_page
    from roadict.files.atomic import atomic_write
    from roadict.plotting import compare_atoms_figure, save_figure

    model, times = _learned(truth, seed, quiet)
    model.save(out / "model.npz")
    if not quiet:
        with telling_what_was_written([out / "model.npz"]):
            _report(model, truth, times)
    yield out / "model.npz", "model"
    save_figure(compare_atoms_figure(truth.dictionary, model.components_), out / "atoms.png")
    yield out / "atoms.png", "true and learned atoms"
    save_figure(model.history_.plot(), out / "convergence.png")
    yield out / "convergence.png", "convergence"
    with progress_bar(quiet, "enlarging a picture", span=(DEMO_FIT, 1.0)) as advance:
        page = make_demo_page(truth, model, times, seed, advance)
    with atomic_write(out / "demo.html") as file:
        file.write(page.encode())
    yield out / "demo.html", "page"


def _learned(truth: "Planted", seed: int, quiet: bool) -> "tuple[ROAD, Times]":
    """Learn the planted dictionary."""
    from roadict.demo.page import Times
    from roadict.estimators import ROAD
    from roadict.progress import compiling

    model = ROAD(32, random_state=seed)
    started, compiled = time.perf_counter(), compiling.seconds()
    heading = "400 samples of 16 features, each a combination of 3 of 32 hidden atoms"
    fit_with_progress(model, truth.data, quiet, heading, (0.0, DEMO_FIT))
    compiled = compiling.seconds() - compiled
    return model, Times(time.perf_counter() - started - compiled, compiled)


def _report(model: "ROAD", truth: "Planted", times: "Times") -> None:
    """Print what was found."""
    from roadict.demo.page import headline, recovery_text
    from roadict.plotting import found_atoms

    typer.echo(headline(found_atoms(model.components_, truth.dictionary), len(truth.dictionary), times))
    typer.echo(recovery_text(model, truth))
    typer.echo(f"objective {model.objective_:.3f} (of the planted codes: {abs(truth.codes).sum():.3f})")
    report(model)
