"""The number of atoms from the data: hide entries, and see with how many atoms the others predict them best."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import FitJournal
from roadict.engines.registry import engine_name
from roadict.kernels import Workers
from roadict.progress.stages import STEPS, Progress, likely_part
from roadict.progress.terminal import silent
from roadict.ranks.comm import SERIAL
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.hidden import excess, hidden_curve, hidden_entries
from roadict.road.multistart import Settings
from roadict.road.noise import FIRST_BOUND, MAX_ITER, SIGNED_BOUND, SIGNED_ROUNDS, TOL, learn_atoms
from roadict.road.plan import Parameters, Request, make_plan
from roadict.runs.driving import drive
from roadict.runs.loop import View
from roadict.runs.signals import stop_requested
from roadict.seeds import NUMBER_MASK, NUMBER_START, streams

Array = NDArray[np.floating]
Mask = NDArray[np.bool_]

COARSE = (0.5, 1.0, 2.0, 4.0)
"""Numbers that a search tries first, relative to the number of features; it extends downwards, not upwards."""
SAMPLES_PER_ATOM = 4
"""Minimum number of samples per atom in a search: with fewer, no atoms are found."""
GAP_BELOW, GAP_ABOVE = 32, 8
"""A search ends when no gap next to the chosen number is larger than 1 or this fraction of it. Below the true number
the error rises steeply, above it slowly: with the true number in the gap above, that gap's end would be chosen."""
MAX_ROUNDS = 16
"""Of trials. In a search each halves the gaps next to the chosen number, or tries its neighbours too."""
MORE_NUMBERS = 6
"""Numbers that a search mostly tries after the first ones, a second start included; by `benchmarks/progress.py`."""
MAX_STARTS = 2
"""Maximum number of starts of the next smaller number than the chosen one: about one run in twenty ends in a poor local
minimum, so that the true number loses to a larger one."""
UNCONSTRAINED = Parameters()
NEGLIGIBLE = 0.002
"""Excess, relative to the hidden entries, that does not count: without noise all numbers from the true one on predict
to a few thousandths, and differ by how far their short runs have converged. An atom less costs about 1 / n_atoms."""
CLEARLY_WORSE = 2.0
"""Standard errors by which the largest number must predict worse than the chosen one, or the curve is flat."""


class Split(NamedTuple):
    """One way to hide entries, the same for all numbers of atoms, and its number, for its starts."""

    seen: Mask
    hidden: Mask
    number: int


class Trial(NamedTuple):
    """How well atoms that were learned from the seen entries of a split predict its hidden ones.

    Attributes
    ----------
    misses : array of shape (n_samples,)
        Sum of the absolute prediction errors of every sample, times its own weight, at the best Lasso weight, in the
        user's units.
    epsilon, nonzeros, alpha : float
        Data error and nonzero codes per sample at the largest weight whose excess is within one standard error, and
        this weight in the user's units.
    atoms : array of shape (n_components, n_features)
    """

    misses: Array
    epsilon: float
    nonzeros: float
    alpha: float
    atoms: Array


@dataclass(frozen=True)
class NumberPath:
    """How well hidden entries are predicted with different numbers of atoms, smallest first, and the number chosen.

    Attributes
    ----------
    n_components : int array of shape (n_points,)
    hidden_error : array of shape (n_points,)
        Sum of the absolute errors of the predicted entries over that of the entries themselves.
    excess, standard_error : arrays of shape (n_points,)
        Difference to the smallest hidden error, paired by sample, and its standard error.
    epsilon : array of shape (n_points,)
        Relative data error over the entries that are not hidden.
    nonzeros : array of shape (n_points,)
        Mean number of nonzero codes per sample.
    chosen : int
        Index of the smallest number whose excess is within one standard error, or negligible.
    flat : bool
        Whether the largest number does not predict clearly worse than the chosen one.
    kept : Trial or None
        One of the chosen number, if Ctrl-C has ended the choice: the best so far.
    """

    n_components: NDArray[np.int64]
    hidden_error: Array
    excess: Array
    standard_error: Array
    epsilon: Array
    nonzeros: Array
    chosen: int
    flat: bool
    kept: Trial | None = None

    COLUMNS = ("n_components", "hidden_error", "excess", "standard_error", "epsilon", "nonzeros")


