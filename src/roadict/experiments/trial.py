"""Carry out one trial. The same trial gives the same numbers, whatever runs beside it."""

import math
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

from roadict.drawing.raster import grey, mosaic, png
from roadict.estimators import ROAD, AlternatingDictionaryLearning, fit_all
from roadict.experiments.images import Material, load
from roadict.experiments.methods import Method
from roadict.experiments.plan import PictureProblem, PlantedProblem, Trial
from roadict.metrics import dictionary_error, psnr
from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.resize import resize
from roadict.runs.snapshot import Snapshot
from roadict.seeds import streams
from roadict.synthetic import Planted, planted
from roadict.two_stage import starting_atoms

ATOMS, ORIGINAL = "-atoms", "-original"
"""Endings of the names of a picture of atoms, and of the one that was to be enlarged."""
SHEET = 8
"""Rows and columns of a picture of atoms, at most."""
START_KEY, DRAW_KEY = 21, 22
"""Set the random numbers of a start and of a draw of pictures apart from the data's, so that no start is the truth."""
TRACED = frozenset(round(10 ** (step / 8)) for step in range(33))
"""Iterations after which the error is kept, evenly on a log scale up to 10,000."""


@dataclass(frozen=True)
class Finished:
    """What a trial gave: numbers for the row, its times, and perhaps pictures (PNG) by the ending of their names.

    Versions and machine are of whoever carried it out; empty: of this process.
    """

    trial: Trial
    result: dict[str, Any]
    seconds: dict[str, float]
    pictures: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""


def execute(trial: Trial, data: Path | None) -> Finished:
    """Carry out a trial on one thread, as trials run beside each other."""
    with _quietly():
        return _execute(trial, data)


def execute_together(trials: Sequence[Trial], executor: Executor | None = None) -> list[Finished]:
    """Carry out runs of ROAD that share a GPU; each is said to have taken its share of the time.

    Processes of ``executor``, if there are any, carry out the exact finish meanwhile.
    """
    clock = time.perf_counter()
    with _quietly():
        recoveries = [_Recovery(trial) for trial in trials]
        models = [recovery.model for recovery in recoveries if isinstance(recovery.model, ROAD)]
        fit_all(models, [recovery.truth.data for recovery in recoveries], executor=executor)
    results = [recovery.result() for recovery in recoveries]
    share = round((time.perf_counter() - clock) / len(trials), 4)
    seconds = {"wall": share, "cpu": share}
    return [Finished(trial, result, seconds) for trial, result in zip(trials, results, strict=True)]


@contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", UserWarning)  # rows tell which runs have not converged
        yield


def _execute(trial: Trial, data: Path | None) -> Finished:
    clock, cpu = time.perf_counter(), time.process_time()
    pictures: dict[str, bytes] = {}
    if isinstance(trial.problem, PictureProblem):
        result, pictures = _enlarge(trial.problem, trial, load(trial.problem.picture, data))
    else:
        recovery = _Recovery(trial)
        recovery.model.fit(recovery.truth.data)
        result = recovery.result()
    seconds = {"wall": round(time.perf_counter() - clock, 4), "cpu": round(time.process_time() - cpu, 4)}
    return Finished(trial, result, seconds, pictures)


class _Recovery:
    """A planted problem, the learner that is to find its atoms, and what came of it."""

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
        """Numbers of the fitted learner, for a row."""
        model, truth = self.model, self.truth.dictionary
        error = dictionary_error(model.components_, truth)
        return {
            "error": error,
            "error_greedy": dictionary_error(model.components_, truth, "greedy"),
            "data_error": float(model.error_),
            "nonzeros": float((model.codes_ != 0).sum(axis=1).mean()),
            "iterations": int(model.n_iter_),
            "stop_reason": model.stop_reason_,
        } | ({} if self._tracer is None else {"trace": self._tracer.ended(error)})


class _Tracer:
    """The error along the iterations of all starts: after so much work, where there are several."""

    def __init__(self, truth: Planted) -> None:
        self._truth = truth.dictionary
        self._count = 0
        self._trace: dict[int, float] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        self._count += 1
        if self._count in TRACED:
            self._trace[self._count] = dictionary_error(snapshot.dictionary, self._truth)

    def ended(self, error: float) -> list[tuple[int, float]]:
        """The trace with what the run returned as its end."""
        return [*(self._trace | {self._count: error}).items()]


def _learner(
    problem: PlantedProblem, trial: Trial, truth: Planted, callback: Callable[[Snapshot], None] | None
) -> ROAD | AlternatingDictionaryLearning:
    method = trial.method
    (rng,) = streams(trial.seed, START_KEY, 1)
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


def _enlarge(problem: PictureProblem, trial: Trial, material: Material) -> tuple[dict[str, Any], dict[str, bytes]]:
    truth = material.test
    height, width = truth.shape
    small = resize(truth, (height // problem.scale, width // problem.scale))
    if trial.method.learner == "bicubic":
        big, others = resize(small, truth.shape), {ORIGINAL: png(truth)}
    else:
        training = material.training
        if material.draw is not None:
            (rng,) = streams(trial.seed, DRAW_KEY, 1)
            training = tuple(training[i] for i in rng.choice(len(training), material.draw, replace=False))
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


def atom_sheet(atoms: NDArray[Any]) -> NDArray[np.uint8]:
    """Square atoms side by side, the largest first, as greys and opacities; each on its own scale, grey is zero.

    Examples
    --------
    >>> atom_sheet(np.eye(4)).shape
    (5, 5, 2)
    """
    columns = min(SHEET, math.isqrt(len(atoms)))
    largest = np.argsort(-np.linalg.norm(atoms, axis=1), kind="stable")[: columns**2]
    return grey(mosaic(atoms[largest], columns))
