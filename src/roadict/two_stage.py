"""Two-stage dictionary learning: alternate a coder and an update until convergence."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import RunJournal, resume
from roadict.checkpoints.schedule import Checkpoints
from roadict.coders.omp import omp_of_order_one
from roadict.coders.registry import CODER_PARAMETERS, default_sparsity, encode
from roadict.constraints import FREE, Constraints
from roadict.kernels import Workers
from roadict.linalg import leading_signs, unit_rows
from roadict.precompile import kernels_of_alternation, prepare
from roadict.runs.driving import Fitting
from roadict.runs.loop import Rule, View, follow
from roadict.runs.measures import Changes
from roadict.runs.result import Fit
from roadict.runs.state import RunState
from roadict.updates.registry import UPDATES, Update
from roadict.updates.replace import replace_atoms, replace_rare_atoms
from roadict.updates.sequential import absolute_penalty
from roadict.updates.sparse import energies, relative_change, residual

Array = NDArray[np.floating]
Stage = Callable[[Array, Array, Array], Array]

CANDIDATES = 10
"""Samples drawn for every initial atom, of which the one least similar to the previous atoms is taken."""
REFINEMENT = 0.2
"""Share of the iterations, at the end, in which the objective never rises."""
REPLACE_EVERY = 10
"""Iterations between two replacements of rarely used atoms, while the objective may rise."""
MIN_PARALLEL_WORK = 2**22
"""Minimum number of multiplications of a coding stage for more than one thread."""


def starting_atoms(data: Array, n_components: int, rng: np.random.Generator, constraints: Constraints = FREE) -> Array:
    """Draw mutually dissimilar samples, completed by Gaussian directions if there are too few.

    Each atom is the one of ten random samples whose largest correlation with the previous atoms is smallest: similar
    initial atoms tend to stay similar, and plain draws recover fewer planted atoms. ``road.start.draw_samples``, in
    contrast, only skips repeated directions and supports any number of ranks.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    n_components : int
    rng : Generator
    constraints : Constraints
        With nonnegative atoms the nearest such directions of samples and of Gaussian ones are taken.

    Returns
    -------
    array of shape (n_components, n_features), rows of unit norm
    """
    drawn_atoms = rng.standard_normal((n_components, data.shape[1]))
    data = constraints.nearest_directions(data)
    drawn_atoms = np.abs(drawn_atoms) if constraints.positive_dict else drawn_atoms
    free, _ = unit_rows(data[np.any(data != 0, axis=1)])
    atoms = unit_rows(drawn_atoms)[0]
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

    The first four fifths of the iterations explore: the codes are those of the coder, better or worse than before.
    Greedy coders do not minimise the objective, and their errors help to escape poor local minima. Every tenth
    iteration replaces rarely used atoms. The last fifth refines the best iteration: a sample retains its codes if the
    coder's are worse, and steps that would raise the objective are rejected. An update without a coder refines from the
    start. A step at a fixed point is not computed again: BLOTLESS, for one, mostly ends at one early.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        float64, of order one.
    dictionary : array of shape (n_components, n_features), rows of unit norm
    update : Update
    code : callable or None
        ``code(data, dictionary, codes) -> codes``; None: the update computes the codes.
    codes : array of shape (n_samples, n_components)
        Initial codes of an update without a coder; ignored with a coder.
    alpha : float
        Weight of the penalty on the codes in the objective; 0: no penalty.
    arguments : dict of str to float
        Keyword arguments of the update.
    constraints : dict of str to bool
        "positive_code" and "positive_dict", where they are True.
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
        constraints: dict[str, bool],
        alpha: float,
        max_iter: int,
    ) -> None:
        self._data, self._size = data, float(np.linalg.norm(data))
        self._step, self._code, self._alpha = partial(update.step, **arguments, **constraints), code, alpha
        self._constraints = constraints
        self._penalty = update.penalty if code is None and update.penalty else absolute_penalty
        self._exploring = 0 if code is None else max_iter - round(REFINEMENT * max_iter)
        self._dictionary, self._codes = dictionary, codes
        self._errors = energies(residual(data, dictionary, codes))
        self._objective = self._evaluate(codes, self._errors)
        self._best = (math.inf, dictionary, codes, self._errors)
        self._iterations = 0
        self._is_fixed = False  # whether the last step changed nothing, so that the next one need not be computed

    def step(self, following: float | None = None) -> Changes:
        """Carry out one iteration; there is no ρ, and ``following`` is None."""
        before = self._dictionary, self._codes
        refining = self._iterations >= self._exploring
        if self._iterations == self._exploring and self._code is not None and self._iterations > 0:
            self._objective, self._dictionary, self._codes, self._errors = self._best
        elif 0 < self._iterations <= self._exploring - REPLACE_EVERY and self._iterations % REPLACE_EVERY == 0:
            self._dictionary = replace_rare_atoms(self._data, self._dictionary, self._codes, **self._constraints)
        self._iterations += 1
        start = self._dictionary, self._codes
        if not (self._is_fixed and _same(before, start)):
            self._advance(refining)
            self._is_fixed = _same(start, (self._dictionary, self._codes))
        return Changes(
            objective=self._objective,
            code_change=relative_change(before[1], self._codes),
            atom_change=relative_change(before[0], self._dictionary),
            error=self._relative(self._errors),
        )

    def _advance(self, refining: bool) -> None:
        """Code the samples and update the dictionary."""
        codes = self._codes if self._code is None else self._encode(self._code, refining)
        dictionary, codes = self._step(self._data, self._dictionary, codes)
        dictionary, codes = replace_atoms(self._data, dictionary, codes, self._alpha, **self._constraints)
        errors = energies(residual(self._data, dictionary, codes))
        objective = self._evaluate(codes, errors)
        if not refining or not objective > self._objective:  # NaN is accepted, and ends the run
            self._objective, self._dictionary, self._codes, self._errors = objective, dictionary, codes, errors
        if self._objective < self._best[0]:
            self._best = (self._objective, self._dictionary, self._codes, self._errors)

    def latest(self, unit: float) -> tuple[Array, Array, float, float]:
        """Return atoms, codes, objective (in the user's units) and error of the last iteration, or of the start."""
        return self._dictionary, self._codes, self._objective * unit, self._relative(self._errors)

    def best(self, unit: float) -> tuple[Array, Array, float, float]:
        """Return the same of the best iteration so far: while exploring, the last one need not be the best."""
        objective, dictionary, codes, errors = self._best
        return dictionary, codes, objective * unit, self._relative(errors)

    def _encode(self, code: Stage, refining: bool) -> Array:
        codes = code(self._data, self._dictionary, self._codes)
        if refining:
            worse = self._costs(codes, energies(residual(self._data, self._dictionary, codes))) > self._costs(
                self._codes, self._errors
            )
            codes[worse] = self._codes[worse]
        return codes

    def _costs(self, codes: Array, errors: Array) -> Array:
        """Contribution of every sample to the objective of a run with a coder, up to a common factor."""
        costs: Array = errors / 2 + self._alpha * np.abs(codes).sum(axis=1) if self._alpha > 0 else errors
        return costs

    def _relative(self, errors: Array) -> float:
        return math.sqrt(errors.sum()) / self._size

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
        self._iterations, self._is_fixed = int(iterations), False

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""
        return self._dictionary

    def codes(self) -> Array:
        """Return the codes, shape (n_samples, n_components)."""
        return self._codes


def _same(first: tuple[Array, Array], second: tuple[Array, Array]) -> bool:
    return all(map(np.array_equal, first, second))


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
    positive_code: bool = False,
    positive_dict: bool = False,
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
        A key of ``CODER_PARAMETERS``; None: the update computes the codes.
    n_nonzero_coefs, ridge, n_jobs
        As for ``AlternatingDictionaryLearning``.
    alpha, coder_alpha : float
        Weight or threshold of the update and the objective, and of the coder (None: its default), in the units of data.
    rule, view
        As for ``follow``.
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; both the start's atoms and ``UPDATES[update].constraints`` allow
        it.
    checkpoints : Checkpoints or None
        Saves the run periodically; the run resumes from the loaded checkpoint, if any.

    Returns
    -------
    Fit
        In the user's units.
    """
    method, given = UPDATES[update], {"alpha": alpha, "ridge": ridge}
    prepare(kernels_of_alternation(update, coder, positive_code), data.dtype)
    with Workers(1 if data.size * len(dictionary) < MIN_PARALLEL_WORK else n_jobs) as workers:
        code = None
        if coder is not None:
            code = _coding_stage(coder, data.shape[1], n_nonzero_coefs, coder_alpha, positive_code, workers)
        run = Alternation(
            data,
            dictionary,
            update=method,
            code=code,
            codes=_starting_codes(data, dictionary, None if code is not None else alpha, positive_code, n_jobs),
            arguments={name: given[name] for name in method.parameters},
            constraints=({"positive_code": True} if positive_code else {})
            | ({"positive_dict": True} if positive_dict else {}),
            alpha=alpha if coder in (None, "lasso") else 0.0,
            max_iter=rule.max_iter,
        )
        fit = yield from _run(run, rule, view, checkpoints, positive_code)
    yield fit
    return fit


def _starting_codes(data: Array, dictionary: Array, alpha: float | None, positive: bool, n_jobs: int | None) -> Array:
    """Lasso codes, for an update without a coder; alpha None: zeros, as a coder will replace them."""
    if alpha is None:
        return np.zeros((len(data), len(dictionary)))
    return encode(data, None, dictionary, algorithm="lasso", alpha=alpha, positive=positive, n_jobs=n_jobs)


def _run(
    run: Alternation, rule: Rule, view: View, checkpoints: Checkpoints | None, positive_code: bool
) -> Fitting[Fit]:
    """Run from the start, or from the loaded checkpoint, and return the best iteration in the user's units."""
    start = run.latest(view.unit)
    loaded = None if checkpoints is None else checkpoints.take_loaded()
    before = None if loaded is None else resume(loaded, run)[0]
    del loaded
    journal = None if checkpoints is None else RunJournal(checkpoints, run, [])
    outcome = yield from follow(run, rule, view, before, journal)
    dictionary, codes, objective, error = start if outcome.stop_reason == "non-finite" else run.best(view.unit)
    signs = np.ones(len(dictionary)) if positive_code else leading_signs(dictionary)
    return Fit(outcome, dictionary * signs[:, None], codes * (signs * view.unit), error, objective)


def _coding_stage(
    coder: str,
    n_features: int,
    n_nonzero_coefs: int | None,
    alpha: float | None,
    positive: bool,
    workers: Workers,
) -> Stage:
    """Return a function (data, dictionary, previous codes) -> codes."""
    if coder == "omp":
        requested = int(default_sparsity(n_features)) if n_nonzero_coefs is None else n_nonzero_coefs
        return lambda data, atoms, _: omp_of_order_one(data, atoms, min(requested, *atoms.shape), workers, positive)
    accepted = CODER_PARAMETERS[coder]
    return lambda data, atoms, codes: encode(
        data,
        None,
        atoms,
        algorithm=coder,
        n_nonzero_coefs=n_nonzero_coefs if "n_nonzero_coefs" in accepted else None,
        alpha=alpha if "alpha" in accepted else None,
        start=codes if "start" in accepted else None,
        positive=positive,
        n_jobs=workers.n_threads,
    )
