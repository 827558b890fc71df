"""The demo: a planted dictionary recovered, a picture enlarged, and a page of both."""

import time
from pathlib import Path
from typing import Annotated

import typer

from roadict.cli.console import check_output, progress_bar
from roadict.cli.fitting import fit_with_progress
from roadict.cli.help import add_command
from roadict.cli.options import QuietOption
from roadict.cli.summary import report
from roadict.extras import PAGES, require
from roadict.wording import path_problem

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
        raise ValueError(f"{path_problem(out, failure)}; choose another folder with --out") from None
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
