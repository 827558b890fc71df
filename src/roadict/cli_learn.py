"""The command that learns, in one process or, under torchrun, in several; with checkpoints."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from roadict.console import (
    WorkStoppedError,
    check_output,
    number_or_word,
    progress_bar,
    seconds,
    showing_warnings,
    stop_requests,
    watcher,
)
from roadict.road.engines.pick import ENGINES
from roadict.usage import examples

if TYPE_CHECKING:
    from roadict.distributed import Comm
    from roadict.estimators import ROAD, AlternatingDictionaryLearning
    from roadict.road.solve import Snapshot

    Learned = ROAD | AlternatingDictionaryLearning

PATIENCE = 3.0
"""Seconds within which torchrun passes on a signal that the terminal has sent to all processes already."""
SIGNAL_BASE = 128
"""Exit status of a process that a signal has ended, less the signal's number."""

DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt.")
]
PartsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Signals, one per row: .npy, .npz, .csv, .tsv or .txt; a folder of part-*.npy; a pattern of .npy files.",
    ),
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Name of the array in an .npz file with several.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]


class SilentEndError(Exception):
    """Another rank tells why the run ends; this one ends with a status."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def add_commands(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(
        epilog=examples(
            "roadict learn patches.npy -k 64 -o model.npz --seed 0",
            "roadict learn patches.npy -k 64 -o ksvd.npz --method ksvd --sparsity 5",
            "roadict learn patches.npy -k 64 -o model.npz --checkpoint kept --resume",
            "torchrun --nproc-per-node 2 -m roadict learn patches.npy -k 64 -o model.npz",
        )
    )(learn)


def learn(
    data: PartsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    n_components: Annotated[
        int | None, typer.Option("--components", "-k", help="Number of atoms. Default: twice the features.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="road, or a two-stage method: mod, ksvd, approximate-ksvd, simco, blotless, sequential, "
            "consistent-sequential."
        ),
    ] = "road",
    coder: Annotated[
        str | None, typer.Option(help="two-stage: omp, lasso, ...; default omp, none for the sequential ones.")
    ] = None,
    sparsity: Annotated[
        int | None, typer.Option(help="two-stage: coefficients per signal. Default: a tenth of the features.")
    ] = None,
    formulation: Annotated[str, typer.Option(help="road: constrained, lasso or inexact.")] = "constrained",
    epsilon: Annotated[
        str, typer.Option(help="constrained: bound on the relative error, a number or auto; 0 is noise-free.")
    ] = "auto",
    alpha: Annotated[
        float | None, typer.Option(help="lasso and the sequential methods: weight of the sum of |codes|.")
    ] = None,
    beta: Annotated[str | None, typer.Option(help="inexact: one ridge weight or three, as 200,300,250.")] = None,
    rho: Annotated[str, typer.Option(help="Penalty of the ADMM: a number, three for inexact, or auto.")] = "auto",
    max_iter: Annotated[
        int | None, typer.Option(help="Largest number of iterations. Default: 2000 for road, else 100.")
    ] = None,
    tol: Annotated[
        float, typer.Option(help="Bound on the relative residuals or changes; 0: run all iterations.")
    ] = 1e-4,
    n_init: Annotated[int | None, typer.Option(help="Largest number of starts; the best is kept.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="NaN and empty cells are unobserved entries.")] = False,
    engine: Annotated[str, typer.Option(help=f"road: {', '.join(ENGINES)}.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Same seed, same result.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads (of each process). Default: all cores.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to keep the run in, so that it can go on after a stop of any kind.")
    ] = None,
    every: Annotated[str, typer.Option(help="Time from one checkpoint to the next, as 60s, 5min or 2h.")] = "60s",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint, if there is one; else start.")
    ] = False,
    codes: Annotated[
        str, typer.Option(help="torchrun: codes in parts beside the model, one per process, or gather: in the model.")
    ] = "parts",
    timeout: Annotated[
        str, typer.Option(help="torchrun: time without an answer after which another process counts as lost.")
    ] = "10min",
    key: KeyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Learn a dictionary from signals and save it as a model."""
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        check_output(output, (".npz",), inputs=(data,))
    from roadict.distributed import is_restart, process_group, started_by_torchrun
    from roadict.estimators import ROAD, AlternatingDictionaryLearning
    from roadict.keeper import Checkpoint

    _check_keeping(checkpoint, every, resume, codes)
    run: dict[str, Any] = {"tol": tol, "random_state": seed, "n_jobs": jobs} | (
        {} if max_iter is None else {"max_iter": max_iter}
    )
    model: Learned
    if method == "road":
        _refuse(method, {"--coder": coder, "--sparsity": sparsity})
        model = ROAD(
            n_components,
            formulation=formulation,
            epsilon=number_or_word("--epsilon", epsilon),
            alpha=alpha,
            beta=None if beta is None else _one_or_three("--beta", beta),
            rho=rho if rho == "auto" else _one_or_three("--rho", rho),
            n_init=n_init,
            missing_values=np.nan if missing else None,
            engine=engine,
            **run,
        )
    else:
        changed = {"--epsilon": (epsilon, "auto"), "--rho": (rho, "auto"), "--engine": (engine, "auto")}
        changed["--formulation"] = (formulation, "constrained")
        given = {option: value for option, (value, default) in changed.items() if value != default}
        _refuse(method, given | {"--beta": beta, "--n-init": n_init, "--missing": missing or None})
        _check_method(method)
        if started_by_torchrun():
            raise ValueError(f"--method {method} runs in one process; start it without torchrun, or use --method road")
        model = AlternatingDictionaryLearning(
            n_components, update=method, coder=coder, n_nonzero_coefs=sparsity, alpha=alpha, **run
        )
    patience, notice = PATIENCE if started_by_torchrun() else 0.0, ""
    with (
        process_group(seconds("--timeout", timeout), cuda=engine == "cuda") as comm,
        contextlib.nullcontext(None) if checkpoint is None else stop_requests(patience) as stop,
    ):
        if checkpoint is not None:
            go_on = resume or is_restart()
            model.set_params(checkpoint=Checkpoint(checkpoint, seconds("--every", every), go_on, stop))
            if go_on and not any(checkpoint.glob("checkpoint-*.json")):
                notice = f"no checkpoint in {checkpoint} yet: starting from the beginning\n"
        _learn(model, data, key, output, codes == "gather", quiet, notice, comm)


