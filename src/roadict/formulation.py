"""The optimisation problems of ROAD: every variant of the paper as data.

With blocks A_k (sparse), B_k (rank one), C_k (consensus) and slacks S1, S2, S3::

    min  Σ_k ‖A_k‖_{2,1} + Σ_k 1[rank B_k ≤ 1] + g1(S1) + g2(S2) + g3(S3)
    s.t. A_k = C_k + S1_k,   B_k = C_k + S2_k,   Y = Σ_k C_k + S3

With weights w_n of the samples n, every sample's term and square counts w_n times. Column n of Y and of all blocks is
then multiplied by √w_n: Frobenius norms become the weighted ones, rank one stays rank one, and only
``‖A_k‖_{2,1}`` changes, to ``Σ_n √w_n ‖column n of A_k‖``.

g1 and g2 are ridges ``(β/2)‖S‖²`` (an infinite β: the slack is zero). g3, the data term, is a ridge or the ball
``‖S3‖_F ≤ ε``, and vanishes at unobserved entries of Y. The terms of A and B have names, for which each engine has a
table of steps.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import Constraints

Triple = tuple[float, float, float]

POWER_STEPS = 10
"""Power steps per iteration where atoms are nonnegative and codes are not: with Gram matrices they cost little."""
THEOREM_MARGIN = 2.0
"""Theorem 1 requires ρ_i > β_i + 2; ρ_i > β_i suffices (docs/paper-to-code.md)."""


class Sparse(StrEnum):
    """Terms of the sparse blocks A."""

    GROUP_NORM = "group_norm"
    """Σ_k ‖A_k‖_{2,1}; its step is ``prox.shrink_groups``."""


class RankOne(StrEnum):
    """Terms of the rank-one blocks B_k = v_k u_kᵀ, v_k the codes and u_k the atom.

    With signs there is no closed form of the nearest such matrix. Each iteration takes power steps from the last atom:
    one where codes are nonnegative, ``POWER_STEPS`` where only atoms are. Every step brings v uᵀ nearer to B̂ or leaves
    it; the point that they reach is a local minimum of the distance.
    """

    NEAREST = "nearest"
    """rank B_k ≤ 1; its step is ``prox.nearest_rank_one``, in the fast engines by Gram matrices."""
    POSITIVE_CODES = "positive_codes"
    """v_k ≥ 0; its step is u = B̂ᵀ max(B̂u, 0) / ‖·‖, then v = max(B̂u, 0)."""
    POSITIVE_ATOMS = "positive_atoms"
    """u_k ≥ 0; its step is u = max(B̂ᵀB̂u, 0) / ‖·‖, then v = B̂u."""
    POSITIVE = "positive"
    """u_k, v_k ≥ 0; its step is u = max(B̂ᵀ max(B̂u, 0), 0) / ‖·‖, then v = max(B̂u, 0)."""

    @classmethod
    def of_signs(cls, positive_code: bool, positive_dict: bool) -> "RankOne":
        """Return the term for these constraints."""
        if positive_code:
            return cls.POSITIVE if positive_dict else cls.POSITIVE_CODES
        return cls.POSITIVE_ATOMS if positive_dict else cls.NEAREST

    @property
    def positive_code(self) -> bool:
        """Whether codes are nonnegative."""
        return self in (RankOne.POSITIVE_CODES, RankOne.POSITIVE)

    @property
    def positive_dict(self) -> bool:
        """Whether atoms are nonnegative."""
        return self in (RankOne.POSITIVE_ATOMS, RankOne.POSITIVE)


@dataclass(frozen=True)
class Formulation:
    """The terms of the slacks, the third of which is the data term, and of the blocks.

    Parameters
    ----------
    betas : (float, float, float)
        Ridge weights of S1, S2, S3; infinite: the slack is zero.
    radius : float or None
        Bound on ‖S3‖_F, which then replaces the third ridge.
    sparse : Sparse
    rank_one : RankOne
    """

    betas: Triple
    radius: float | None = None
    sparse: Sparse = Sparse.GROUP_NORM
    rank_one: RankOne = RankOne.NEAREST

    @property
    def kind(self) -> tuple[Sparse, RankOne, bool, bool]:
        """What determines an engine's arithmetic: problems of the same kind may share a GPU batch."""
        return self.sparse, self.rank_one, self.exact_consensus, self.radius is None

    @property
    def exact_consensus(self) -> bool:
        """Whether S1 = S2 = 0: every variant but the inexact one."""
        return math.isinf(self.betas[0]) and math.isinf(self.betas[1])

    def slack_share(self, index: int, rho: float) -> float:
        """Share of ``residual + U_i`` that the ridge step assigns to slack i (0, 1 or 2)."""
        return rho / (self.betas[index] + rho)

    def misfit_share(self, misfit: float, rho: float) -> float:
        """Share of the data misfit that S3 absorbs, given the Frobenius norm of ``Y - ΣC + U3``."""
        if self.radius is None:
            return self.slack_share(2, rho)
        return 1.0 if misfit <= self.radius else self.radius / misfit

    def misfit_cost(self, slack_norm: float) -> float:
        """Squared-misfit term of the Lasso objective, given the Frobenius norm of S3; 0 for the other forms."""
        weighed = self.exact_consensus and self.radius is None
        return self.betas[2] / 2 * slack_norm**2 if weighed else 0.0


