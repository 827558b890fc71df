"""Automatic ρ, β and α.

All follow the scale of the data: learning from a·X gives the same atoms and a times the codes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roadict.formulation import Triple

PAPER_NORM = math.sqrt(3)
"""Root-mean-square norm of the samples in the paper's experiments, to which its ρ = 10 and β = 200…300 refer."""
PAPER_BETAS = (200.0, 300.0, 250.0)
PAPER_MARGIN = 10.0
"""ρ_i - β_i in the paper's iADMM."""
RHO_PER_RATIO = 5.0
"""ρ at PAPER_NORM per unit of n_components / n_features: about twice the value below which runs never converge."""
ALPHA = 0.1
"""Lasso weight, relative to the root-mean-square norm of the samples."""

MIN_RHO = 0.1
"""Minimum of an annealed ρ, relative to the constant one."""
FINAL_RESIDUAL = 1e-4
"""Relative primal residual that an annealed run ends with."""
MAX_RESTART_RATIO = 3.0
"""Maximum n_components / n_features for warm runs and restarts; the minimum is 1."""
LOWERING_THRESHOLD = 0.9
"""Share of the target residual below which ρ is lowered."""
TINY = 1e-300
UPDATE_EVERY = 10
"""Iterations between two changes of ρ."""
MAX_ANNEALED = 0.9
"""Maximum share of a run's iterations spent annealing."""
LOWERING_FACTOR, MAX_RAISING_FACTOR = 0.93, 1.1
"""Factor by which a change lowers ρ, and maximum factor by which it raises ρ."""


class Schedule(NamedTuple):
    """Initial ρ relative to the constant one; residual to hold, for how many iterations; iterations of its fall."""

    first: float
    warmth: float
    hold: int
    fall: int


TRIAL = Schedule(3.0, 0.05, 150, 550)
"""A short run, for problems where success can be verified."""
SIGNED_TRIAL = Schedule(3.0, 0.1, 350, 420)
"""The same with nonnegative codes or atoms. Of 20 exact problems of 200 samples it solved 20 with atoms of any sign and
19 with nonnegative ones; ``TRIAL`` 10 and 5 of 12."""
BRIEF = Schedule(3.0, 0.05, 400, 800)
"""For fewer atoms than features, where the error bound is near the floor: leaves time for slow convergence."""
GENTLE = Schedule(3.0, 0.025, 700, 800)
"""For more than three atoms per feature: warmer runs lose atoms that they have found."""
WARM = Schedule(3.0, 0.1, 1000, 800)
"""For one to three atoms per feature: colder runs freeze too early."""
WILD = Schedule(0.25, 0.5, 0, 1000)
"""Forgets its start completely, and so differs most from the other runs."""

BEFORE_DESCENT = Schedule(0.25, 0.5, 0, 500)
"""The same, shorter: a descent follows, and settles the atoms faster."""
SIGNED_BEFORE_DESCENT = Schedule(3.0, 0.2, 350, 420)
"""With nonnegative codes or atoms. At 20 dB a descent after it missed 0.5 atoms of any sign and 0.7 nonnegative ones,
after ``BEFORE_DESCENT`` 1.1 and 1.75, after ``SIGNED_TRIAL`` 0.6 and 0.8."""