@dataclass(frozen=True)
class Comparison:
    """What all trials share.

    Attributes
    ----------
    data : array of shape (n_samples, n_features)
    splits : list of Split
    engine : str
        Not "auto".
    n_jobs : int or None
        Number of concurrent runs.
    seed : SeedSequence
        Of the whole fit.
    sample_weight : array of shape (n_samples,), or None
    parameters : Parameters
        With the constraints of the fit.
    """

    data: Array
    splits: list[Split]
    engine: str
    n_jobs: int | None
    seed: np.random.SeedSequence
    sample_weight: Array | None
    parameters: Parameters


def choose_number(
    data: Array,
    observed: Mask | None,
    numbers: Sequence[int] | None,
    n_splits: int,
    engine: str,
    n_jobs: int | None,
    seed: np.random.SeedSequence,
    progress: Progress = silent,
    sample_weight: Array | None = None,
    parameters: Parameters = UNCONSTRAINED,
) -> NumberPath:
    """Find the number of atoms with which hidden entries are predicted best.

    Every number learns from the same entries, in one short run per split, with the same error bound. This bound comes
    from another run, with the largest number, or with twice the number of features for a search.

    Parameters
    ----------
    data, observed
        In the user's units.
    numbers : sequence of int, or None
        None: a search that starts with ``coarse_numbers``.
    n_splits : int
    engine : str
    n_jobs : int or None
        Number of concurrent runs, of one thread each. It does not affect the result.
    seed : SeedSequence
        Of the whole fit.
    progress : callable
        Called with steps of the whole choice done, their number, and a text: a search goes on as long as it must.
    sample_weight : array of shape (n_samples,), or None
        Weights above zero; None: all 1.
    parameters : Parameters
        With the constraints of the fit.
    """
    least = parameters.constraints.n_fixed
    first = sorted({*numbers}) if numbers is not None else coarse_numbers(len(data), data.shape[1], least)
    masks = streams(seed, NUMBER_MASK, n_splits)
    some = Request(data, observed, first[-1], parameters, weights=sample_weight).some(masks[0])
    data, observed, sample_weight = some.data, some.observed, some.weights
    splits = []
    for index, rng in enumerate(masks):
        hidden = hidden_entries(data, observed, rng)
        splits.append(Split(~hidden if observed is None else observed & ~hidden, hidden, index))
    engine = engine_name(engine, len(data), data.shape[1], first[-1])
    n_jobs = 1 if engine == "cuda" else n_jobs
    comparison = Comparison(data, splits, engine, n_jobs, seed, sample_weight, parameters)
    reference = first[-1] if numbers is not None else min(max(2 * data.shape[1], least), first[-1])
    first_trial = _first_trial(comparison, reference)
    bound = first_trial.epsilon
    trials: dict[int, list[list[Trial]]] = {}
    sizes = np.abs(data) if sample_weight is None else np.abs(data) * sample_weight[:, None]
    scales = [float((sizes * split.hidden).sum()) for split in splits]
    more, before = first, 0
    typical = math.exp(sum(map(math.log, first)) / len(first))  # runs take as long as they have atoms
    expected = len(splits) * (sum(first) + (MORE_NUMBERS if numbers is None else 1) * typical)

    def report(done: int, n_atoms: int, text: str) -> None:
        progress(round(STEPS * likely_part(n_atoms, expected)), STEPS, f"run {done}  {text}")

    for _ in range(MAX_ROUNDS):
        _add_trials(comparison, more, bound, trials, report)
        if stop_requested():
            return _path_so_far(trials or {reference: [[first_trial]]}, scales, sample_weight)
        path = _path(trials, sum(scales), sample_weight)
        tried = path.n_components.tolist()
        more = next_numbers(tried, path.chosen, before) if numbers is None else []
        more = [number for number in more if number >= least]
        before = tried[path.chosen]
        smaller = tried[max(0, path.chosen - 1)]
        if not more and path.chosen > 0 and len(trials[smaller]) < MAX_STARTS:
            more = [smaller]
        if not more:
            break
    return path


