"""The command that learns, in one process or, under torchrun, in several; with checkpoints."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from roadict.cli.console import (
    BAD_INPUT,
    EXPECTED,
    check_output,
    complain,
    number_or_word,
    one_line,
    one_or_three,
    progress_bar,
    seconds,
    showing_warnings,
    watcher,
)
from roadict.cli.help import examples
from roadict.cli.options import (
    AlphaOption,
    BetaOption,
    CheckpointOption,
    CoderOption,
    CodesOption,
    ComponentsOption,
    EngineOption,
    EpsilonOption,
    EveryOption,
    FormulationOption,
    IterationsOption,
    KeyOption,
    MethodOption,
    MissingOption,
    ModelOption,
    PartsArgument,
    QuietOption,
    RankJobsOption,
    ResumeOption,
    RhoOption,
    SeedOption,
    SparsityOption,
    StartsOption,
    TimeoutOption,
    TolOption,
)
from roadict.runs.signals import WorkStoppedError, stop_requests

if TYPE_CHECKING:
    from roadict.checkpoints.schedule import Checkpoint
    from roadict.estimators import ROAD, AlternatingDictionaryLearning
    from roadict.ranks.comm import Comm

    Learned = ROAD | AlternatingDictionaryLearning

PATIENCE = 3.0
"""Seconds within which torchrun passes on a signal that the terminal has sent to all processes already."""
SIGNAL_BASE = 128
"""Exit status of a process that a signal has ended, less the signal's number."""
EVERY = "60s"


class SilentEndError(Exception):
    """Another rank tells why the run ends; this one ends with a status."""

    def __init__(self, code: int = BAD_INPUT) -> None:
        super().__init__()
        self.code = code


class Saving(NamedTuple):
    """How the command saves its run."""

    folder: Path
    every: float
    resume: bool


