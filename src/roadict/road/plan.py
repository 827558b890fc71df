"""From the parameters of ROAD to a problem for an engine: scale, formulation, error bound and penalties."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict import checks
from roadict import formulation as forms
from roadict.constraints import Constraints
from roadict.formulation import Formulation, Problem, RankOne, Triple, check_penalties
from roadict.linalg import of_order_one
from roadict.ranks.collectives import counts, largest, norm, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road import penalty
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.penalty import Annealing
from roadict.road.start import starting_point
from roadict.road.subset import subset

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

REQUIRED_AGREEMENT = 2
"""Fits that must agree for the remaining starts to be skipped."""
UNSEARCHED = 2
"""Number of first starts that only descend, one less if samples are scarce: enough to see whether they agree."""
SCARCE = 6
"""Samples per atom below which poor local minima recur too, so that one more fit must agree."""
SMALLEST_LENGTH = 1e-4
"""Smallest norm by which a sample is divided, relative to the root-mean-square norm: less may be rounding."""
LAST_RHO = 10.0
"""ρ of the last step, relative to the constant one: about where annealed runs end."""
SEARCH_SAMPLES_PER_ATOM = (10, 25)
"""Minimum and maximum number of samples per atom that a search uses, if it may choose."""
MIN_SEARCH_SAMPLES = 10
"""Number of nonzero samples, besides that of the atoms, above which a search may use those chosen by content."""
MANY_COPIES = 4
"""Samples that it draws at random otherwise, relative to those that it needs: then most are copies of each other."""
CHEAP_STATE = 4_000_000
"""Size of the rank-one matrices, n_samples × n_features × n_components, up to which more samples are used."""
DEFAULT_ITERATIONS = {"constrained": 2000, "lasso": 2000, "inexact": 10_000}
"""Number of iterations per start, at most, unless given; for the inexact form the paper's: it takes small steps."""
FORMULATIONS = tuple(DEFAULT_ITERATIONS)


@dataclass(frozen=True)
class Plan:
    """A problem in the engine's units, how to run it, and how to return to the user's units.

    Attributes
    ----------
    problem : Problem
        With constant penalties; an annealed run starts with its own.
    runs : tuple of Annealing or None
        One per start; None: constant ρ.
    required_agreement : int
        Number of fits that must agree for the remaining starts to be skipped.
    unit : float
        The user's data over the engine's, a power of two: rescaling is exact, and engines always see data of order
        one.
    bound : float or None
        Bound on the relative data error, if the formulation has one.
    alpha : float
        Lasso weight in the engine's units; 0 for the other forms.
    norm : float
        Root-mean-square norm of the samples in the user's units.
    warning : str or None
        About the penalties or the error bound.
    comm : Comm
        The ranks over which the samples are distributed.
    n_samples : int
        On all ranks.
    n_components : int
    tries_exact_finish : bool
        Whether runs try the exact finish: error bound 0, no missing entries, annealed ρ.
    descends : bool
        Whether a descent follows every search: a positive error bound or a Lasso weight, and not the plain iteration.
    n_unsearched : int
        Number of first starts that only descend: with many samples this often finds what a search finds.
    searched : Plan or None
        For some of the samples: atoms are sought with these, and a descent over all follows. None: with all.
    share : float
        Share of the samples of the fit that the plan is for.
    lengths : array of shape (n_samples, 1), or None
        What the problem's samples were divided by, so that all have the same norm and count alike in the search; None:
        nothing. Weights come on top: the problem's samples are multiplied by its ``roots``.
    fixed : array of shape (n_fixed, n_features), or None
        The known atoms, of unit norm.
    """

    problem: Problem
    runs: tuple[Annealing | None, ...]
    required_agreement: int
    unit: float
    bound: float | None
    alpha: float
    norm: float
    warning: str | None
    comm: Comm
    n_samples: int
    n_components: int
    tries_exact_finish: bool = False
    descends: bool = False
    n_unsearched: int = 0
    searched: "Plan | None" = None
    share: float = 1.0
    lengths: Array | None = None
    fixed: Array | None = None

    @property
    def scarce(self) -> bool:
        """Whether samples are so few that poor local minima recur."""
        return self.required_agreement > REQUIRED_AGREEMENT

    @property
    def search_is_cheap(self) -> bool:
        """Whether a search takes little more time than a descent."""
        return bool(self.n_components * self.problem.data.shape[1] * self.n_samples <= CHEAP_STATE)

    @property
    def code_unit(self) -> Array | None:
        """The user's codes over the problem's, apart from the unit: shape (n_samples, 1), or None for 1."""
        roots = self.problem.roots
        if roots is None:
            return self.lengths
        return 1 / roots if self.lengths is None else self.lengths / roots

    def weighted(self, rows: Array) -> Array:
        """Multiply the rows of samples or codes by the roots of their weights."""
        roots = self.problem.roots
        return rows if roots is None else (rows * roots).astype(rows.dtype)

    def unweighted(self, rows: Array) -> Array:
        """Divide the rows of samples or codes by the roots of their weights: coders work on samples as they are."""
        roots = self.problem.roots
        return rows if roots is None else (rows / roots).astype(rows.dtype)

    def start(
        self, rng: np.random.Generator, dictionary: Array | None = None, codes: Array | None = None
    ) -> tuple[Array, Array]:
        """Return a start, of which dictionary or codes may be given; the known atoms take the first places."""
        problem = self.problem
        return starting_point(
            problem.data, self.n_components, dictionary, codes, rng, self.comm, problem.constraints, self.fixed
        )

    def last_step(self) -> "Plan":
        """Plan one more run, without annealing, on the samples as they are."""
        if self.lengths is None:
            return self
        rhos = (LAST_RHO * self.problem.rhos[0],) * 3
        problem = replace(self.problem, data=self.problem.data * self.lengths, rhos=rhos)
        return replace(self, problem=problem, runs=(None,), lengths=None)


