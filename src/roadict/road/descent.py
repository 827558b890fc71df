"""Descent from the atoms of a search to a stationary point of the objective: codes, then one atom after the other."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.blas import one_blas_thread
from roadict.coders.registry import encode
from roadict.constraints import FREE, Constraints
from roadict.linalg import unit_rows
from roadict.ranks.collectives import broadcast, gathered, norm, total
from roadict.ranks.comm import Comm
from roadict.road.plan import Plan
from roadict.runs.measures import DescentMeasures
from roadict.runs.state import RunState

Array = NDArray[np.floating]

STATIONARY = 10
"""A descent has converged at a stationarity of this many tolerances: there, 1e-4 of the objective is left."""
FIRST_WEIGHT = 0.1
"""First Lasso weight tried to meet an error bound, relative to the root-mean-square norm of the samples."""
MIN_WEIGHT = 1e-6
"""Smallest weight tried, likewise: some bounds are below what the atoms can reach."""
MAX_CODINGS = 30
"""Maximum number of weights tried per coding; mostly one or two are."""
BOUND_MET = 3e-4
"""Relative distance to the error bound at which no other weight is tried."""
FIRST_SLOPE, MIN_SLOPE, MAX_SLOPE = 0.7, 1e-3, 2.0
"""Slope of log error over log weight, until it is measured, and its bounds."""
TINY = 1e-9
"""Smallest error considered, relative to its bound."""
MAX_STEP = 2.0
"""Largest difference between the logarithms of two successive weights."""
DISTINCT = 0.99
"""Cosine up to which two new atoms count as distinct."""
ROUNDING = {4: 1e-6, 8: 1e-12}
"""By item size: relative change of the objective that may be a rounding error."""


class Coded(NamedTuple):
    """Minimal codes for some atoms.

    ``objective`` is that of the formulation. Under an error bound it is the dual function at ``weight``, a lower bound
    of the smallest Σ|codes| whose distance is of second order in that of the error to its bound.
    """

    codes: Array
    objective: float
    misfit: float
    weight: float


class Descent:
    """A run in progress that lowers the objective, over all samples, until it is stationary.

    A step improves one atom after the other for fixed codes, each to its minimum on the unit sphere; moves the atoms
    further in the direction of the last two steps, as accelerated gradient methods do; and computes minimal codes. If
    the objective has risen, it goes back and codes the improved atoms themselves, for which it cannot rise. Atoms that
    no sample uses are replaced by the sample that is represented worst.

    Missing entries take the values of the current representation while atoms are improved, which majorises the misfit:
    a step never raises it.

    Parameters
    ----------
    plan : Plan
        With an error bound above 0 or a Lasso weight.
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
        Codes to start from, like the data multiplied by the roots of the weights of the samples.
    n_jobs : int or None
    """

    rhos = ()
    """There is no augmented Lagrangian."""

    @one_blas_thread()
    def __init__(self, plan: Plan, dictionary: Array, codes: Array, n_jobs: int | None) -> None:
        self._plan, self._comm, self._constraints = plan, plan.comm, plan.problem.constraints
        self._data, self._observed = plan.problem.data, plan.problem.observed
        self._samples = plan.unweighted(self._data)
        self._n_jobs = n_jobs
        self._size = norm(plan.comm, self._data)
        self._unit_weight = plan.norm / plan.unit
        self._alpha, self._target = plan.alpha, (plan.bound or 0.0) * self._size
        self._slope, self._weight = FIRST_SLOPE, plan.alpha or FIRST_WEIGHT * self._unit_weight
        self._dictionary: Array = dictionary.astype(np.float64)
        self._improved = self._dictionary
        self._momentum = 1.0
        self._coded = self._code(self._dictionary, codes)
        self._statistics: tuple[Array, Array] | None = self._sum_up(self._coded.codes)

    @property
    def weight(self) -> float:
        """Lasso weight of the present codes."""
        return self._coded.weight

    @one_blas_thread()
    def step(self, following: float | None = None) -> DescentMeasures:
        """Carry out one iteration; there is no ρ, and ``following`` is None."""
        gram, target = self._statistics or self._sum_up(self._coded.codes)
        improved: Array = improved_atoms(self._dictionary, gram, target, self._constraints)
        before = self._improved.copy()
        unused = unused_atoms(gram, self._constraints)
        if len(unused):
            residual = self._residual(self._dictionary, self._coded.codes)
            found = worst_directions(residual, len(unused), self._comm, self._constraints)
            improved[unused[: len(found)]] = before[unused[: len(found)]] = found
        momentum = (1 + math.sqrt(1 + 4 * self._momentum**2)) / 2
        ahead: Array = improved + (self._momentum - 1) / momentum * (improved - before)
        ahead = self._constraints.nearest_atoms(ahead, improved)
        coded = self._code(ahead, self._coded.codes)
        if not coded.objective <= self._coded.objective:
            if self._momentum > 1:
                ahead = improved
                coded = self._code(ahead, self._coded.codes)
            momentum = 1.0
        self._statistics = gram, target
        if coded.objective <= self._coded.objective * (1 + ROUNDING[self._data.itemsize]):
            self._dictionary, self._improved = broadcast(self._comm, ahead), improved
            self._coded, self._statistics = coded, self._sum_up(coded.codes)
        self._momentum = momentum
        return DescentMeasures(
            objective=self._coded.objective,
            stationarity=stationarity(self._dictionary, *self._statistics, self._constraints),
            error=self._coded.misfit / self._size,
        )

    def _sum_up(self, codes: Array) -> tuple[Array, Array]:
        """Return codesᵀ codes and codesᵀ data, of all ranks, for the present atoms."""
        data = self._data
        if self._observed is not None:
            data = np.where(self._observed, data, codes @ self._dictionary.astype(codes.dtype))
        gram, target = (codes.T @ codes).astype(np.float64), (codes.T @ data).astype(np.float64)
        return self._comm.sum(gram), self._comm.sum(target)

    def _code(self, dictionary: Array, start: Array) -> Coded:
        """Return the minimal codes; under an error bound, for the weight that meets it."""
        if self._alpha:
            codes, size, misfit = self._lasso(dictionary, start, self._alpha)
            return Coded(codes, size + misfit**2 / (2 * self._alpha), misfit, self._alpha)
        weight, slope = self._weight, self._slope
        least = MIN_WEIGHT * self._unit_weight
        low, high = least, math.inf
        last: tuple[float, float] | None = None
        for _ in range(MAX_CODINGS):
            start, size, misfit = self._lasso(dictionary, start, weight)
            used, ratio = weight, max(misfit / self._target, TINY)
            if last is not None and ratio != last[1]:
                slope = min(MAX_SLOPE, max(MIN_SLOPE, math.log(ratio / last[1]) / math.log(weight / last[0])))
            last = used, ratio
            low, high = (used, high) if ratio < 1 else (low, used)
            weight = used * math.exp(min(MAX_STEP, max(-MAX_STEP, -math.log(ratio) / slope)))
            if abs(ratio - 1) <= BOUND_MET or high <= (1 + BOUND_MET) * low:
                break
            if not low < weight < high:
                weight = math.sqrt(low * high) if low > least or high > math.exp(MAX_STEP) * least else least
        self._weight, self._slope = max(weight, least), slope
        return Coded(start, size + (misfit**2 - self._target**2) / (2 * used), misfit, used)

    def _lasso(self, dictionary: Array, start: Array, weight: float) -> tuple[Array, float, float]:
        """Return Lasso codes, Σ|codes| and the norm of the residual, over all ranks."""
        codes = self._plan.weighted(
            encode(
                self._samples,
                self._observed,
                dictionary,
                algorithm="lasso",
                alpha=weight,
                start=self._plan.unweighted(start),
                positive=self._constraints.positive_code,
                n_jobs=self._n_jobs,
                warn=False,
            )
        )
        size = total(self._comm, float(np.abs(self._plan.weighted(codes)).sum(dtype=np.float64)))
        return codes, size, norm(self._comm, self._residual(dictionary, codes))

    def _residual(self, dictionary: Array, codes: Array) -> Array:
        residual: Array = self._data - codes @ dictionary.astype(codes.dtype)
        return residual if self._observed is None else residual * self._observed

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations."""
        coded = self._coded
        numbers = [coded.objective, coded.misfit, coded.weight, self._weight, self._slope, self._momentum]
        shared = {"dictionary": self._dictionary, "improved": self._improved, "numbers": np.array(numbers)}
        return RunState({"codes": coded.codes}, shared)

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state, whose codes are those of the samples from ``start`` on."""
        codes = self._coded.codes.copy()
        codes[start : start + len(state.local["codes"])] = state.local["codes"]
        self._dictionary, self._improved = np.array(state.shared["dictionary"]), np.array(state.shared["improved"])
        objective, misfit, weight, self._weight, self._slope, self._momentum = map(float, state.shared["numbers"])
        self._coded = Coded(codes, objective, misfit, weight)
        self._statistics = None  # sums over all ranks, which may restore another number of parts

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""
        return self._dictionary

    def codes(self) -> Array:
        """Return the codes, shape (n_samples, n_components), of this rank's samples."""
        return self._coded.codes


