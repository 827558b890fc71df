"""Run one trial. The same trial gives the same numbers, whatever runs at the same time; except for timed methods."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from roadict.drawing.raster import atom_sheet, png
from roadict.estimators import ROAD, AlternatingDictionaryLearning, fit_all
from roadict.experiments.images import Images, load
from roadict.experiments.methods import Method
from roadict.experiments.plan import PictureProblem, PlantedProblem, Trial
from roadict.experiments.timed import run_timed
from roadict.metrics import dictionary_error, psnr
from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.resize import resize
from roadict.runs.snapshot import Snapshot
from roadict.seeds import TRIAL_DRAW, TRIAL_START, streams
from roadict.synthetic import Planted, planted
from roadict.two_stage import starting_atoms

ATOMS, ORIGINAL = "-atoms", "-original"
"""Suffixes of the file names of the atoms and of the original picture."""
TRACED = frozenset(round(10 ** (step / 8)) for step in range(33))
"""Iterations after which the error is recorded, evenly on a log scale up to 10,000."""


@dataclass(frozen=True)
class Finished:
    """A finished trial: numbers for the row, times, and pictures (PNG) by the suffixes of their names.

    Versions, machine and commit are those of the process that ran it; empty: this process.
    """

    trial: Trial
    result: dict[str, Any]
    seconds: dict[str, float]
    pictures: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Failed:
    """Trials that failed, and why the first of them did."""

    trials: tuple[Trial, ...]
    reason: str


def execute(trial: Trial, data: Path | None) -> Finished:
    """Run a trial on one thread, as several trials run in parallel."""
    with _quietly():
        return _execute(trial, data)


def execute_batch(trials: Sequence[Trial], executor: Executor | None = None) -> tuple[list[Finished], Failed | None]:
    """Run a batch of ROAD trials on one GPU; each is recorded with an equal share of the time.

    Processes of ``executor``, if given, compute the exact finish in parallel.
    """
    clock, reason = time.perf_counter(), ""
    with _quietly():
        recoveries = [_Recovery(trial) for trial in trials]
        models = [recovery.model for recovery in recoveries if isinstance(recovery.model, ROAD)]
        try:
            fit_all(models, [recovery.truth.data for recovery in recoveries], executor=executor)
        except ValueError as failure:  # raised after all fits have ended: a fit that failed has no atoms
            reason = str(failure)
    fitted = [hasattr(model, "components_") for model in models]
    results = [recovery.result() if done else {} for recovery, done in zip(recoveries, fitted, strict=True)]
    share = round((time.perf_counter() - clock) / len(trials), 4)
    seconds = {"wall": share, "cpu": share}
    finished = [Finished(trial, result, seconds) for trial, result in zip(trials, results, strict=True) if result]
    failed = tuple(trial for trial, done in zip(trials, fitted, strict=True) if not done)
    return finished, Failed(failed, reason) if failed else None


@contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", UserWarning)  # rows record which runs have not converged
        yield


def _execute(trial: Trial, data: Path | None) -> Finished:
    clock, cpu = time.perf_counter(), time.process_time()
    pictures: dict[str, bytes] = {}
    if isinstance(trial.problem, PictureProblem):
        result, pictures = _enlarge(trial.problem, trial, load(trial.problem.picture, data))
    elif trial.method.learner == "timed":
        result, used = run_timed(trial.method, trial.problem, trial.seed)
        seconds = {"wall": round(time.perf_counter() - clock, 4), "cpu": round(used, 4)}
        return Finished(trial, result, seconds)
    else:
        recovery = _Recovery(trial)
        recovery.model.fit(recovery.truth.data)
        result = recovery.result()
    seconds = {"wall": round(time.perf_counter() - clock, 4), "cpu": round(time.process_time() - cpu, 4)}
    return Finished(trial, result, seconds, pictures)


class _Recovery:
    """A planted problem, the learner that is to recover its atoms, and the result."""

    def __init__(self, trial: Trial) -> None:
        assert isinstance(trial.problem, PlantedProblem)
        problem = trial.problem
        self.truth = planted(
            problem.n_samples,
            problem.n_features,
            problem.n_components,
            sparsity=problem.sparsity,
            probability=problem.probability,
            snr_db=problem.snr_db,
            random_state=trial.seed,
        )
        self._tracer = _Tracer(self.truth) if problem.trace else None
        self.model = _learner(problem, trial, self.truth, self._tracer)

    def result(self) -> dict[str, Any]:
        """Results of the fitted learner, for a row."""
        model, truth = self.model, self.truth.dictionary
        error = dictionary_error(model.components_, truth)
        return {
            "error": error,
            "error_greedy": dictionary_error(model.components_, truth, "greedy"),
            "data_error": float(model.error_),
            "nonzeros": float(model.atom_usage_.sum()),
            "iterations": int(model.n_iter_),
            "stop_reason": model.stop_reason_,
        } | ({} if self._tracer is None else {"trace": self._tracer.ended(error)})


class _Tracer:
    """Records the error along the iterations, counted over all starts."""

    def __init__(self, truth: Planted) -> None:
        self._truth = truth.dictionary
        self._count = 0
        self._trace: dict[int, float] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        self._count += 1
        if self._count in TRACED:
            self._trace[self._count] = dictionary_error(snapshot.dictionary, self._truth)

    def ended(self, error: float) -> list[tuple[int, float]]:
        """The trace, ended by the error of the returned dictionary."""
        return [*(self._trace | {self._count: error}).items()]


def _learner(
    problem: PlantedProblem, trial: Trial, truth: Planted, callback: Callable[[Snapshot], None] | None
) -> ROAD | AlternatingDictionaryLearning:
    method = trial.method
    (rng,) = streams(trial.seed, TRIAL_START, 1)
    start = None if method.own_start else starting_atoms(truth.data, problem.n_components, rng)
    shared: dict[str, Any] = {"dict_init": start, "callback": callback, "random_state": trial.seed, "n_jobs": 1}
    parameters = dict(method.parameters) | shared
    if method.learner == "road":
        if method.true_noise and problem.snr_db is not None:
            parameters["epsilon"] = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
        return ROAD(problem.n_components, engine=trial.engine, **parameters)
    return AlternatingDictionaryLearning(
        problem.n_components,
        n_nonzero_coefs=_coefficients(problem) if method.true_sparsity else None,
        alpha=_alpha(method, truth.data),
        **parameters,
    )


def _coefficients(problem: PlantedProblem) -> int:
    """The true number of coefficients, or the mean."""
    return problem.sparsity or round((problem.probability or 0.0) * problem.n_components)


def _alpha(method: Method, data: NDArray[np.float64]) -> float | None:
    if method.alpha_share is None:
        return None
    return method.alpha_share * float(np.sqrt(np.mean(np.sum(data**2, axis=1))))


def _enlarge(problem: PictureProblem, trial: Trial, images: Images) -> tuple[dict[str, Any], dict[str, bytes]]:
    truth = images.test
    height, width = truth.shape
    small = resize(truth, (height // problem.scale, width // problem.scale))
    if trial.method.learner == "bicubic":
        big, others = resize(small, truth.shape), {ORIGINAL: png(truth)}
    else:
        training = images.training
        if images.draw is not None:
            (rng,) = streams(trial.seed, TRIAL_DRAW, 1)
            training = tuple(training[i] for i in rng.choice(len(training), images.draw, replace=False))
        recipe = dict(trial.method.parameters)
        if problem.picture == "digit":
            recipe |= {"features": "pixels", "patch_size": 6, "stride": 4}
        model = SuperResolution(
            problem.scale,
            approach=problem.approach,
            method=recipe.pop("method"),
            n_components=problem.n_components,
            max_iter=problem.max_iter,
            recipe=Recipe(max_samples=20_000, engine=trial.engine or "auto", **recipe),
            random_state=trial.seed,
            n_jobs=1,
        )
        big = model.fit(training).predict(small)
        others = {ATOMS: png(atom_sheet(model.predictor_.arrays()["high"]))}
    return {"psnr": psnr(big, truth)}, {"": png(big)} | others
