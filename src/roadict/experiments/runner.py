"""Run trials, several at a time, and save a row of each as soon as it is done."""

import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from roadict.experiments.execution import execute
from roadict.experiments.plan import PlantedProblem, Trial
from roadict.experiments.provenance import commit
from roadict.experiments.rows import Row, RowFile, code_of, read_rows, unwritable
from roadict.experiments.trial import Failed, Finished, execute_batch
from roadict.files.atomic import atomic_write
from roadict.wording import of

PACKAGES = ("roadict", "numpy", "scipy", "numba", "scikit-learn", "scikit-image")
GPU_PACKAGES = ("torch", "triton")
MAX_BATCH = 50
"""Runs in a batch on a GPU; each is a coroutine of one process."""
JOBS_PER_GPU_PROCESS = 4
"""Jobs that become one process on the GPU and workers for its exact finish: several processes on one GPU would wait
for each other."""
PICTURES = "pictures"
"""Folder of the enlarged pictures, named by the keys of their rows."""


def other_rows(trials: Iterable[Trial], folder: Path) -> int:
    """Number of rows of these methods that other code made: a run neither uses nor changes them."""
    digests = {(trial.experiment, trial.method.name): trial.settings()["sources"] for trial in trials}
    number = 0
    for experiment in sorted({name for name, _ in digests}):
        path = _path(folder, experiment)
        for row in read_rows(path) if path.is_file() else []:
            settings = row.get("settings")
            method = settings.get("method") if isinstance(settings, dict) else None
            digest = digests.get((experiment, str(method.get("name")))) if isinstance(method, dict) else None
            number += digest is not None and code_of(row) != digest
    return number


def pending(trials: Iterable[Trial], folder: Path) -> list[Trial]:
    """Return the trials that have no row yet; an incomplete row of a killed run is truncated."""
    keys: dict[str, set[str]] = {}
    remaining = []
    for trial in trials:
        if trial.experiment not in keys:
            keys[trial.experiment] = RowFile(_path(folder, trial.experiment)).read_keys()
        if trial.key() not in keys[trial.experiment]:
            remaining.append(trial)
    return remaining


