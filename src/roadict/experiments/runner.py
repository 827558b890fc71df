"""Carry out trials, several at a time, and keep a row of each as soon as it is done."""

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

from roadict.experiments.plan import PlantedProblem, Trial
from roadict.experiments.rows import Row, RowFile, unwritable
from roadict.experiments.trial import Finished, execute, execute_together
from roadict.files.atomic import atomic_write

PACKAGES = ("roadict", "numpy", "scipy", "numba", "scikit-learn", "scikit-image")
OF_A_GPU = ("torch", "triton")
MOST_TOGETHER = 50
"""Runs that share a GPU at most; each is a coroutine of one process."""
HELPERS = 4
"""Jobs for each process that uses the GPU, spent on processes that look for exact fits for it: several processes on one
GPU would wait for each other."""
PICTURES = "pictures"
"""Folder of the enlarged pictures, each named by the key of its row."""


def pending(trials: Iterable[Trial], folder: Path) -> list[Trial]:
    """Return the trials that have no row yet; half a row that a kill left behind is cut off."""
    files: dict[str, set[str]] = {}
    left = []
    for trial in trials:
        if trial.experiment not in files:
            files[trial.experiment] = RowFile(_path(folder, trial.experiment)).known()
        if trial.key() not in files[trial.experiment]:
            left.append(trial)
    return left


def run(
    trials: list[Trial],
    folder: Path,
    *,
    jobs: int,
    data: Path | None = None,
    finished: Callable[[Trial], None] | None = None,
) -> None:
    """Carry out trials and append their rows.

    Parameters
    ----------
    trials : list of Trial
        Without rows yet, as ``pending`` gives them.
    folder : Path
    jobs : int
        Trials at a time; the rows do not depend on it.
    data : Path or None
        Folder of the paper's pictures.
    finished : callable, default=None
        Called with every trial that is done.
    """
    files = {name: RowFile(_path(folder, name)) for name in {trial.experiment for trial in trials}}
    tell = finished or _tell_nobody
    shared = [trial for trial in trials if _shares(trial)]
    others = [[trial] for trial in trials if not _shares(trial)]
    on_gpu = max(1, jobs // HELPERS)
    for n_jobs, parts, helpers in ((on_gpu, batches(shared, on_gpu), jobs // on_gpu), (jobs, others, 0)):
        calls = (
            joblib.delayed(_execute)(batch, data, os.getpid(), platform.node(), helpers)
            for batch in _without_rows(parts, files, tell)
        )
        # Dispatched one by one and written by this process, so that a backend of other machines needs no common disk.
        for several in joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(calls):
            for done in several:
                _keep(done, folder, files[done.trial.experiment])
                tell(done.trial)


def _tell_nobody(trial: Trial) -> None:
    pass


def _without_rows(
    parts: list[list[Trial]], files: dict[str, RowFile], finished: Callable[[Trial], None]
) -> Iterator[list[Trial]]:
    """Give batches when their turn comes, less the trials that another run into the same folder has done by then."""
    for batch in parts:
        left = [trial for trial in batch if trial.key() not in files[trial.experiment].known()]
        if left:
            yield left
        for trial in batch:
            if trial not in left:
                finished(trial)


def _shares(trial: Trial) -> bool:
    """Whether the run takes little of a GPU, so that several are carried out together."""
    return trial.engine == "cuda" and isinstance(trial.problem, PlantedProblem)


def batches(trials: Iterable[Trial], jobs: int) -> list[list[Trial]]:
    """Put runs that share a GPU together, by problem and method, in as many batches as there are jobs."""
    alike: dict[Any, list[Trial]] = {}
    for trial in trials:
        alike.setdefault((trial.experiment, trial.problem, trial.method), []).append(trial)
    parts: list[list[Trial]] = []
    for several in alike.values():
        size = min(MOST_TOGETHER, -(-len(several) // jobs))
        parts += [several[i : i + size] for i in range(0, len(several), size)]
    return parts


def _execute(trials: list[Trial], data: Path | None, runner: int, host: str, helpers: int) -> list[Finished]:
    """Carry out trials in a process that ``runner``, on the machine ``host``, may have started."""
    if os.getppid() == runner:  # a process that the runner started on this machine
        _end_with(runner)
    elif os.name == "posix" and platform.node() == host and os.getpid() != runner and not _runs(runner):
        os._exit(1)  # the runner was killed while this process was starting
    try:
        if len(trials) == 1:
            finished = [execute(trials[0], data)]
        else:
            finished = execute_together(trials, _helpers(helpers) if helpers > 1 else None)
    except ValueError as failure:
        raise ValueError(f"{_named(trials[0])} failed ({failure}); the rows of the others are kept") from failure
    # Told by who computed it, which may be another machine than the one that writes the row.
    engine = trials[0].engine
    return [replace(done, versions=versions(engine), machine=machine(engine)) for done in finished]


def _named(trial: Trial) -> str:
    return f"{trial.experiment}, {trial.panel}, {trial.method.name}, seed {trial.seed}"


def _runs(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        pass
    return True


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this process soon after its parent: a worker does not notice by itself that its runner was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _helpers(count: int) -> Executor:
    """Processes for this one, with a thread each, as long as it lives."""
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    helpers: Executor = ProcessPoolExecutor(count, initializer=_begin_helping, initargs=(os.getpid(),), env=alone)
    return helpers


def _begin_helping(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is helped decides what Ctrl-C means
    _end_with(parent)


def _keep(done: Finished, folder: Path, file: RowFile) -> None:
    try:
        json.dumps(done.result, allow_nan=False)
    except ValueError:
        raise ValueError(f"{_named(done.trial)} gave a number that is not finite ({done.result})") from None
    key = done.trial.key()
    for ending, picture in done.pictures.items():  # before their row, so that a row always has its pictures
        path = folder / PICTURES / f"{key}{ending}.png"
        try:
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path) as target:
                target.write(picture)
        except OSError as failure:
            raise unwritable(path, failure) from None
    file.append(make_row(done))


def make_row(done: Finished) -> Row:
    """Everything that is known of a trial; only ``seconds`` differs from run to run on one machine."""
    return {
        "key": done.trial.key(),
        "settings": done.trial.settings(),
        "result": done.result,
        "seconds": done.seconds,
        "versions": done.versions or versions(done.trial.engine),
        "machine": done.machine or machine(done.trial.engine),
    }


@lru_cache
def versions(engine: str) -> dict[str, str]:
    """Versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for name in PACKAGES + OF_A_GPU * (engine == "cuda"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@lru_cache
def machine(engine: str) -> str:
    """The machine in a few words, with its GPU where that has computed."""
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