@dataclass(frozen=True)
class Parameters:
    """Parameters of ``ROAD`` of the same names, and three more.

    ``anneal``: whether an automatic ρ may be annealed, which forgets the start. ``descend``: whether searches are
    followed by descents, ``finish``: whether they try the exact finish, where these apply. ``fixed_atoms`` are of unit
    norm.
    """

    formulation: str = "constrained"
    epsilon: float | str = "auto"
    alpha: float | None = None
    beta: float | Triple | None = None
    rho: float | Triple | str = "auto"
    n_init: int | None = None
    max_iter: int = 2000
    n_search_samples: int | str = "auto"
    positive_code: bool = False
    positive_dict: bool = False
    fixed_atoms: Array | None = None
    anneal: bool = True
    descend: bool = True
    finish: bool = True

    @property
    def constraints(self) -> Constraints:
        """Constraints on codes and atoms."""
        n_fixed = 0 if self.fixed_atoms is None else len(self.fixed_atoms)
        return Constraints(self.positive_code, self.positive_dict, n_fixed)

    @property
    def plain(self) -> bool:
        """Whether the run is the plain iteration of the paper: a numeric ρ and one start."""
        return not isinstance(self.rho, str) and self.n_init in (None, 1)

    @property
    def noise_is_unknown(self) -> bool:
        """Whether the bound, or the weight of the Lasso form, is to follow from the data."""
        if self.plain:
            return False
        if self.formulation == "lasso":
            return self.alpha is None
        return self.formulation == "constrained" and isinstance(self.epsilon, str)


@dataclass(frozen=True)
class Request:
    """What a fit is asked for.

    Attributes
    ----------
    data : array of shape (n_samples, n_features)
        This rank's samples in the user's units, zero at unobserved entries.
    observed : bool array like data, or None
    n_components : int
    parameters : Parameters
    comm : Comm
    weights : array of shape (n_samples,), or None
        Of the samples, above zero; None: all 1.
    """

    data: Array
    observed: Mask
    n_components: int
    parameters: Parameters
    comm: Comm = SERIAL
    weights: Array | None = None

    def plan(self) -> Plan:
        """Resolve the parameters."""
        plan = make_plan(self.data, self.observed, self.n_components, self.parameters, self.comm, self.weights)
        if not plan.descends or not self.parameters.anneal or plan.n_samples <= self.n_searched:
            return plan
        some = self.some(np.random.default_rng(0))  # depends on the samples alone: starts compare one objective
        if plan.bound is not None:  # the floor of some samples may be above that of all
            limits = self.parameters.constraints, self.parameters.fixed_atoms
            data = some.data if some.weights is None else some.data * np.sqrt(some.weights)[:, None]
            floor = smallest_error(data, some.observed, self.n_components, self.comm, *limits)
            some = some.changed(epsilon=max(plan.bound, auto_epsilon(floor)))
        searched = some.changed(n_search_samples=plan.n_samples).plan()
        return replace(plan, searched=replace(searched, share=searched.n_samples / plan.n_samples))

    @property
    def n_searched(self) -> int:
        """Number of samples, about, that a search uses, if there are more."""
        wanted = self.parameters.n_search_samples
        return search_samples(self.data.shape[1], self.n_components) if isinstance(wanted, str) else wanted

    def some(self, rng: np.random.Generator) -> "Request":
        """Return the request for the samples of a search, none of them zero; for random ones if most are copies."""
        nonzero: NDArray[np.bool_] = np.asarray(self.data.any(axis=1))
        share = min(1.0, self.n_searched / max(1, sum(counts(self.comm, int(nonzero.sum())))))
        kept = nonzero & subset(self.data, self.observed, share, rng)
        if sum(counts(self.comm, int(kept.sum()))) <= max(self.n_components, MIN_SEARCH_SAMPLES):
            kept = nonzero & (rng.random(len(nonzero)) <= MANY_COPIES * share)
        observed = None if self.observed is None else self.observed[kept]
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, data=self.data[kept], observed=observed, weights=weights)

    def changed(self, **parameters: Any) -> "Request":
        """Return the request with other parameters of these names."""
        return replace(self, parameters=replace(self.parameters, **parameters))