def _first_trial(comparison: Comparison, n_components: int) -> Trial:
    """Find the error bound at which this number of atoms predicts well; with signs it is approached from above."""
    signed = comparison.parameters.constraints.signed
    trial = try_number(comparison, comparison.splits[0], n_components, SIGNED_BOUND if signed else FIRST_BOUND)
    for _ in range(SIGNED_ROUNDS[0] - 1 if signed else 0):
        if stop_requested():
            break
        trial = try_number(comparison, comparison.splits[0], n_components, trial.epsilon)
    return trial


def coarse_numbers(n_samples: int, n_features: int, least: int = 1) -> list[int]:
    """Return the numbers that a search tries first: up to four times the features, with samples enough for each.

    ``least``: the smallest that is possible.

    Examples
    --------
    >>> coarse_numbers(400, 16), coarse_numbers(100, 16)
    ([8, 16, 32, 64], [8, 16, 25])
    """
    least = max(1, least)
    largest = max(least, n_samples // SAMPLES_PER_ATOM)
    return sorted({min(largest, max(least, round(factor * n_features))) for factor in COARSE})


def next_numbers(tried: list[int], chosen: int, before: int) -> list[int]:
    """Return the numbers to try next: in the middle, by ratio, of the gaps next to the chosen one.

    If that was chosen ``before`` too, it may be right: then its neighbours are tried, after which the search can end.
    The middle of the gap below is tried nevertheless: of a number that is too large the neighbour is, too, and may
    predict worse by chance.

    Examples
    --------
    >>> next_numbers([8, 16, 32, 64], 2, 0), next_numbers([8, 16, 23, 32, 45, 64], 3, 32)
    ([23, 45], [27, 31, 36])
    >>> next_numbers([8, 16, 32], 0, 0), next_numbers([8, 31, 32, 33], 2, 32)
    ([4, 11], [])
    """
    best = tried[chosen]
    below = tried[chosen - 1] if chosen > 0 else best // 4
    above = tried[chosen + 1] if chosen + 1 < len(tried) else best
    small_below, small_above = max(1, best // GAP_BELOW), max(1, best // GAP_ABOVE)
    more = []
    if best - below > small_below:
        more.append(min(best - small_below, round(math.sqrt(max(1, below) * best))))
        if best == before and more[0] != best - small_below:
            more.append(best - small_below)
    if above - best > small_above:
        more.append(best + small_above if best == before else round(math.sqrt(above * best)))
    return more


def try_number(comparison: Comparison, split: Split, n_components: int, bound: float, start: int = 0) -> Trial:
    """Learn from the seen entries of a split in one short run, and predict its hidden ones.

    Parameters
    ----------
    comparison : Comparison
    split : Split
    n_components : int
    bound : float
        On the relative data error; raised to what so many atoms can reach.
    start : int
        Counts from 0.
    """
    data, weights = comparison.data, comparison.sample_weight
    visible = np.where(split.seen, data, 0)
    weighed = visible if weights is None else visible * np.sqrt(weights)[:, None]
    constraints = comparison.parameters.constraints
    reachable = auto_epsilon(smallest_error(weighed, split.seen, n_components, constraints=constraints))
    parameters = replace(comparison.parameters, epsilon=max(bound, reachable), n_init=1, max_iter=MAX_ITER)
    plan = make_plan(visible, split.seen, n_components, parameters, SERIAL, weights)
    rng = streams(comparison.seed, NUMBER_START, MAX_STARTS * (split.number + 1))[MAX_STARTS * split.number + start]
    point = plan.start(rng)
    settings = Settings(comparison.engine, MAX_ITER, TOL, 1, watched=False)
    searches = plan.scarce or plan.search_is_cheap
    _, atoms = drive(learn_atoms(plan, point, settings, View(plan.unit, watched=False), FitJournal(None), searches))
    scaled = data / data.dtype.type(plan.unit)
    typical = plan.norm / plan.unit
    curve = hidden_curve(
        *(scaled, split.seen, split.hidden, atoms, typical),
        n_jobs=1,
        sample_weight=weights,
        positive=constraints.positive_code,
    )
    compared = excess(curve.misses, sample_weight=weights)
    best, sparse = int(np.argmin(compared.sums)), compared.first_within
    misses = curve.misses[best].astype(np.float64) * plan.unit
    alpha = float(curve.weights[sparse]) * plan.unit
    return Trial(misses, float(curve.errors[sparse]), float(curve.nonzeros[sparse]), alpha, atoms)


def _add_trials(
    comparison: Comparison,
    numbers: list[int],
    bound: float,
    trials: dict[int, list[list[Trial]]],
    report: Callable[[int, int, str], None],
) -> None:
    """Try these numbers with every split from their next start, several at a time; after Ctrl-C only some of them.

    Parameters
    ----------
    comparison : Comparison
    numbers : list of int
    bound : float
    trials : dict
        By number, then by start, then by split; changed.
    report : callable
        Called with the number of runs done, of atoms in these, and a text.
    """
    # The longest runs come first, so that the last ones fill the gaps.
    jobs = [(number, split) for number in sorted(numbers, reverse=True) for split in comparison.splits]
    results: dict[tuple[int, int], Trial] = {}
    n_splits = len(comparison.splits)
    n_before = n_splits * sum(map(len, trials.values()))
    atoms_before = n_splits * sum(number * len(starts) for number, starts in trials.items())

    def task(job: int) -> None:
        number, split = jobs[job]
        if stop_requested():
            return
        trial = try_number(comparison, split, number, bound, len(trials.get(number, [])))
        if not stop_requested():
            results[number, split.number] = trial

    def advance(done: int) -> None:
        n_atoms = atoms_before + sum(number for number, _ in jobs[:done])
        report(n_before + done, n_atoms, f"{min(numbers)} to {max(numbers)} atoms")

    workers = Workers(comparison.n_jobs)
    try:
        workers.run(task, len(jobs), advance)
    finally:
        workers.close()
    for number in numbers:
        found = [results[number, split.number] for split in comparison.splits if (number, split.number) in results]
        if len(found) == len(comparison.splits):
            trials.setdefault(number, []).append(found)


def _path(trials: dict[int, list[list[Trial]]], scale: float, sample_weight: Array | None) -> NumberPath:
    """Compare the numbers, each with the best start for every split, and choose."""
    numbers = sorted(trials)
    best = [[min(of_split, key=_total) for of_split in zip(*trials[number], strict=True)] for number in numbers]
    misses = np.array([np.sum([trial.misses for trial in row], axis=0) for row in best])
    compared = excess(misses, sample_weight=sample_weight)
    chosen = int(np.argmax(compared.over <= np.maximum(compared.standard_error, NEGLIGIBLE * scale)))
    rise = excess(misses[[chosen, -1]], sample_weight=sample_weight)
    return NumberPath(
        np.array(numbers),
        compared.sums / scale,
        compared.over / scale,
        compared.standard_error / scale,
        np.array([np.mean([trial.epsilon for trial in row]) for row in best]),
        np.array([np.mean([trial.nonzeros for trial in row]) for row in best]),
        chosen,
        flat=bool(rise.over[1] <= CLEARLY_WORSE * rise.standard_error[1]),
    )


def _path_so_far(trials: dict[int, list[list[Trial]]], scales: list[float], sample_weight: Array | None) -> NumberPath:
    """Choose from the trials so far, and keep one of the chosen number; the very first trial has one split only."""
    n_splits = len(next(iter(trials.values()))[0])
    path = _path(trials, sum(scales[:n_splits]), sample_weight)
    chosen = trials[int(path.n_components[path.chosen])]
    return replace(path, kept=min((trial for start in chosen for trial in start), key=_total))


def _total(trial: Trial) -> float:
    return float(trial.misses.sum())