def unused_atoms(gram: Array, constraints: Constraints = FREE, negligible: float = 0.0) -> NDArray[np.intp]:
    """Return the atoms to replace, given codesᵀ codes: those that no sample uses, unless none is used or all are known.

    ``negligible``: squared codes of an atom, relative to the largest of all atoms, up to which it counts as unused.
    """
    uses = np.diag(gram)
    unused = np.flatnonzero(uses <= negligible * uses.max())
    return unused[unused >= constraints.n_fixed] if len(unused) < len(gram) else unused[:0]


def worst_directions(residual: Array, count: int, comm: Comm, constraints: Constraints = FREE) -> Array:
    """Return up to ``count`` distinct directions of the largest residuals of all ranks, of what atoms can represent."""
    residual = constraints.nearest_directions(residual)
    worst = np.argsort(-np.linalg.norm(residual, axis=1), kind="stable")[:count]
    rows, sizes = unit_rows(gathered(comm, residual[worst].astype(np.float64)))
    found: list[Array] = []
    for n in np.argsort(-sizes, kind="stable"):
        new = not found or constraints.likeness(np.array(found) @ rows[n]).max() < DISTINCT
        if len(found) < count and sizes[n] > 0 and new:
            found.append(rows[n])
    return np.array(found).reshape(-1, residual.shape[1])


