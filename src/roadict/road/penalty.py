"""ρ, β and α where the user leaves them to us.

All follow the scale of the data, so that learning from a·X gives the same atoms and a times the codes.
"""

import math

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