@dataclass(frozen=True)
class Annealing:
    """ρ along a run, controlled so that the primal residual stays at ``warmth`` and then falls at a constant rate.

    The residual measures how much a run still moves, as a temperature does. A ρ far above the problem's critical
    value freezes the run at its start, a ρ below it prevents convergence, and that value is not known in advance. So ρ
    starts high and is lowered until the residual reaches its target: atoms can still rearrange, but do not get lost.
    Later ρ only rises, whenever the residual falls too slowly, so that every run converges.

    Attributes
    ----------
    first, least : float
        Initial and minimum ρ.
    warmth : float
        Relative primal residual to hold.
    hold, fall : int
        Iterations for which it is held, and of its fall to FINAL_RESIDUAL.
    """

    first: float
    least: float
    warmth: float
    hold: int
    fall: int

    def target(self, iteration: int) -> float:
        """Return the target of the primal residual in this iteration."""
        done = min(max(iteration - self.hold, 0) / self.fall, 1.0)
        return float(self.warmth * (FINAL_RESIDUAL / self.warmth) ** done)

    def __call__(self, iteration: int, rho: float, primal: Sequence[float], dual: Sequence[float]) -> float:
        """Return the next ρ, given the residuals of all iterations before this one.

        After the fall the dual residual counts too: it is the larger one in slowly converging runs.

        Examples
        --------
        >>> annealing = Annealing(30.0, 1.0, 0.05, hold=500, fall=500)
        >>> [annealing(n, 10.0, [residual] * 30, [0.0] * 30) for n, residual in ((45, 1.0), (50, 1.0), (50, 0.04))]
        [10.0, 11.0, 9.3]
        """
        if iteration % UPDATE_EVERY or len(primal) < 2 * UPDATE_EVERY:
            return rho
        size = _recent(primal)
        if iteration > self.hold + self.fall:
            size = max(size, _recent(dual))
        excess = size / self.target(iteration)
        if excess > 1:
            return rho * min(excess, MAX_RAISING_FACTOR)
        if iteration <= self.hold and excess < LOWERING_THRESHOLD:
            return max(rho * LOWERING_FACTOR, self.least)
        return rho


def _recent(residuals: Sequence[float]) -> float:
    """Geometric mean of the last UPDATE_EVERY residuals."""
    return math.exp(sum(math.log(max(residual, TINY)) for residual in residuals[-UPDATE_EVERY:]) / UPDATE_EVERY)


def annealings(
    rho: float,
    ratio: float,
    *,
    n_init: int | None,
    trial: bool,
    scarce: bool,
    descends: bool,
    max_iter: int,
    signed: bool = False,
) -> tuple[Annealing, ...]:
    """Plan the annealing of every run.

    Parameters
    ----------
    rho : float
        The constant ρ.
    ratio : float
        n_components / n_features.
    n_init : int or None
        Number of runs; None: automatic.
    trial : bool
        Whether the first of several may be short, because its success can be verified.
    scarce : bool
        Whether samples are scarce, so that more runs pay off.
    descends : bool
        Whether a descent follows, so that atoms need only be found, not settled.
    max_iter : int
        Of every run; the annealing is sped up to end before it.
    signed : bool
        Whether codes or atoms are nonnegative.
    """
    trials = [SIGNED_TRIAL if signed else TRIAL] * trial
    brief = SIGNED_BEFORE_DESCENT if signed else BEFORE_DESCENT
    schedules = (
        [brief] * (n_init or (7 if scarce or signed else 4)) if descends else _schedules(ratio, n_init, trials, scarce)
    )
    return tuple(_annealing(schedule, rho, max_iter) for schedule in schedules)


def _schedules(ratio: float, n_init: int | None, trials: list[Schedule], scarce: bool) -> list[Schedule]:
    if not 1 <= ratio <= MAX_RESTART_RATIO:
        return [BRIEF if ratio < 1 else GENTLE] * (n_init or 1)
    if n_init == 1:
        return [WARM]
    several = trials + ([WILD, WARM] * 3 if scarce else [WARM, WILD, WARM])
    return several if n_init is None else (several + [WARM] * n_init)[:n_init]


def _annealing(schedule: Schedule, rho: float, max_iter: int) -> Annealing:
    """Scale a schedule to the constant ρ, and shorten it to fit into max_iter."""
    first, warmth, hold, fall = schedule
    pace = min(1.0, MAX_ANNEALED * max_iter / (hold + fall))
    return Annealing(first * rho, MIN_RHO * rho, warmth, int(pace * hold), max(int(pace * fall), 1))


def auto_rho(norm: float, ratio: float, epsilon: float) -> float:
    """Constant ρ for the exact forms.

    The smallest ρ at which the iteration converges grows with n_components / n_features and falls with the size of the
    codes, estimated by the norm of the explained part of the data.

    Parameters
    ----------
    norm : float
        Root-mean-square norm of the samples.
    ratio : float
        n_components / n_features.
    epsilon : float
        Bound on the relative error.

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
