"""Two-stage dictionary learning: a coder and an update in turn, until neither changes anything."""

import math
from collections.abc import Callable
from contextlib import closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import RunJournal, resume
from roadict.checkpoints.schedule import Checkpoints
from roadict.coders.omp import omp_of_order_one
from roadict.coders.registry import TAKES, encode
from roadict.kernels import Workers
from roadict.linalg import leading_signs, unit_rows
from roadict.runs.driving import Fitting
from roadict.runs.loop import Rule, View, follow
from roadict.runs.measures import Changes
from roadict.runs.result import Fit
from roadict.runs.state import RunState
from roadict.updates.registry import UPDATES, Update
from roadict.updates.replace import renew_rare_atoms, replace_atoms
from roadict.updates.sequential import absolute_penalty
from roadict.updates.sparse import change, energies, residual

Array = NDArray[np.floating]
Stage = Callable[[Array, Array, Array], Array]

CANDIDATES = 10
"""Samples drawn for every atom of a start, of which the one least like the atoms before it is taken."""
SETTLING = 0.2
"""Share of the iterations, at the end, in which the objective must not rise."""
RENEWAL = 10
"""Iterations between two renewals of rarely used atoms, while the objective may rise."""
SMALL_WORK = 2**22
"""Multiplications of a coding stage below which a second thread costs more than it gives."""