def constrained(radius: float) -> Formulation:
    """eADMM: ``‖Y - ΣC‖_F ≤ radius``; 0 is the noise-free form (eqs. ADMM-exact-EasyForm, ADMM-noisy-form)."""
    return Formulation((math.inf, math.inf, math.inf), radius)


def lasso(beta: float) -> Formulation:
    """Lasso form: ``(β/2)‖Y - ΣC‖²`` (eq. ROAD-Lasso-formulation)."""
    return Formulation((math.inf, math.inf, beta))


def inexact(betas: Triple) -> Formulation:
    """iADMM: a ridge on every slack (eq. ADMM-inexact-EasyForm)."""
    return Formulation(betas)


@dataclass(frozen=True)
class Problem:
    """A problem for an engine.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        Finite, zero at unobserved entries; samples of weight w are multiplied by √w.
    observed : bool array of shape (n_samples, n_features), or None
        None: all entries are observed.
    formulation : Formulation
    rhos : (float, float, float)
        Penalties ρ1, ρ2, ρ3 of the augmented Lagrangian; all equal unless the formulation is inexact.
    roots : array of shape (n_samples, 1), or None
        Square roots √w of the weights, above zero: factors of the samples' thresholds. None: all weights are 1.
    n_fixed : int
        Number of first atoms that stay as they are at the start.
    """

    data: NDArray[np.floating]
    observed: NDArray[np.bool_] | None
    formulation: Formulation
    rhos: Triple
    roots: NDArray[np.floating] | None = None
    n_fixed: int = 0

    def __post_init__(self) -> None:
        """Reject what the fused recurrence cannot do."""
        if self.formulation.exact_consensus and len(set(self.rhos)) > 1:
            raise ValueError(f"rhos={self.rhos} must be equal unless the formulation is inexact")

    @property
    def constraints(self) -> Constraints:
        """Constraints on codes and atoms."""
        signs = self.formulation.rank_one
        return Constraints(signs.positive_code, signs.positive_dict, self.n_fixed)

    @property
    def threshold_factors(self) -> NDArray[np.floating]:
        """``roots``, or ones: shape (n_samples, 1), of the dtype of the data."""
        ones = np.ones((len(self.data), 1), self.data.dtype)
        return ones if self.roots is None else (ones * self.roots).astype(self.data.dtype)


def check_penalties(betas: Triple, rhos: Triple) -> str | None:
    """Check the convergence condition of the inexact form (thm. convergence-ROAD).

    Returns
    -------
    str or None
        A warning if β_i < ρ_i ≤ β_i + 2: sufficient, but outside the paper's bound.

    Raises
    ------
    ValueError
        If ρ_i ≤ β_i.

    Examples
    --------
    >>> check_penalties((200.0, 300.0, 250.0), (210.0, 310.0, 260.0))
    >>> check_penalties((200.0, 300.0, 250.0), (201.0, 310.0, 260.0))
    'rho1=201 exceeds beta1=200, which suffices, but not beta1 + 2, as the proof of convergence requires'
    """
    for i, (beta, rho) in enumerate(zip(betas, rhos, strict=True), start=1):
        if not rho > beta:
            raise ValueError(
                f"rho{i}={rho:g} must exceed beta{i}={beta:g} for the inexact form to converge; "
                'pass rho="auto" or a larger number'
            )
    for i, (beta, rho) in enumerate(zip(betas, rhos, strict=True), start=1):
        if rho <= beta + THEOREM_MARGIN:
            return (
                f"rho{i}={rho:g} exceeds beta{i}={beta:g}, which suffices, "
                f"but not beta{i} + {THEOREM_MARGIN:g}, as the proof of convergence requires"
            )
    return None
