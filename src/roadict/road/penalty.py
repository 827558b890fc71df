"""ρ, β and α where the user leaves them to us.

All follow the scale of the data, so that learning from a·X gives the same atoms and a times the codes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roadict.formulation import Triple

PAPER_NORM = math.sqrt(3)
"""Root-mean-square norm of the samples in the paper's experiments, for which its ρ = 10 and β = 200…300 are."""
PAPER_BETAS = (200.0, 300.0, 250.0)
PAPER_MARGIN = 10.0
"""ρ_i - β_i in the paper's iADMM."""
RHO_PER_RATIO = 5.0
"""ρ at PAPER_NORM per unit of n_components / n_features: about twice the value below which runs never settle."""
ALPHA = 0.1
"""Lasso weight, relative to the root-mean-square norm of the samples."""


LEAST = 0.1
"""How low ρ may go, in units of the constant one."""
COLD = 1e-4
"""Relative primal residual to which an annealed run is led in the end."""
MOST_RESTARTED = 3.0
"""n_components over n_features, from 1, up to which runs may be warm, and more than one of them pays."""
ENOUGH = 0.9
"""Share of the wanted residual below which ρ comes down."""
TINY = 1e-300
STEP = 10
"""Iterations between two changes of ρ."""
MOST_ANNEALED = 0.9
"""Largest share of a run's iterations that is annealed."""
LOWERING, MOST_RAISING = 0.93, 1.1
"""Factor by which one change lowers ρ, and the largest by which one raises it."""


class Schedule(NamedTuple):
    """First ρ, in units of the constant one; residual that is held, for how many iterations; length of its fall."""

    first: float
    warmth: float
    hold: int
    fall: int


TRIAL = Schedule(3.0, 0.05, 150, 550)
"""A short run, where it can be told whether it has succeeded."""
BRIEF = Schedule(3.0, 0.05, 400, 800)
"""Leaves time for the slow end of runs with fewer atoms than features, whose error is near the smallest possible."""
GENTLE = Schedule(3.0, 0.025, 700, 800)
"""For more than three atoms per feature: hotter runs lose what they have found."""
WARM = Schedule(3.0, 0.1, 1000, 800)
"""For one to three atoms per feature: colder runs freeze too early."""
WILD = Schedule(0.25, 0.5, 0, 1000)
"""Forgets its start altogether, which makes it differ most from the others."""


@dataclass(frozen=True)
class Annealing:
    """ρ along a run, such that the primal residual stays at ``warmth`` for a while and then falls evenly.

    The residual says how much a run still moves. A ρ far above the critical value of the problem at hand freezes the
    run where it started, one below lets it wander for ever; and that value is not known beforehand. So ρ starts
    high and comes down until the residual has the wanted size: atoms then still change places, but do not get lost.
    Later ρ only rises, where the residual falls too slowly: every run settles in the end.

    Attributes
    ----------
    first, least : float
        ρ at the start, and its smallest value.
    warmth : float
        Relative primal residual.
    hold, fall : int
        Iterations for which it is held there, and for its fall to COLD.
    """

    first: float
    least: float
    warmth: float
    hold: int
    fall: int

    def wanted(self, iteration: int) -> float:
        """Return the primal residual that this iteration should have."""
        done = min(max(iteration - self.hold, 0) / self.fall, 1.0)
        return float(self.warmth * (COLD / self.warmth) ** done)

    def __call__(self, iteration: int, rho: float, primal: Sequence[float], dual: Sequence[float]) -> float:
        """Return the ρ that follows, given the residuals of all iterations before this one.

        After the fall the dual residual counts as well: it is the larger one in runs that creep.

        Examples
        --------
        >>> annealing = Annealing(30.0, 1.0, 0.05, hold=500, fall=500)
        >>> [annealing(n, 10.0, [residual] * 30, [0.0] * 30) for n, residual in ((45, 1.0), (50, 1.0), (50, 0.04))]
        [10.0, 11.0, 9.3]
        """
        if iteration % STEP or len(primal) < 2 * STEP:
            return rho
        size = _recent(primal)
        if iteration > self.hold + self.fall:
            size = max(size, _recent(dual))
        excess = size / self.wanted(iteration)
        if excess > 1:
            return rho * min(excess, MOST_RAISING)
        if iteration <= self.hold and excess < ENOUGH:
            return max(rho * LOWERING, self.least)
        return rho


def _recent(residuals: Sequence[float]) -> float:
    """Geometric mean of the last ones."""
    return math.exp(sum(math.log(max(residual, TINY)) for residual in residuals[-STEP:]) / STEP)


def annealings(
    rho: float, ratio: float, *, n_init: int | None, trial: bool, scarce: bool, max_iter: int
) -> tuple[Annealing, ...]:
    """Plan the annealing of every run.

    Parameters
    ----------
    rho : float
        The constant ρ.
    ratio : float
        n_components / n_features.
    n_init : int or None
        Number of runs; None: what pays.
    trial : bool
        Whether the first of several may be short, because it can tell whether it has succeeded.
    scarce : bool
        Whether samples are few, so that more runs pay.
    max_iter : int
        Of every run, which must have fallen before; short ones are annealed faster.
    """
    return tuple(_annealing(schedule, rho, max_iter) for schedule in _schedules(ratio, n_init, trial, scarce))


def _schedules(ratio: float, n_init: int | None, trial: bool, scarce: bool) -> list[Schedule]:
    if not 1 <= ratio <= MOST_RESTARTED:
        return [BRIEF if ratio < 1 else GENTLE] * (n_init or 1)
    if n_init == 1:
        return [WARM]
    several = [TRIAL] * trial + ([WILD, WARM] * 3 if scarce else [WARM, WILD, WARM])
    return several if n_init is None else (several + [WARM] * n_init)[:n_init]


def _annealing(schedule: Schedule, rho: float, max_iter: int) -> Annealing:
    """Scale a schedule to the constant ρ, and to runs that are shorter than it."""
    first, warmth, hold, fall = schedule
    pace = min(1.0, MOST_ANNEALED * max_iter / (hold + fall))
    return Annealing(first * rho, LEAST * rho, warmth, int(pace * hold), max(int(pace * fall), 1))


def auto_rho(norm: float, ratio: float, epsilon: float) -> float:
    """Constant ρ for the exact forms.

    The smallest ρ at which the iteration settles grows with n_components / n_features and falls with the size of
    the codes, for which the norm of the part of the data that must be explained stands.

    Parameters
    ----------
    norm : float
        Root-mean-square norm of the samples.
    ratio : float
        n_components / n_features.
    epsilon : float
        Relative error that the codes may leave.

    Examples
    --------
    >>> round(auto_rho(3**0.5, 2.0, 0.0), 9)
    10.0
    """
    explained = norm * math.sqrt(max(1 - epsilon**2, 0.01))
    return RHO_PER_RATIO * max(ratio, 1.0) * PAPER_NORM / explained


def auto_betas(norm: float) -> Triple:
    """Return the paper's three β, for data of this root-mean-square norm."""
    first, second, third = (beta * PAPER_NORM / norm for beta in PAPER_BETAS)
    return first, second, third


def auto_rhos(betas: Triple, norm: float) -> Triple:
    """Return the paper's ρ_i = β_i + 10, for data of this root-mean-square norm."""
    first, second, third = (beta + PAPER_MARGIN * PAPER_NORM / norm for beta in betas)
    return first, second, third


def auto_alpha(norm: float) -> float:
    """Lasso weight for data of this root-mean-square norm."""
    return ALPHA * norm