class Task(NamedTuple):
    """What the command reads and writes, and whether it speaks."""

    data: Path
    key: str | None
    output: Path
    gather: bool
    quiet: bool


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
    output: ModelOption,
    n_components: ComponentsOption = None,
    method: MethodOption = "road",
    coder: CoderOption = None,
    sparsity: SparsityOption = None,
    formulation: FormulationOption = "constrained",
    epsilon: EpsilonOption = "auto",
    alpha: AlphaOption = None,
    beta: BetaOption = None,
    rho: RhoOption = "auto",
    max_iter: IterationsOption = None,
    tol: TolOption = 1e-4,
    n_init: StartsOption = None,
    missing: MissingOption = False,
    engine: EngineOption = "auto",
    seed: SeedOption = None,
    jobs: RankJobsOption = None,
    checkpoint: CheckpointOption = None,
    every: EveryOption = EVERY,
    resume: ResumeOption = False,
    codes: CodesOption = "parts",
    timeout: TimeoutOption = "10min",
    key: KeyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Learn a dictionary from signals and save it as a model."""
    from roadict.estimators import AlternatingDictionaryLearning
    from roadict.ranks.comm import process_group

    run: dict[str, Any] = {"tol": tol, "random_state": seed, "n_jobs": jobs}
    run |= {} if max_iter is None else {"max_iter": max_iter}
    road: dict[str, tuple[Any, Any]] = {
        "--formulation": (formulation, "constrained"),
        "--epsilon": (epsilon, "auto"),
        "--rho": (rho, "auto"),
        "--engine": (engine, "auto"),
        "--beta": (beta, None),
        "--n-init": (n_init, None),
        "--missing": (missing, False),
    }
    with _one_voice_per_machine():
        saving = _checked_saving(checkpoint, every, resume, codes)
        patience = seconds("--timeout", timeout, fewest=1.0)
        if method == "road":
            _refuse(method, {"--coder": (coder, None), "--sparsity": (sparsity, None)})
            make = _road(n_components, formulation, epsilon, alpha, beta, rho, n_init, missing, engine, run)
        else:
            _check_two_stage(method, road)
            make = partial(
                AlternatingDictionaryLearning,
                n_components,
                update=method,
                coder=coder,
                n_nonzero_coefs=sparsity,
                alpha=alpha,
                **run,
            )
    with process_group(patience, engine) as comm, _one_voice(comm), _saved(saving, comm) as (saved, notice):
        task = Task(data, key, output, codes == "gather", quiet or comm.rank > 0)
        _learn(make(checkpoint=saved), task, notice, comm)


def _road(
    n_components: int | None,
    formulation: str,
    epsilon: str,
    alpha: float | None,
    beta: str | None,
    rho: str,
    n_init: int | None,
    missing: bool,
    engine: str,
    run: dict[str, Any],
) -> "Callable[..., Learned]":
    from roadict.estimators import ROAD

    return partial(
        ROAD,
        n_components,
        formulation=formulation,
        epsilon=number_or_word("--epsilon", epsilon),
        alpha=alpha,
        beta=None if beta is None else one_or_three("--beta", beta),
        rho=rho if rho == "auto" else one_or_three("--rho", rho),
        n_init=n_init,
        missing_values=np.nan if missing else None,
        engine=engine,
        **run,
    )


def _checked_saving(checkpoint: Path | None, every: str, resume: bool, codes: str) -> Saving | None:
    """Refuse options that say nothing, or not what they should."""
    if checkpoint is None and (resume or every != EVERY):
        raise ValueError(f"{'--resume' if resume else '--every'} needs --checkpoint DIR, the folder of the checkpoints")
    if codes not in ("parts", "gather"):
        raise ValueError(f"--codes {codes} must be parts or gather")
    pause = seconds("--every", every)
    return None if checkpoint is None else Saving(checkpoint, pause, resume)


@contextlib.contextmanager
def _one_voice_per_machine() -> Iterator[None]:
    """Of the processes that one torchrun has started, all with the same options, one says what is wrong with them."""
    try:
        yield
    except ValueError:
        if int(os.environ.get("LOCAL_RANK", "0")) > 0:
            raise SilentEndError from None
        raise


@contextlib.contextmanager
def _one_voice(comm: "Comm") -> Iterator[None]:
    """Where several ranks meet the same failure, one tells it, at once: torchrun ends the others with the first."""
    from roadict.engines.gpu.cuda import GpuError
    from roadict.ranks.collectives import OtherRankError
    from roadict.ranks.comm import RankLostError, is_first_to_say

    try:
        yield
    except OtherRankError:
        raise SilentEndError from None
    except RankLostError:
        raise
    except (*EXPECTED, GpuError) as failure:
        text = one_line(failure)
        if is_first_to_say(comm, text):
            complain(text)
        raise SilentEndError from None


@contextlib.contextmanager
def _saved(saving: Saving | None, comm: "Comm") -> Iterator[tuple["Checkpoint | None", str]]:
    """Save a run until the block has ended well; yields how, and what is to be said first, or nothing."""
    from roadict.checkpoints import storage
    from roadict.checkpoints.lock import FolderLock
    from roadict.checkpoints.schedule import Checkpoint
    from roadict.ranks.comm import is_restart, started_by_torchrun

    if saving is None:
        yield None, ""
        return
    folder, every, resume = saving
    with stop_requests(PATIENCE if started_by_torchrun() else 0.0) as stop, FolderLock(folder) as lock:
        fresh = (is_restart(comm) or resume) and not any(folder.glob("checkpoint-*.json"))
        notice = f"no checkpoint in {folder} yet: starting from the beginning\n" if fresh else ""
        yield Checkpoint(folder, every, resume, stop, lock), notice
        if comm.rank == 0:
            storage.clear(folder)


def _learn(model: "Learned", task: Task, notice: str, comm: "Comm") -> None:
    """Read, learn and write, as one of the ranks; rank 0 speaks, the notice first, and writes the model."""
    from roadict.checkpoints.schedule import RunStoppedError
    from roadict.files.tables import read_rows
    from roadict.ranks.collectives import counts, gathered_first, together

    output = task.output
    together(comm, lambda: _check_outputs(task, comm))
    X = together(comm, lambda: read_rows(task.data, task.key, comm.rank, comm.size))
    many = f", on {comm.size} ranks" if comm.size > 1 else ""
    n_samples = sum(counts(comm, len(X)))
    heading = f"{notice}{task.data}: {n_samples} samples of {X.shape[1]} features, {X.dtype}{many}"
    try:
        fit_with_progress(model, X, task.quiet, heading)
    except RunStoppedError as stopped:
        code = SIGNAL_BASE + stopped.number
        if comm.rank > 0:
            raise SilentEndError(code) from None
        raise WorkStoppedError(f"{stopped}; continue with --resume", code) from None
    own = model.codes_
    if comm.size > 1:
        model.codes_ = gathered_first(comm, own) if task.gather else own[:0]
        if not task.gather:
            together(comm, lambda: _write_part(output, own, comm))
    together(comm, lambda: model.save(output) if comm.rank == 0 else None)
    if not task.quiet:
        report(model)
        if comm.size > 1 and not task.gather:
            typer.echo(f"codes: {_part(output, 0, comm.size)} and so on, in the order of the samples")
        typer.echo(f"model: {output}")


def _check_outputs(task: Task, comm: "Comm") -> None:
    """Refuse outputs that cannot be written or are read: the model by rank 0, its part of the codes by every rank."""
    from roadict.files.tables import files_of

    inputs = files_of(task.data)
    if comm.rank == 0:
        check_output(task.output, (".npz",), inputs)
    if comm.size > 1 and not task.gather:
        check_output(_part(task.output, comm.rank, comm.size), (".npy",), inputs)


def _part(output: Path, rank: int, size: int) -> Path:
    return output.with_name(f"{output.stem}.codes-{rank}-of-{size}.npy")


def _write_part(output: Path, codes: NDArray[Any], comm: "Comm") -> None:
    from roadict.files.atomic import atomic_write

    with atomic_write(_part(output, comm.rank, comm.size)) as file:
        np.save(file, codes)


def fit_with_progress(model: "Learned", X: NDArray[Any], quiet: bool, heading: str) -> None:
    """Fit a model and show how far it is.

    The heading comes with the first iteration: by then data and options are in order.
    """
    from roadict.progress.terminal import measures_text

    if quiet:
        with showing_warnings():
            model.fit(X)
        return
    with showing_warnings(), progress_bar(quiet, "learning") as advance:
        watch = watcher(quiet)
        for index, snapshot in enumerate(model.iter_fit(X)):
            if index == 0:
                typer.echo(heading, err=True)
                if snapshot.iteration > 1:
                    typer.echo(f"resumed after iteration {snapshot.iteration - 1}", err=True)
            if watch is not None:
                watch(snapshot)
            advance(snapshot.iteration, snapshot.max_iter, measures_text(snapshot))


def report(model: "Learned") -> None:
    """Print how a fit ended."""
    unused = int((model.atom_usage_ == 0).sum())
    typer.echo(
        f"{model.stop_reason_} after {model.n_iter_} iterations{_starts(model)}: objective {model.objective_:.6g}, "
        f"relative error {model.error_:.2e}, {model.atom_usage_.sum():.2f} coefficients per sample, "
        f"{unused} of {len(model.components_)} atoms unused"
    )


def _starts(model: "Learned") -> str:
    """Say whether the exact finish made the fit, and how many starts of ROAD agreed."""
    if getattr(model, "exact_", False):
        return ", by the exact finish"
    if getattr(model, "n_starts_", 1) > 1:
        return f", {model.n_starts_agreed_} of {model.n_starts_} starts agree"
    return ""


def _check_two_stage(method: str, road: dict[str, tuple[Any, Any]]) -> None:
    """Refuse options of road, methods that are not known, and ranks."""
    from roadict.ranks.comm import started_by_torchrun
    from roadict.updates.registry import UPDATES

    _refuse(method, road)
    if method not in UPDATES:
        raise ValueError(f"--method {method} is not known; use road, {', '.join(UPDATES)}")
    if started_by_torchrun():
        raise ValueError(f"--method {method} runs in one process; start it without torchrun, or use --method road")


def _refuse(method: str, options: dict[str, tuple[Any, Any]]) -> None:
    """Refuse options, each with its default, that are given but belong to other methods."""
    for option, (value, default) in options.items():
        if value != default:
            raise ValueError(f"{option} does not belong to --method {method}; leave it out")
