"""ρ, β and α where the user leaves them to us.

All follow the scale of the data, so that learning from a·X gives the same atoms and a times the codes.
"""

import math
from dataclasses import dataclass

from roadict.road.formulation import Triple

PAPER_NORM = math.sqrt(3)
"""Root-mean-square norm of the samples in the paper's experiments, for which its ρ = 10 and β = 200…300 are."""
PAPER_BETAS = (200.0, 300.0, 250.0)
PAPER_MARGIN = 10.0
"""ρ_i - β_i in the paper's iADMM."""
RHO_PER_RATIO = 5.0
"""ρ at PAPER_NORM per unit of n_components / n_features: about twice the value below which runs never settle."""
ALPHA = 0.1
"""Lasso weight, relative to the root-mean-square norm of the samples."""


FIRST, LAST = 0.25, 2.5
"""Where an annealed run starts and ends, in units of the constant ρ."""
ANNEALING = 300
"""Iterations of annealing."""
MOST_ANNEALED = 3.0
"""n_components over observed features up to which annealing was seen to help; beyond it froze runs too early."""
STEP = 10
"""Iterations between two changes of ρ."""


@dataclass(frozen=True)
class Schedule:
    """ρ along a run: from ``first`` to ``last`` in equal ratios over ``length`` iterations, then constant.

    Below its critical value the iteration wanders; raising ρ slowly through that value acts like annealing.

    Examples
    --------
    >>> schedule = Schedule(2.0, 32.0, 20)
    >>> [schedule(iteration) for iteration in (0, 9, 10, 20, 500)]
    [2.0, 2.0, 8.0, 32.0, 32.0]
    """

    first: float
    last: float
    length: int

    def __call__(self, iteration: int) -> float:
        """Return ρ after this many iterations."""
        done = min(iteration // STEP * STEP, self.length) / self.length
        return float(self.first * (self.last / self.first) ** done)


def auto_schedule(norm: float, ratio: float, observed: float, epsilon: float) -> Schedule | None:
    """Annealing for the exact forms, where it helps; ``observed`` is a share, the rest as for ``auto_rho``."""
    if not 1.0 < ratio <= MOST_ANNEALED * observed:
        return None
    rho = auto_rho(norm, ratio, epsilon)
    return Schedule(FIRST * rho, LAST * rho, ANNEALING)


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
