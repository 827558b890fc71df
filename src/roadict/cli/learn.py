"""The learn command: in one process or, under torchrun, in several; with checkpoints."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from roadict.cli.choice import check_choice, curve_path, parse_components, road_cv, show_choice
from roadict.cli.console import (
    SIGNAL_BASE,
    check_output,
    naming_places,
    parse_number_or_auto,
    parse_one_or_three,
    parse_seconds,
    parse_signs,
    save,
    showing_warnings,
    stop_notice,
    telling_what_was_written,
)
from roadict.cli.fitting import fit_with_progress
from roadict.cli.given import read_known_atoms, warn_of_data
from roadict.cli.help import add_command
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
    FixedOption,
    FormulationOption,
    IterationsOption,
    KeyOption,
    MethodOption,
    MissingOption,
    ModelOption,
    PartsArgument,
    PositiveOption,
    QuietOption,
    RankJobsOption,
    ResumeOption,
    RhoOption,
    SeedOption,
    SparsityOption,
    StabilityOption,
    StartsOption,
    TimeoutOption,
    TolOption,
)
from roadict.cli.several import SilentExitError, part_of_codes, report_once, report_once_per_machine, write_part
from roadict.cli.stability import FIT_SHARE, measure_and_save, stability_summary
from roadict.cli.summary import report
from roadict.runs.signals import WorkStoppedError, kept_at_interrupt, stop_requests
from roadict.wording import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roadict.checkpoints.schedule import Checkpoint
    from roadict.cli.fitting import Learned
    from roadict.ranks.comm import Comm

SIGNAL_GRACE = 3.0
"""Seconds within which torchrun forwards a signal that the terminal has already sent to all processes."""
EVERY = "60s"


class CheckpointOptions(NamedTuple):
    """How the command writes checkpoints."""

    folder: Path
    every: float
    resume: bool


class Task(NamedTuple):
    """What the command reads and writes, and whether it is quiet."""

    data: Path
    key: str | None
    fixed: Path | None
    output: Path
    gather: bool
    stability: bool
    quiet: bool


def add_commands(app: typer.Typer) -> None:
    """Add the command to the program."""
    add_command(
        app,
        learn,
        "roadict learn patches.npy -k 64 -o model.npz --seed 0",
        "roadict learn patches.npy -k auto -o model.npz",
        "roadict learn patches.npy -k 64 -o ksvd.npz --method ksvd --sparsity 5",
        "roadict learn spectra.csv -k 16 -o parts.npz --positive both --fixed a.csv",
        "roadict learn patches.npy -k 64 -o model.npz --seed 0 --stability",
        "roadict learn patches.npy -k 64 -o model.npz --checkpoint saved --resume",
        "torchrun --nproc-per-node 2 -m roadict learn patches.npy -k 64 -o model.npz",
    )


def learn(
    data: PartsArgument,
    output: ModelOption,
    key: KeyOption = None,
    missing: MissingOption = False,
    n_components: ComponentsOption = None,
    method: MethodOption = "road",
    positive: PositiveOption = None,
    fixed: FixedOption = None,
    epsilon: EpsilonOption = "auto",
    alpha: AlphaOption = None,
    coder: CoderOption = None,
    sparsity: SparsityOption = None,
    formulation: FormulationOption = "constrained",
    beta: BetaOption = None,
    rho: RhoOption = "auto",
    max_iter: IterationsOption = None,
    tol: TolOption = 1e-4,
    n_init: StartsOption = None,
    seed: SeedOption = None,
    engine: EngineOption = "auto",
    jobs: RankJobsOption = None,
    stability: StabilityOption = False,
    quiet: QuietOption = False,
    checkpoint: CheckpointOption = None,
    every: EveryOption = EVERY,
    resume: ResumeOption = False,
    codes: CodesOption = "parts",
    timeout: TimeoutOption = "10min",
) -> None:
    """Learn a dictionary from signals and save it as a model.

    Ctrl-C ends the run and saves the best so far, a second one discards it; with --checkpoint the run can resume.
    """
    from roadict.engines.gpu.cuda import gpu_device
    from roadict.estimators import AlternatingDictionaryLearning
    from roadict.ranks.comm import process_group, started_by_torchrun

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
        "--fixed": (fixed, None),
    }
    with report_once_per_machine():
        run |= parse_signs("--positive", positive)
        saving = _checkpoint_options(checkpoint, every, resume, codes)
        timeout_s = parse_seconds("--timeout", timeout, minimum=1.0)
        if stability and started_by_torchrun():
            raise ValueError("--stability runs in one process; start learn without torchrun, or leave it out")
        number = parse_components(n_components)
        if isinstance(number, list | str):
            chosen_too = {name: road[name] for name in ("--epsilon", "--rho", "--beta", "--n-init")}
            check_choice(f"-k {n_components}", method, chosen_too | {"--alpha": (alpha, None)}, saving is not None)
        if method == "road":
            _refuse(method, {"--coder": (coder, None), "--sparsity": (sparsity, None)})
        if isinstance(number, list | str):
            make = road_cv(None if isinstance(number, str) else number, formulation, missing, engine, run)
        elif method == "road":
            make = _road(number, formulation, epsilon, alpha, beta, rho, n_init, missing, engine, run)
        else:
            _check_two_stage(method, road)
            make = partial(
                AlternatingDictionaryLearning,
                number,
                update=method,
                coder=coder,
                n_nonzero_coefs=sparsity,
                alpha=alpha,
                **run,
            )
    with process_group(timeout_s, engine) as comm, report_once(comm), _checkpointing(saving, comm) as (settings, text):
        if engine == "cuda":
            gpu_device()  # says what is missing before any work
        task = Task(data, key, fixed, output, codes == "gather", stability, quiet or comm.rank > 0)
        _learn(make() if settings is None else make(checkpoint=settings), task, text, comm)


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
        epsilon=parse_number_or_auto("--epsilon", epsilon),
        alpha=alpha,
        beta=None if beta is None else parse_one_or_three("--beta", beta),
        rho=rho if rho == "auto" else parse_one_or_three("--rho", rho),
        n_init=n_init,
        missing_values=math.nan if missing else None,
        engine=engine,
        **run,
    )


def _checkpoint_options(checkpoint: Path | None, every: str, resume: bool, codes: str) -> CheckpointOptions | None:
    """Check the options of checkpoints, and refuse those without effect."""
    if checkpoint is None and (resume or every != EVERY):
        raise ValueError(f"{'--resume' if resume else '--every'} needs --checkpoint DIR, the folder of the checkpoints")
    if codes not in ("parts", "gather"):
        raise ValueError(f"--codes {codes} must be parts or gather")
    interval = parse_seconds("--every", every)
    return None if checkpoint is None else CheckpointOptions(checkpoint, interval, resume)


@contextlib.contextmanager
def _checkpointing(options: CheckpointOptions | None, comm: "Comm") -> Iterator[tuple["Checkpoint | None", str]]:
    """Checkpoint a run until the block succeeds; yields the settings and a message to print first, or ""."""
    from roadict.checkpoints import storage
    from roadict.checkpoints.lock import FolderLock
    from roadict.checkpoints.schedule import Checkpoint
    from roadict.progress.stages import ResumedShare
    from roadict.ranks.comm import is_restart, started_by_torchrun

    if options is None:
        yield None, ""
        return
    folder, every, resume = options
    with stop_requests(SIGNAL_GRACE if started_by_torchrun() else 0.0) as stop, FolderLock(folder) as lock:
        fresh = (is_restart(comm) or resume) and not any(folder.glob("checkpoint-*.json"))
        message = f"no checkpoint in {folder} yet: starting from the beginning\n" if fresh else ""
        share = ResumedShare(storage.saved_share(folder))
        yield Checkpoint(folder, every, resume, stop, lock, share), message
        if comm.rank == 0:
            storage.clear(folder)


def _learn(model: "Learned", task: Task, start_message: str, comm: "Comm") -> None:
    """Read, learn and write on one rank; rank 0 prints, ``start_message`` first, and writes the model."""
    from roadict.checkpoints.schedule import RunStoppedError
    from roadict.ranks.collectives import on_all_ranks

    on_all_ranks(comm, lambda: _check_outputs(task, hasattr(model, "n_splits"), comm))
    X, heading = _read(model, task, comm)
    # Ranks end together only at checkpoints, and with these a run is resumed.
    keeps = model.checkpoint is None and comm.size == 1
    notice = stop_notice(task.quiet, "the best so far will be saved")
    span = (0.0, FIT_SHARE if task.stability else 1.0)
    try:
        with naming_places(task.data), kept_at_interrupt(notice) if keeps else contextlib.nullcontext() as interrupt:
            noise_found = fit_with_progress(model, X, task.quiet, start_message + heading, span, task.data)
    except RunStoppedError as stopped:
        code = SIGNAL_BASE + stopped.number
        if comm.rank > 0:
            raise SilentExitError(code) from None
        raise WorkStoppedError(f"{stopped}; continue with --resume", code) from None
    stopped_early = interrupt is not None and interrupt.heeded
    if stopped_early:
        model.stop_reason_ = "interrupted"
        path = getattr(model, "epsilon_path_", None)
        if path is not None and not (noise_found or path.exact):
            model.epsilon_path_ = None  # of atoms that were still being sought
    interrupted = interrupt is not None and interrupt.requested  # perhaps when nothing was left to stop
    codes = _write(model, task, comm, interrupted)
    written = [task.output]
    with telling_what_was_written(written):
        if stability := task.stability and not interrupted:
            measure_and_save(model, X, task.output, task.quiet)
        if hasattr(model, "cv_results_"):
            show_choice(model, written, task.quiet)
        if not task.quiet:
            report(model)
            if stability:
                typer.echo(stability_summary(model.atom_stability_))
            if codes:
                typer.echo(f"codes: {codes} and so on, in sample order")
            typer.echo(f"model: {task.output}")
    if interrupted:
        kept = "best so far" if stopped_early else "finished model"
        raise WorkStoppedError(f"interrupted: the {kept} is in {task.output}")


def _read(model: "Learned", task: Task, comm: "Comm") -> tuple["NDArray[Any]", str]:
    """Read the data of this rank, and known atoms, and check them; returns the data and a line on all of them."""
    from roadict.estimators.stability import informative
    from roadict.files.tables import read_rows
    from roadict.ranks.collectives import counts, on_all_ranks

    with showing_warnings(comm.rank == 0):
        X = on_all_ranks(comm, lambda: read_rows(task.data, task.key, comm.rank, comm.size))
        if (fixed := task.fixed) is not None:
            positive = model.positive_dict
            model.set_params(fixed_atoms=on_all_ranks(comm, lambda: read_known_atoms(fixed, positive)))
        if comm.size == 1 and not model.positive_code:  # sums of parts are not to be centred
            warn_of_data(task.data, X)
    if (sparsity := getattr(model, "n_nonzero_coefs", None)) is not None and sparsity > X.shape[1]:
        raise ValueError(f"--sparsity {sparsity} must be at most {X.shape[1]}, the number of features")
    if task.stability:
        informative(X)
    n_samples = sum(counts(comm, len(X)))
    if n_samples < 2:
        raise ValueError(f"{task.data} holds {plural(n_samples, 'sample')}, one per row; learning needs at least 2")
    shape = f"{plural(n_samples, 'sample')} of {plural(X.shape[1], 'feature')}"
    ranks = f", on {comm.size} ranks" if comm.size > 1 else ""
    return X, f"{task.data}: {shape}, {X.dtype}{ranks}"


def _write(model: "Learned", task: Task, comm: "Comm", interrupted: bool) -> Path | None:
    """Write the model, and codes that are not gathered; returns the first file of these, if any."""
    from roadict.ranks.collectives import gathered_on_root, on_all_ranks

    own = model.codes_
    if several := comm.size > 1 and own is not None:
        model.codes_ = gathered_on_root(comm, own) if task.gather else own[:0]
    steps = [partial(save, model.save, task.output, interrupted)] if comm.rank == 0 else []
    if in_parts := several and not task.gather:
        steps.append(partial(write_part, task.output, own, comm))
    on_all_ranks(comm, lambda: _each_written(steps))
    return part_of_codes(task.output, 0, comm.size, own) if in_parts else None


def _each_written(steps: "Sequence[Callable[[], None]]") -> None:
    """Write all files, also after one that had to go elsewhere."""
    from roadict.files.atomic import RescuedError

    elsewhere = []
    for step in steps:
        try:
            step()
        except RescuedError as error:
            elsewhere.append(str(error))
    if elsewhere:
        raise RescuedError("; ".join(elsewhere))


def _check_outputs(task: Task, draws: bool, comm: "Comm") -> None:
    """Refuse outputs that cannot be written or are inputs: the model on rank 0, its part of the codes on every rank."""
    from roadict.files.tables import files_of

    inputs = files_of(task.data) + (() if task.fixed is None else (task.fixed,))
    if comm.rank == 0:
        check_output(task.output, (".npz",), inputs)
        if draws:
            check_output(curve_path(task.output), (".svg",), inputs)
    if comm.size > 1 and not task.gather:
        check_output(part_of_codes(task.output, comm.rank, comm.size), (".npy",), inputs)


def _check_two_stage(method: str, road: dict[str, tuple[Any, Any]]) -> None:
    """Refuse options of road, unknown methods, and several ranks."""
    from roadict.ranks.comm import started_by_torchrun
    from roadict.updates.registry import UPDATES

    _refuse(method, road)
    if method not in UPDATES:
        raise ValueError(f"--method {method} is unknown; use road, {', '.join(UPDATES)}")
    if started_by_torchrun():
        raise ValueError(f"--method {method} runs in one process; start it without torchrun, or use --method road")


def _refuse(method: str, options: dict[str, tuple[Any, Any]]) -> None:
    """Refuse options of other methods; ``options`` maps names to value and default."""
    for option, (value, default) in options.items():
        if value != default:
            raise ValueError(f"{option} does not belong to --method {method}; leave it out")
