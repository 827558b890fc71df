"""Learners at equal CPU time: each gets that of ROAD's defaults on the same trial, for as many restarts as fit in.

Of the restarts, the one with the smallest objective of the method itself is taken; the truth decides nothing. A run
under way when the time is over ends as usual, so that the others have somewhat more time than ROAD. Times depend on the
machine: unlike elsewhere, the same trial need not give the same numbers twice.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.estimators import ROAD, AlternatingDictionaryLearning
from roadict.exact_finish.search import find_exact_fit
from roadict.experiments.methods import ITERATIONS, Method
from roadict.experiments.plan import PlantedProblem
from roadict.metrics import dictionary_error
from roadict.seeds import TRIAL_RESTARTS
from roadict.synthetic import Planted, planted

Array = NDArray[np.floating]
HIGHEST, LOWEST = 0.3, 0.03
"""First and last weight of the annealed Lasso, over the root-mean-square norm of the samples."""
STAGES, PER_STAGE = 10, 10
"""Weights of the annealed Lasso and iterations at each: on seeds from 90,000 on more iterations found no more atoms."""
SMALL = PlantedProblem(8, 12, 80, sparsity=2)
"""On which all methods run once, so that no time is that of a compiler."""


@dataclass(frozen=True)
class Candidate:
    """Atoms and codes of a run, and the objective by which its method compares runs."""

    dictionary: Array
    codes: Array
    objective: float
    iterations: int
    exact: bool = False


class _Unfinished(ROAD):
    """ROAD without the exact finish."""

    _finishes = False


def run_timed(method: Method, problem: PlantedProblem, seed: int) -> tuple[dict[str, Any], float]:
    """Learn with a method in the CPU time of ROAD's defaults; returns the numbers of the row and the CPU seconds."""
    _warm_up()
    truth = _planted(problem, seed)
    settings = dict(method.parameters)
    kind = settings.pop("run")
    if kind == "road":
        (found, seconds), n_runs = _one_fit(problem, seed, settings.get("n_init")), 1
    else:
        _, budget = _one_fit(problem, seed, None)
        runs = (RUNS[kind](truth.data, problem, each) for each in _seeds(seed))
        found, seconds, n_runs = best_in_time(truth.data, runs, budget, finish=settings["finish"])
    return {
        "error": dictionary_error(found.dictionary, truth.dictionary),
        "error_greedy": dictionary_error(found.dictionary, truth.dictionary, "greedy"),
        "data_error": float(np.linalg.norm(truth.data - found.codes @ found.dictionary) / np.linalg.norm(truth.data)),
        "nonzeros": float((found.codes != 0).sum(axis=1).mean()),
        "iterations": found.iterations,
        "runs": n_runs,
        "exact": found.exact,
    }, seconds


def best_in_time(
    data: Array, runs: Iterator[Candidate], budget: float, *, finish: bool
) -> tuple[Candidate, float, int]:
    """Take the best of as many runs as begin within a CPU time, of at least one; an exact fit ends the search.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    runs : iterator of Candidate
        Carries out a run at every step.
    budget : float
        CPU seconds.
    finish : bool
        Whether the exact finish is tried after every run.

    Returns
    -------
    best : Candidate
    seconds : float
    n_runs : int
    """
    began, best, n_runs = time.process_time(), None, 0
    for candidate in runs:
        n_runs += 1
        exact = find_exact_fit(data, candidate.dictionary, candidate.codes, 1) if finish else None
        if exact is not None:
            best = Candidate(exact.dictionary, exact.codes, 0.0, candidate.iterations, exact=True)
        elif best is None or candidate.objective < best.objective:
            best = candidate
        seconds = time.process_time() - began
        if exact is not None or seconds >= budget:
            break
    assert best is not None
    return best, seconds, n_runs