def improved_atoms(dictionary: Array, gram: Array, target: Array, constraints: Constraints = FREE) -> Array:
    """Minimise ‖data - codes @ dictionary‖ over one atom after the other on the unit sphere, for fixed codes.

    With nonnegative atoms on its part in the nonnegative orthant; known atoms stay.

    Parameters
    ----------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    gram : array of shape (n_components, n_components)
        codesᵀ codes
    target : array of shape (n_components, n_features)
        codesᵀ data
    constraints : Constraints

    Returns
    -------
    array of shape (n_components, n_features), rows of unit norm
    """
    atoms = dictionary.copy()
    for k in constraints.n_fixed + np.flatnonzero(np.diag(gram)[constraints.n_fixed :] > 0):
        atom = target[k] - gram[k] @ atoms + gram[k, k] * atoms[k]
        if constraints.positive_dict:
            atom = np.maximum(atom, 0)
        size = math.sqrt(atom @ atom)
        if size > 0:
            atoms[k] = atom / size
    return atoms


def stationarity(dictionary: Array, gram: Array, target: Array, constraints: Constraints = FREE) -> float:
    """Return the distance of the atoms from the best ones for the same codes, each with the others held fixed.

    The root mean square over the atoms, weighted by the squares of their codes: 0 at a stationary point.

    Parameters
    ----------
    dictionary, gram, target, constraints
        As for ``improved_atoms``.
    """
    weights = np.diag(gram)
    if not weights.any():
        return 0.0
    best = constraints.nearest_atoms(target - gram @ dictionary + weights[:, None] * dictionary, dictionary)
    return math.sqrt(float(weights @ np.sum((best - dictionary) ** 2, axis=1) / weights.sum()))
