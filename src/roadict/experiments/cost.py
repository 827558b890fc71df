"""Rough run times of trials on one core, for the estimate and the remaining time."""

import time
from collections.abc import Iterable

from roadict.experiments.plan import PictureProblem, PlantedProblem, Trial
from roadict.progress.words import duration

MEASURED_ON = "one core of an AMD EPYC"
# Seconds there. Two-stage methods: at 400 samples of 16 features and 32 atoms; they grow slower
# than the number of entries. The others: per sample, feature and atom.
_UNIT = 400 * 16 * 32
_GROWTH = 0.7
_TWO_STAGE = {
    "blotless": 1.6,
    "ksvd": 0.17,
    "mod": 0.14,
    "simco": 0.64,
    "lasso": 0.33,
    "sequential": 0.11,
    "consistent-sequential": 0.13,
}
_PER_ENTRY = {"road-paper": 1e-6, "road-defaults": 8.5e-6, "iadmm-three": 39e-6, "iadmm-one": 39e-6}
_ZEBRA = {
    "road-paper-lasso": 41.0,
    "road-lasso": 22.0,
    "road-omp": 18.0,
    "blotless-lasso": 27.0,
    "blotless-omp": 12.0,
    **dict.fromkeys(("blotless-lasso-long", "ksvd-lasso-long", "mod-lasso-long"), 25.0),
    "ksvd-lasso": 6.0,
    "mod-lasso": 4.0,
}
_ZEBRA_OTHERS = 3.0
_DIGIT_ROAD, _DIGIT_OTHERS = 1.2, 0.3
_PRIOR_SECONDS = 30.0
"""Seconds of estimated work that stabilise the rate while few trials are done."""


def seconds(trial: Trial) -> float:
    """Estimated seconds of a trial."""
    if isinstance(trial.problem, PictureProblem):
        if trial.problem.picture == "zebra":
            return _ZEBRA.get(trial.method.name, _ZEBRA_OTHERS)
        return _DIGIT_ROAD if trial.method.is_road else _DIGIT_OTHERS
    if trial.method.learner == "timed":
        return _timed(trial.problem, trial.method.name)
    return _recovery(trial.problem, trial.method.name)


def _timed(problem: PlantedProblem, method: str) -> float:
    """The time of ROAD's defaults, but of a run at least."""
    name = method if method in _TWO_STAGE else "road-defaults"
    return max(_recovery(problem, name), _recovery(problem, "road-defaults"))


def _recovery(problem: PlantedProblem, method: str) -> float:
    entries = problem.n_samples * problem.n_features * problem.n_components
    if method not in _PER_ENTRY:
        return float(_TWO_STAGE.get(method, 1.0) * (entries / _UNIT) ** _GROWTH)
    # With few samples the defaults try several starts.
    return max(2.0 if method == "road-defaults" else 0.0, entries * _PER_ENTRY[method])


def part(trials: list[Trial], index: int, number: int) -> list[Trial]:
    """One of several parts of the trials that take about the same time; together they are all trials, each once.

    Parameters
    ----------
    trials : list of Trial
    index : int
        From 1 on.
    number : int
        Number of parts.
    """
    order = sorted(range(len(trials)), key=lambda i: (-seconds(trials[i]), i))  # alike ones next to each other
    return [trials[i] for i in sorted(order[index - 1 :: number])]


class RemainingTime:
    """Remaining time, from the remaining work: only the ratios of the estimates matter."""

    def __init__(self, trials: Iterable[Trial], jobs: int) -> None:
        self._remaining = sum(map(seconds, trials))
        self._done = 0.0
        self._jobs = jobs
        self._started = time.perf_counter()

    def finished(self, trial: Trial) -> None:
        """Record a finished trial."""
        self._remaining -= seconds(trial)
        self._done += seconds(trial)

    def __call__(self, done: int, total: int) -> str:
        """Text for the progress line."""
        if done == total:
            return "done"
        elapsed = time.perf_counter() - self._started
        rate = (elapsed + _PRIOR_SECONDS / self._jobs) / (self._done + _PRIOR_SECONDS)
        return f"about {duration(max(0.0, self._remaining) * rate)} left"