def starting_atoms(data: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Draw samples that are unlike each other; Gaussian directions where there are too few.

    Every atom is, of ten samples drawn at random, the one whose largest correlation with the atoms before it is
    smallest. Two atoms that start as neighbours tend to stay so: plain draws find fewer planted atoms.
    ``road.start.draw_samples`` differs: samples in random order, on any number of ranks, but for repeated directions.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    n_components : int
    rng : Generator

    Returns
    -------
    array of shape (n_components, n_features), rows of unit norm
    """
    free, _ = unit_rows(data[np.any(data != 0, axis=1)])
    atoms = unit_rows(rng.standard_normal((n_components, data.shape[1])))[0]
    nearest = np.zeros(len(free))  # largest correlation of every free sample with the atoms so far
    for k in range(min(n_components, len(free))):
        drawn = rng.choice(len(free), min(CANDIDATES, len(free)), replace=False)
        chosen = drawn[nearest[drawn].argmin()]
        atoms[k] = free[chosen]
        free, nearest = np.delete(free, chosen, axis=0), np.delete(nearest, chosen)
        nearest = np.maximum(nearest, np.abs(free @ atoms[k]))
    return atoms


class Alternation:
    """A run in progress: each step codes the samples and updates the dictionary.

    In the first four fifths of the iterations the codes are those of the coder, be they better or worse than the
    ones before: greedy coders are no minimisers, and their slips are what leads out of wrong minima. Every tenth time
    the rarely used atoms are renewed. The last fifth
    starts from the best iteration, a sample keeps its codes where the coder's are worse, and a step that would
    raise the objective is not taken. An update that finds its own codes goes downhill from the start.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        float64, of order one.
    dictionary : array of shape (n_components, n_features), rows of unit norm
    update : Update
    code : callable or None
        ``code(data, dictionary, codes) -> codes``; None: the update finds the codes.
    codes : array of shape (n_samples, n_components)
        Where an update without a coder starts; with a coder, they do not matter.
    alpha : float
        Weight of the penalty on the codes in the objective; 0: there is none.
    arguments : dict of str to float
        For the update: what it takes.
    max_iter : int
    """

    rhos = ()
    """There is no augmented Lagrangian."""

    def __init__(
        self,
        data: Array,
        dictionary: Array,
        *,
        update: Update,
        code: Stage | None,
        codes: Array,
        arguments: dict[str, float],
        alpha: float,
        max_iter: int,
    ) -> None:
        self._data, self._size = data, float(np.linalg.norm(data))
        self._step, self._code, self._alpha = partial(update.step, **arguments), code, alpha
        self._penalty = update.penalty if code is None and update.penalty else absolute_penalty
        self._exploring = 0 if code is None else max_iter - round(SETTLING * max_iter)
        self._dictionary, self._codes = dictionary, codes
        self._errors = energies(residual(data, dictionary, codes))
        self._objective = self._evaluate(codes, self._errors)
        self._best = (math.inf, dictionary, codes, self._errors)
        self._iterations = 0

    def step(self, following: float | None = None) -> Changes:
        """Carry out one iteration; there is no ρ, and ``following`` is None."""
        before = self._dictionary, self._codes
        settling = self._iterations >= self._exploring
        if self._iterations == self._exploring and self._code is not None and self._iterations > 0:
            self._objective, self._dictionary, self._codes, self._errors = self._best
        elif 0 < self._iterations <= self._exploring - RENEWAL and self._iterations % RENEWAL == 0:
            self._dictionary = renew_rare_atoms(self._data, self._dictionary, self._codes)
        self._iterations += 1
        codes = self._codes if self._code is None else self._coded(self._code, settling)
        dictionary, codes = self._step(self._data, self._dictionary, codes)
        dictionary, codes = replace_atoms(self._data, dictionary, codes, self._alpha)
        errors = energies(residual(self._data, dictionary, codes))
        objective = self._evaluate(codes, errors)
        if not settling or not objective > self._objective:  # not a number is taken, and ends the run
            self._objective, self._dictionary, self._codes, self._errors = objective, dictionary, codes, errors
        if self._objective < self._best[0]:
            self._best = (self._objective, self._dictionary, self._codes, self._errors)
        return Changes(
            objective=self._objective,
            code_change=change(before[1], self._codes),
            atom_change=change(before[0], self._dictionary),
            error=math.sqrt(self._errors.sum()) / self._size,
        )

    def best(self, unit: float) -> tuple[Array, Array, float, float]:
        """Return atoms and codes of the smallest objective so far, that objective in the user's unit, and the error.

        A run that ends while exploring may have seen better ones than its last.
        """
        objective, dictionary, codes, errors = self._best
        return dictionary, codes, objective * unit, math.sqrt(errors.sum()) / self._size

    def _coded(self, code: Stage, settling: bool) -> Array:
        codes = code(self._data, self._dictionary, self._codes)
        if settling:
            worse = self._costs(codes, energies(residual(self._data, self._dictionary, codes))) > self._costs(
                self._codes, self._errors
            )
            codes[worse] = self._codes[worse]
        return codes

    def _costs(self, codes: Array, errors: Array) -> Array:
        """What every sample adds to the objective of a run with a coder, up to a common factor."""
        costs: Array = errors / 2 + self._alpha * np.abs(codes).sum(axis=1) if self._alpha > 0 else errors
        return costs

    def _evaluate(self, codes: Array, errors: Array) -> float:
        misfit = float(errors.sum())
        if self._alpha == 0:
            return math.sqrt(misfit)
        return (misfit / 2 + self._penalty(codes, self._alpha)) / self._alpha

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations."""
        best, best_dictionary, best_codes, best_errors = self._best
        numbers = np.array([self._objective, best, self._iterations], np.float64)
        return RunState(
            {"codes": self._codes, "errors": self._errors, "best_codes": best_codes, "best_errors": best_errors},
            {"dictionary": self._dictionary, "best_dictionary": best_dictionary, "numbers": numbers},
        )

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state; all samples are in one process, and ``start`` is 0."""
        local, shared = ({name: np.array(array) for name, array in of.items()} for of in (state.local, state.shared))
        self._dictionary, self._codes, self._errors = shared["dictionary"], local["codes"], local["errors"]
        self._objective, best, iterations = (float(number) for number in shared["numbers"])
        self._best = (best, shared["best_dictionary"], local["best_codes"], local["best_errors"])
        self._iterations = int(iterations)

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""
        return self._dictionary

    def codes(self) -> Array:
        """Return the codes, shape (n_samples, n_components)."""
        return self._codes


def learn(
    data: Array,
    dictionary: Array,
    *,
    update: str,
    coder: str | None,
    n_nonzero_coefs: int | None,
    alpha: float,
    coder_alpha: float | None,
    ridge: float,
    rule: Rule,
    view: View,
    n_jobs: int | None,
    checkpoints: Checkpoints | None = None,
) -> Fitting[Fit]:
    """Run a two-stage method from a start.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        float64, of order one.
    dictionary : array of shape (n_components, n_features), rows of unit norm
        The start.
    update : str
        A key of ``UPDATES``.
    coder : str or None
        A name of ``roadict.coders``; None: the update finds its codes.
    n_nonzero_coefs, ridge, n_jobs
        As for ``AlternatingDictionaryLearning``.
    alpha, coder_alpha : float
        Weight or threshold of the update and of the objective, in the units of data; that of the coder, or None.
    rule, view
        When the run ends, and how it is shown.
    checkpoints : Checkpoints or None
        Saves the run from time to time; it resumes from the checkpoint loaded, if there is one.

    Returns
    -------
    Fit
        In the user's units.
    """
    method, given = UPDATES[update], {"alpha": alpha, "ridge": ridge}
    with closing(Workers(1 if data.size * len(dictionary) < SMALL_WORK else n_jobs)) as workers:
        code = None if coder is None else _coding_stage(coder, data.shape[1], n_nonzero_coefs, coder_alpha, workers)
        run = Alternation(
            data,
            dictionary,
            update=method,
            code=code,
            codes=_starting_codes(data, dictionary, None if code is not None else alpha, n_jobs),
            arguments={name: given[name] for name in method.takes},
            alpha=alpha if coder in (None, "lasso") else 0.0,
            max_iter=rule.max_iter,
        )
        fit = yield from _followed(run, rule, view, checkpoints)
    yield fit
    return fit


def _starting_codes(data: Array, dictionary: Array, alpha: float | None, n_jobs: int | None) -> Array:
    """Codes of the Lasso, for an update that goes on from them; None for alpha: zero, as a coder will find some."""
    if alpha is None:
        return np.zeros((len(data), len(dictionary)))
    return encode(data, None, dictionary, algorithm="lasso", alpha=alpha, n_jobs=n_jobs)


def _followed(run: Alternation, rule: Rule, view: View, checkpoints: Checkpoints | None) -> Fitting[Fit]:
    """Run from the start, or from the checkpoint loaded, and return the best iteration in the user's units."""
    start = run.dictionary(), run.codes()
    loaded = None if checkpoints is None else checkpoints.take_loaded()
    before = None if loaded is None else resume(loaded, run)[0]
    del loaded
    journal = None if checkpoints is None else RunJournal(checkpoints, run, [])
    outcome = yield from follow(run, rule, view, before, journal)
    if outcome.stop_reason == "non-finite":
        (dictionary, codes), last = start, outcome.history
        objective, error = float(last["objective"][-1]), float(last["error"][-1])
    else:
        dictionary, codes, objective, error = run.best(view.unit)
    signs = leading_signs(dictionary)  # largest entry of an atom positive
    return Fit(outcome, dictionary * signs[:, None], codes * (signs * view.unit), error, objective)


def _coding_stage(
    coder: str, n_features: int, n_nonzero_coefs: int | None, alpha: float | None, workers: Workers
) -> Stage:
    """Make a function of (data, dictionary, codes before) that returns new codes."""
    if coder == "omp":
        asked = max(1, n_features // 10) if n_nonzero_coefs is None else n_nonzero_coefs
        return lambda data, atoms, _: omp_of_order_one(data, atoms, min(asked, *atoms.shape), workers)
    takes = TAKES[coder]
    return lambda data, atoms, codes: encode(
        data,
        None,
        atoms,
        algorithm=coder,
        n_nonzero_coefs=n_nonzero_coefs if "n_nonzero_coefs" in takes else None,
        alpha=alpha if "alpha" in takes else None,
        start=codes if "start" in takes else None,
        n_jobs=workers.n_threads,
    )