def _check_keeping(checkpoint: Path | None, every: str, resume: bool, codes: str) -> None:
    """Refuse options that say nothing, or not what they should."""
    if checkpoint is None and (resume or every != "60s"):
        raise ValueError(f"{'--resume' if resume else '--every'} needs --checkpoint DIR, the folder of the checkpoints")
    if codes not in ("parts", "gather"):
        raise ValueError(f"--codes {codes} must be parts or gather")
    seconds("--every", every)


def _learn(
    model: "Learned",
    data: Path,
    key: str | None,
    output: Path,
    gather: bool,
    quiet: bool,
    notice: str,
    comm: "Comm",
) -> None:
    """Read, learn and write, as one of the ranks; rank 0 speaks, the notice first, and writes the model."""
    from roadict import checkpoints
    from roadict.gathering import OtherRankError, counts, gathered, together
    from roadict.keeper import RunStoppedError
    from roadict.tables import read_rows

    quiet = quiet or comm.rank > 0
    try:
        X = together(comm, lambda: read_rows(data, key, comm.rank, comm.size))
        n_samples = sum(counts(comm, len(X)))
        many = f", on {comm.size} ranks" if comm.size > 1 else ""
        heading = f"{notice}{data}: {n_samples} samples of {X.shape[1]} features, {X.dtype}{many}"
        keeping, stopped = model.get_params()["checkpoint"], None
        try:
            fit_with_progress(model, X, quiet, heading)
        except RunStoppedError as stop:
            stopped = stop
        if stopped is not None:
            if comm.rank > 0:
                raise SilentEndError(SIGNAL_BASE + stopped.number)
            raise WorkStoppedError(f"{stopped}; go on with --resume", SIGNAL_BASE + stopped.number)
        if comm.size > 1:
            own = model.codes_
            model.codes_ = gathered(comm, own) if gather else own[:0]
            if not gather:
                together(comm, lambda: _write_part(output, own, comm))
        together(comm, lambda: model.save(output) if comm.rank == 0 else None)
    except OtherRankError:
        raise SilentEndError(1) from None
    if comm.rank == 0 and keeping is not None:
        checkpoints.clear(Path(keeping.folder))
    if not quiet:
        report(model)
        if comm.size > 1 and not gather:
            typer.echo(f"codes: {_part(output, 0, comm.size)} and so on, in the order of the samples")
        typer.echo(f"model: {output}")


def _part(output: Path, rank: int, size: int) -> Path:
    return output.with_name(f"{output.stem}.codes-{rank}-of-{size}.npy")


def _write_part(output: Path, codes: NDArray[Any], comm: "Comm") -> None:
    from roadict.model_io import atomic_write

    with atomic_write(_part(output, comm.rank, comm.size)) as file:
        np.save(file, codes)


def fit_with_progress(model: "Learned", X: NDArray[Any], quiet: bool, heading: str) -> None:
    """Fit a model and show how far it is.

    The heading comes with the first iteration: by then data and options are in order.
    """
    with showing_warnings(), progress_bar(quiet, "learning") as advance:
        start = 0
        watch = watcher(quiet)

        def callback(snapshot: "Snapshot") -> None:
            nonlocal start
            if start == 0:
                typer.echo(heading, err=True)
            if watch is not None:
                watch(snapshot)
            if start == 0 and snapshot.iteration > 1:
                typer.echo(f"resumed after iteration {snapshot.iteration - 1}", err=True)
            start += snapshot.iteration == 1 or start == 0
            text = f"objective {snapshot.objective:.5g}  primal {snapshot.primal:.0e}  dual {snapshot.dual:.0e}"
            advance(snapshot.iteration, snapshot.max_iter, f"start {start}  {text}")

        model.set_params(callback=None if quiet else callback).fit(X)
    model.set_params(callback=None, checkpoint=None)


def report(model: "Learned") -> None:
    """Print how a fit ended."""
    unused = int((model.atom_usage_ == 0).sum())
    typer.echo(
        f"{model.stop_reason_} after {model.n_iter_} iterations: objective {model.objective_:.6g}, "
        f"relative error {model.error_:.2e}, {model.atom_usage_.sum():.2f} coefficients per sample, "
        f"{unused} of {len(model.components_)} atoms unused"
    )


def _check_method(method: str) -> None:
    from roadict.updates.pick import UPDATES

    if method not in UPDATES:
        raise ValueError(f"--method {method} is not known; use road, {', '.join(UPDATES)}")


def _refuse(method: str, options: dict[str, Any]) -> None:
    """Refuse options that are given, but belong to other methods."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} does not belong to --method {method}; leave it out")


def _one_or_three(option: str, text: str) -> float | tuple[float, float, float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) != 3:
        raise ValueError(f"{option} {text} must be one number, or three with commas between them")
    return numbers[0], numbers[1], numbers[2]