@lru_cache(maxsize=4)
def _one_fit(problem: PlantedProblem, seed: int, n_init: int | None) -> tuple[Candidate, float]:
    """Fit ROAD with its defaults, but for the number of starts; returns the CPU seconds too.

    Remembered by each process: the trials of the other methods, which come next, need the time.
    """
    data, began = _planted(problem, seed).data, time.process_time()
    model = ROAD(problem.n_components, n_init=n_init, engine="numba", random_state=seed, n_jobs=1).fit(data)
    seconds = time.process_time() - began
    return Candidate(model.components_, model.codes_, model.objective_, model.n_iter_, model.exact_), seconds


def _unfinished(data: Array, problem: PlantedProblem, seed: np.random.SeedSequence) -> Candidate:
    """One start of the defaults for exact data, without the finish."""
    return _fitted(_Unfinished(problem.n_components, epsilon=0.0, n_init=1, random_state=seed, **_ROAD), data)


def _paper(data: Array, problem: PlantedProblem, seed: np.random.SeedSequence) -> Candidate:
    """The paper's eADMM."""
    fixed: dict[str, Any] = {"rho": 10.0, "max_iter": ITERATIONS, "tol": 0.0, "n_init": 1}
    return _fitted(ROAD(problem.n_components, epsilon=0.0, random_state=seed, **fixed, **_ROAD), data)


def _annealed_lasso(data: Array, problem: PlantedProblem, seed: np.random.SeedSequence) -> Candidate:
    """Lasso codes and MOD in alternation, with a falling weight."""
    size, atoms = float(np.sqrt(np.mean(np.sum(data**2, axis=1)))), None
    for weight in np.geomspace(HIGHEST, LOWEST, STAGES) * size:
        model = AlternatingDictionaryLearning(
            problem.n_components,
            update="mod",
            coder="lasso",
            alpha=float(weight),
            max_iter=PER_STAGE,
            tol=0.0,
            dict_init=atoms,
            random_state=seed,
            n_jobs=1,
        ).fit(data)
        atoms = model.components_
    atoms, codes = model.components_, model.codes_
    objective = np.sum((data - codes @ atoms) ** 2) / 2 + weight * np.abs(codes).sum()
    return Candidate(atoms, codes, float(objective), STAGES * PER_STAGE)


def _two_stage(update: str, data: Array, problem: PlantedProblem, seed: np.random.SeedSequence) -> Candidate:
    """OMP with the true number of coefficients, and an update; its objective is the error."""
    model = AlternatingDictionaryLearning(
        problem.n_components,
        update=update,
        coder="omp",
        n_nonzero_coefs=problem.sparsity,
        max_iter=ITERATIONS,
        tol=0.0,
        random_state=seed,
        n_jobs=1,
    ).fit(data)
    return Candidate(model.components_, model.codes_, float(model.error_), model.n_iter_)


def _fitted(model: ROAD, data: Array) -> Candidate:
    model.fit(data)
    return Candidate(model.components_, model.codes_, model.objective_, model.n_iter_)


_ROAD: dict[str, Any] = {"engine": "numba", "n_jobs": 1}
RUNS: dict[str, Callable[[Array, PlantedProblem, np.random.SeedSequence], Candidate]] = {
    "unfinished": _unfinished,
    "paper": _paper,
    "annealed-lasso": _annealed_lasso,
    "ksvd": partial(_two_stage, "ksvd"),
    "blotless": partial(_two_stage, "blotless"),
}


def _planted(problem: PlantedProblem, seed: int) -> Planted:
    size = problem.n_samples, problem.n_features, problem.n_components
    return planted(*size, sparsity=problem.sparsity, random_state=seed)


def _seeds(seed: int) -> Iterator[np.random.SeedSequence]:
    """Seeds of the restarts."""
    for index in count():
        yield np.random.SeedSequence(seed, spawn_key=(TRIAL_RESTARTS, index))


@lru_cache(maxsize=1)
def _warm_up() -> None:
    """Compile, or load, all kernels before a time is taken."""
    _one_fit(SMALL, 0, None)
    data = _planted(SMALL, 0).data
    for run, seed in zip(RUNS.values(), _seeds(0), strict=False):
        best_in_time(data, iter([run(data, SMALL, seed)]), 0.0, finish=True)
