"""From what the user asked for to a problem for an engine: scale, formulation, bound and penalties."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict import checks
from roadict import formulation as forms
from roadict.formulation import Formulation, Problem, Triple, check_penalties
from roadict.linalg import of_order_one
from roadict.ranks.collectives import counts, largest, norm, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road import penalty
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.penalty import Annealing

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

PAIR = 2
FEW_SAMPLES = 6
"""Samples per atom below which wrong minima repeat themselves, and a pair of runs that agree is no proof."""
FORMULATIONS = ("constrained", "lasso", "inexact")


@dataclass(frozen=True)
class Plan:
    """A problem in the engine's units, and what is needed to go back to the user's.

    Attributes
    ----------
    problem : Problem
        With the constant penalties; an annealed run starts with its own.
    runs : tuple of Annealing or None
        One for every start: how ρ changes along the run. None: it stays.
    agreeing : int
        Number of runs that must have found the same for the others to be left out.
    unit : float
        The user's data over the engine's, a power of two: rescaling by it is exact, and engines see data of order
        one, whatever the user's units.
    bound : float or None
        Relative data error allowed, where the formulation bounds it.
    alpha : float
        Lasso weight in the engine's units; 0 for the other forms.
    norm : float
        Root-mean-square norm of the samples in the user's units.
    warning : str or None
        What the user should know of the penalties.
    comm : Comm
        The ranks, each of which has some of the samples.
    n_samples : int
        Of all ranks.
    """

    problem: Problem
    runs: tuple[Annealing | None, ...]
    agreeing: int
    unit: float
    bound: float | None
    alpha: float
    norm: float
    warning: str | None
    comm: Comm
    n_samples: int

    @property
    def wants_exact_fit(self) -> bool:
        """Whether a run may end with a fit that is exact and sparse beyond doubt, all entries being known."""
        return self.bound == 0 and self.problem.observed is None and self.runs[0] is not None


def make_plan(
    data: Array,
    observed: Mask,
    n_components: int,
    *,
    formulation: str,
    epsilon: float | str,
    alpha: float | None,
    beta: float | Triple | None,
    rho: float | Triple | str,
    n_init: int | None,
    max_iter: int,
    anneal: bool,
    comm: Comm = SERIAL,
) -> Plan:
    """Resolve the parameters of ``ROAD`` of the same names; raises ValueError where they cannot be met.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        This rank's. Not all zero, unless other ranks have some; unobserved entries hold zero.
    observed : bool array like data, or None
    n_components : int
    anneal : bool
        Whether an automatic ρ may change along the run, which forgets the start.
    comm : Comm
        All ranks make the same plan, each for its samples.
    """
    top = largest(comm, data)
    checks.data_range(top, data.dtype)
    data, unit = of_order_one(data, top)
    size, n_samples = sample_norm(data, observed, comm), sum(counts(comm, len(data)))
    bound, weight, doubt = None, 0.0, None
    if formulation == "constrained":
        bound, doubt = _relative_bound(data, observed, n_components, epsilon, comm)
        form = forms.constrained(bound * norm(comm, data))
    elif formulation == "lasso":
        weight = penalty.auto_alpha(size) if alpha is None else checks.real_number("alpha", alpha) / unit
        form = forms.lasso(1 / weight)
    else:
        if observed is not None:
            raise ValueError('formulation="inexact" takes no missing values; use "constrained" or "lasso"')
        form = forms.inexact(penalty.auto_betas(size) if beta is None else _scaled("beta", beta, unit))
    ratio = n_components / data.shape[1]
    rhos, warning = _penalties(form, rho, penalty.auto_rho(size, ratio, bound or 0.0), size, unit)
    problem = Problem(data, observed, form, rhos)
    runs: tuple[Annealing | None, ...] = (None,) * (n_init or 1)
    agreeing = PAIR + (n_samples < FEW_SAMPLES * n_components)
    if isinstance(rho, str) and form.exact_consensus and anneal:
        exact = bound == 0 and observed is None
        scarce = agreeing > PAIR
        runs = penalty.annealings(rhos[0], ratio, n_init=n_init, trial=exact, scarce=scarce, max_iter=max_iter)
    return Plan(problem, runs, agreeing, unit, bound, weight, size * unit, warning or doubt, comm, n_samples)


def sample_norm(data: Array, observed: Mask, comm: Comm = SERIAL) -> float:
    """Root-mean-square norm of the samples that are not zero, as if every entry had been observed."""
    used = data.any(axis=1)
    seen = used.sum() * data.shape[1] if observed is None else observed[used].sum()
    return norm(comm, data.astype(np.float64)) / math.sqrt(total(comm, float(seen)) / data.shape[1])


def _relative_bound(
    data: Array, observed: Mask, n_components: int, epsilon: float | str, comm: Comm
) -> tuple[float, str | None]:
    """The bound, and a warning where missing entries leave it in doubt whether it can be met."""
    if isinstance(epsilon, str):
        checks.one_of("epsilon", epsilon, ("auto",), "a number")
        return auto_epsilon(smallest_error(data, observed, n_components, comm)), None
    bound = checks.real_number("epsilon", epsilon, zero=True)
    if bound >= 1:
        raise ValueError(f"epsilon={bound:g} must be below 1: codes that are all zero already reach 1")
    floor = smallest_error(data, observed, n_components, comm)
    if bound >= floor:
        return bound, None
    remedy = 'pass epsilon="auto", a larger number or more components'
    reach = f"relative error that n_components={n_components} atoms can reach on this data"
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