def search_samples(n_features: int, n_components: int) -> int:
    """Return the number of samples that a search needs: as many as are cheap, within bounds per atom.

    Examples
    --------
    >>> search_samples(16, 32), search_samples(64, 100), search_samples(64, 256)
    (800, 1000, 2560)
    """
    least, most = (per_atom * n_components for per_atom in SEARCH_SAMPLES_PER_ATOM)
    return min(max(CHEAP_STATE // (n_features * n_components), least), most)


def make_plan(
    data: Array,
    observed: Mask,
    n_components: int,
    parameters: Parameters,
    comm: Comm = SERIAL,
    weights: Array | None = None,
) -> Plan:
    """Resolve the parameters; raises ValueError if they cannot be met.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        This rank's samples, zero at unobserved entries. Not zero on all ranks.
    observed : bool array like data, or None
    n_components : int
    parameters : Parameters
        ``epsilon="auto"``: 0, or slightly above the floor if there are fewer atoms than the rank of the data.
    comm : Comm
        All ranks make the same plan, each for its own samples.
    weights : array of shape (n_samples,), or None
        Of the samples, above zero; None: all 1.
    """
    top = largest(comm, data)
    checks.data_range(top, data.dtype)
    data, unit, roots = _weighed(data, top, weights, comm)
    size, n_samples = sample_norm(data, observed, comm, weights), sum(counts(comm, len(data)))
    bound, weight, bound_warning = None, 0.0, None
    if parameters.formulation == "constrained":
        bound, bound_warning = _relative_bound(data, observed, n_components, parameters, comm)
        form = forms.constrained(bound * norm(comm, data))
    elif parameters.formulation == "lasso":
        alpha = parameters.alpha
        weight = penalty.auto_alpha(size) if alpha is None else checks.real_number("alpha", alpha) / unit
        form = forms.lasso(1 / weight)
    else:
        if observed is not None:
            raise ValueError('formulation="inexact" does not support missing values; use "constrained" or "lasso"')
        form = forms.inexact(
            penalty.auto_betas(size) if parameters.beta is None else _scaled("beta", parameters.beta, unit)
        )
    constraints = parameters.constraints
    form = replace(form, rank_one=RankOne.of_signs(constraints.positive_code, constraints.positive_dict))
    ratio, rho, n_init = n_components / data.shape[1], parameters.rho, parameters.n_init
    rhos, warning = _penalties(form, rho, penalty.auto_rho(size, ratio, bound or 0.0), size, unit)
    runs: tuple[Annealing | None, ...] = (None,) * (n_init or 1)
    scarce = n_samples < SCARCE * n_components
    exact, lengths = False, None
    descends = parameters.descend and not parameters.plain and (weight > 0 or bool(bound))
    if isinstance(rho, str) and form.exact_consensus and parameters.anneal:
        exact = bound == 0 and observed is None
        runs = penalty.annealings(
            rhos[0],
            ratio,
            n_init=n_init,
            trial=exact,
            scarce=scarce,
            descends=descends,
            max_iter=parameters.max_iter,
            signed=constraints.signed,
        )
    if exact:
        lengths = _relative_lengths(data if roots is None else data / roots, size).astype(data.dtype)
        data = data / lengths
    problem = Problem(data, observed, form, rhos, roots, constraints.n_fixed)
    return Plan(
        problem=problem,
        runs=runs,
        required_agreement=REQUIRED_AGREEMENT + scarce,
        unit=unit,
        bound=bound,
        alpha=weight,
        norm=size * unit,
        warning=warning or bound_warning,
        comm=comm,
        n_samples=n_samples,
        n_components=n_components,
        tries_exact_finish=exact and parameters.finish,
        descends=descends,
        n_unsearched=_n_unsearched(len(runs), scarce, constraints) if descends and parameters.anneal else 0,
        lengths=lengths,
        fixed=parameters.fixed_atoms,
    )


def _n_unsearched(n_runs: int, scarce: bool, constraints: Constraints) -> int:
    """Number of first starts that only descend: with signs none, as descents alone end in wrong minima that recur."""
    return 0 if constraints.signed else min(UNSEARCHED - scarce, n_runs - 1)


def _weighed(
    data: Array, top: float, weights: Array | None, comm: Comm
) -> tuple[Array, float, NDArray[np.float64] | None]:
    """Multiply the samples by the roots of their weights, and bring them to order one; returns unit and roots too."""
    if weights is None:
        return *of_order_one(data, top), None
    roots = np.sqrt(weights.astype(np.float64))[:, None]
    weighed, unit = of_order_one(data * roots, largest(comm, data * roots))  # in float64: it cannot overflow
    return weighed.astype(data.dtype), unit, roots


def _relative_lengths(data: Array, size: float) -> Array:
    """Norms of the samples relative to their root-mean-square, as a column; 1 for samples that are (almost) zero."""
    lengths = np.linalg.norm(data.astype(np.float64), axis=1, keepdims=True) / size
    return np.where(lengths > SMALLEST_LENGTH, lengths, 1.0)


def sample_norm(data: Array, observed: Mask, comm: Comm = SERIAL, weights: Array | None = None) -> float:
    """Root-mean-square norm of the nonzero samples, extrapolated to unobserved entries.

    ``weights``: those by whose roots the samples are multiplied.
    """
    used = data.any(axis=1)
    numbers = np.ones(len(data), np.int64) if weights is None else weights.astype(np.float64)
    seen = numbers[used].sum() * data.shape[1] if observed is None else (observed.sum(axis=1) * numbers)[used].sum()
    return norm(comm, data.astype(np.float64)) / math.sqrt(total(comm, float(seen)) / data.shape[1])


def _relative_bound(
    data: Array, observed: Mask, n_components: int, parameters: Parameters, comm: Comm
) -> tuple[float, str | None]:
    """Return the bound, and a warning if with missing entries it may not be attainable."""
    epsilon = parameters.epsilon
    floor = smallest_error(data, observed, n_components, comm, parameters.constraints, parameters.fixed_atoms)
    if isinstance(epsilon, str):
        checks.one_of("epsilon", epsilon, ("auto",), "a number")
        return auto_epsilon(floor), None
    bound = checks.real_number("epsilon", epsilon, zero=True)
    if bound >= 1:
        raise ValueError(f"epsilon={bound:g} must be below 1, the error of all-zero codes")
    if bound >= floor:
        return bound, None
    remedy = 'pass epsilon="auto", a larger number or more components'
    signs = parameters.positive_code and parameters.positive_dict
    kind = "nonnegative atoms with nonnegative codes" if signs else "atoms"
    reach = f"relative error that n_components={n_components} {kind} can reach on this data"
    if observed is not None:
        return bound, f"epsilon={bound:g} is below {floor:.3g}, an estimate of the smallest {reach}; {remedy}"
    raise ValueError(f"epsilon={bound:g} is below {floor:.6g}, the smallest {reach}; {remedy}")


def _penalties(
    form: Formulation, rho: float | Triple | str, auto: float, norm: float, unit: float
) -> tuple[Triple, str | None]:
    if isinstance(rho, str):
        checks.one_of("rho", rho, ("auto",), "a number")
        return ((auto, auto, auto) if form.exact_consensus else penalty.auto_rhos(form.betas, norm)), None
    rhos = checks.three_numbers("rho", rho)
    if form.exact_consensus:
        if isinstance(rho, list | tuple | np.ndarray) and np.ndim(rho) > 0:
            raise ValueError(f'rho={rho!r} must be one number unless formulation="inexact"')
        return _scaled("rho", rho, unit), None
    first, second, third = (beta / unit for beta in form.betas)
    return _scaled("rho", rho, unit), check_penalties((first, second, third), rhos)


def _scaled(name: str, value: float | Triple, unit: float) -> Triple:
    first, second, third = (number * unit for number in checks.three_numbers(name, value))
    return first, second, third