def run(
    trials: list[Trial],
    folder: Path,
    *,
    jobs: int,
    planned: int = 0,
    data: Path | None = None,
    finished: Callable[[Trial], None] | None = None,
) -> None:
    """Run trials and append their rows; an error for those that failed comes when all others are done.

    Parameters
    ----------
    trials : list of Trial
        Without rows yet, as ``pending`` gives them.
    folder : Path
    jobs : int
        Trials at a time; rows depend on it only at equal CPU time.
    planned : int, default=0
        Trials of every method that the whole run is to make, for the rows: a page can then say how many are missing.
    data : Path or None
        Folder of the paper's pictures.
    finished : callable, default=None
        Called with every trial that is done.
    """
    files = {name: RowFile(_path(folder, name)) for name in {trial.experiment for trial in trials}}
    report = finished or (lambda trial: None)
    shared = [trial for trial in trials if _shares_gpu(trial)]
    others = [[trial] for trial in trials if not _shares_gpu(trial)]
    on_gpu = max(1, jobs // JOBS_PER_GPU_PROCESS)
    failures: list[Failed] = []
    for n_jobs, parts, n_workers in ((on_gpu, batches(shared, on_gpu), jobs // on_gpu), (jobs, others, 0)):
        calls = (
            joblib.delayed(_execute)(batch, data, os.getpid(), platform.node(), n_workers)
            for batch in _without_rows(parts, files, report)
        )
        # Dispatched one by one and written by this process, so that a backend on other machines needs no shared disk.
        for results, failed in joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(calls):
            failures += [failed] * (failed is not None)
            for done in results:
                if _is_finite(done.result):
                    _save(done, folder, files[done.trial.experiment], planned)
                    report(done.trial)
                else:
                    failures.append(Failed((done.trial,), f"gave a number that is not finite: {done.result}"))
    if failures:
        raise ValueError(_told(failures, len(trials)))


def _without_rows(
    parts: list[list[Trial]], files: dict[str, RowFile], finished: Callable[[Trial], None]
) -> Iterator[list[Trial]]:
    """Yield batches when they are due, without the trials that another run into the same folder has finished."""
    for batch in parts:
        remaining = [trial for trial in batch if trial.key() not in files[trial.experiment].read_keys()]
        if remaining:
            yield remaining
        for trial in batch:
            if trial not in remaining:
                finished(trial)


def _shares_gpu(trial: Trial) -> bool:
    """Whether the run uses little of a GPU, so that several run in one batch."""
    return trial.engine == "cuda" and isinstance(trial.problem, PlantedProblem)


def batches(trials: Iterable[Trial], jobs: int) -> list[list[Trial]]:
    """Group runs that share a GPU by problem and method, each group in as many batches as there are jobs."""
    groups: dict[Any, list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.experiment, trial.problem, trial.method), []).append(trial)
    parts: list[list[Trial]] = []
    for group in groups.values():
        size = min(MAX_BATCH, -(-len(group) // jobs))
        parts += [group[i : i + size] for i in range(0, len(group), size)]
    return parts


def _execute(
    trials: list[Trial], data: Path | None, runner: int, host: str, n_workers: int
) -> tuple[list[Finished], Failed | None]:
    """Run trials in a process that ``runner``, on the machine ``host``, may have started."""
    if os.getppid() == runner:  # a process that the runner started on this machine
        _exit_with_parent(runner)
    elif os.name == "posix" and platform.node() == host and os.getpid() != runner and not _is_running(runner):
        os._exit(1)  # the runner was killed while this process was starting
    failed = None
    if len(trials) > 1:
        finished, failed = execute_batch(trials, _workers(n_workers) if n_workers > 1 else None)
    else:
        try:
            finished = [execute(trials[0], data)]
        except ValueError as failure:
            finished, failed = [], Failed((trials[0],), str(failure))
    # Set here: another machine may write the row.
    engine = trials[0].engine
    return [
        replace(done, versions=versions(engine), machine=machine(engine), commit=commit()) for done in finished
    ], failed


def _told(failures: list[Failed], total: int) -> str:
    """Say how many trials failed, and why the first did."""
    failed = [trial for failure in failures for trial in failure.trials]
    first = f"{_named(failed[0])} ({failures[0].reason})"
    which = ", first" if len(failed) > 1 else ":"
    saved = "; the rows of the others are saved" if len(failed) < total else ""
    return f"{of(len(failed), total, 'trial')} failed{which} {first}{saved}"


def _named(trial: Trial) -> str:
    return f"{trial.experiment}, {trial.panel}, {trial.method.name}, seed {trial.seed}"


def _is_running(process: int) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return True


@lru_cache(maxsize=1)
def _exit_with_parent(parent: int) -> None:
    """Exit soon after the parent: a worker does not notice by itself that its runner was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _workers(count: int) -> Executor:
    """Worker processes of this one, with a thread each."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    workers: Executor = ProcessPoolExecutor(count, initializer=_init_worker, initargs=(os.getpid(),), env=one_thread)
    return workers


def _init_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _exit_with_parent(parent)


def _is_finite(result: dict[str, Any]) -> bool:
    """Whether all numbers are finite: JSON has no others."""
    try:
        json.dumps(result, allow_nan=False)
    except ValueError:
        return False
    return True


def _save(done: Finished, folder: Path, file: RowFile, planned: int) -> None:
    key = done.trial.key()
    for ending, picture in done.pictures.items():  # before their row, so that a row always has its pictures
        path = folder / PICTURES / f"{key}{ending}.png"
        try:
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path) as target:
                target.write(picture)
        except OSError as failure:
            raise unwritable(path, failure) from None
    file.append(make_row(done, planned))


def make_row(done: Finished, planned: int = 0) -> Row:
    """Settings, result and origin of a trial.

    Only ``seconds`` differs between runs of one commit on one machine, except for methods at equal CPU time.
    ``planned`` is the number of trials that the run was to make; 0: unknown.
    """
    return {
        "key": done.trial.key(),
        "settings": done.trial.settings(),
        "result": done.result,
        "seconds": done.seconds,
        "versions": done.versions or versions(done.trial.engine),
        "machine": done.machine or machine(done.trial.engine),
        "commit": done.commit or commit(),
    } | ({"trials": planned} if planned else {})


@lru_cache
def versions(engine: str) -> dict[str, str]:
    """Versions of Python and of the packages in use."""
    found = {"python": platform.python_version()}
    for name in PACKAGES + GPU_PACKAGES * (engine == "cuda"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@lru_cache
def machine(engine: str) -> str:
    """Short description of the machine, with its GPU if that was used."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {model}{_gpu(engine)}"


def _gpu(engine: str) -> str:
    torch = sys.modules.get("torch")
    if engine != "cuda" or torch is None or not torch.cuda.is_available():
        return ""
    return f", {torch.cuda.get_device_name()}"


def _path(folder: Path, experiment: str) -> Path:
    return folder / f"{experiment}.jsonl"
