"""The reference engine: the paper's iteration, block by block. It specifies all other engines."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadict.formulation import POWER_STEPS, Problem, RankOne, Sparse
from roadict.prox import group_norm, nearest_rank_one, project_ball, ridge, shrink_groups
from roadict.ranks.collectives import joint_triangular_factor, norm, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.measures import Measures
from roadict.runs.state import RunState

Array = NDArray[np.floating]


def _nearest_atoms(comm: Comm, blocks: Array, atoms: Array) -> Array:
    """Atoms of the nearest rank-one matrices, of all ranks."""
    return nearest_rank_one(joint_triangular_factor(comm, blocks))[1]


def _power_steps(
    comm: Comm, blocks: Array, atoms: Array, *, positive_code: bool = False, positive_dict: bool = False, count: int = 1
) -> Array:
    """Atoms after power steps within the signs; where all codes or all of an atom's entries vanish it stays."""
    for _ in range(count):
        images = comm.sum(np.einsum("kn,knm->km", _codes(blocks, atoms, positive_code), blocks))
        if positive_dict:
            images = np.maximum(images, 0)
        sizes = np.linalg.norm(images, axis=1, keepdims=True)
        atoms = np.divide(images, sizes, out=atoms.copy(), where=sizes > 0)
    return atoms


def _codes(blocks: Array, atoms: Array, positive: bool) -> Array:
    """Codes v_k of the blocks for these atoms, shape (n_components, n_samples)."""
    codes: Array = (blocks @ atoms[:, :, None])[:, :, 0]
    return np.maximum(codes, 0) if positive else codes


def _differences(new: list[Array], old: list[Array]) -> list[Array]:
    return [after - before for after, before in zip(new, old, strict=True)]


SPARSE = {Sparse.GROUP_NORM: (shrink_groups, group_norm)}
"""Prox and value of each term of A."""
RANK_ONE: dict[RankOne, Callable[[Comm, Array, Array], Array]] = {
    RankOne.NEAREST: _nearest_atoms,
    RankOne.POSITIVE_CODES: partial(_power_steps, positive_code=True),
    RankOne.POSITIVE_ATOMS: partial(_power_steps, positive_dict=True, count=POWER_STEPS),
    RankOne.POSITIVE: partial(_power_steps, positive_code=True, positive_dict=True),
}
"""Atoms of each term of B, from the blocks and the last atoms."""


class ReferenceEngine:
    """Scaled ADMM with every block in memory (eqs. ADMM-X1-update to ADMM-Lambda3-Update).

    Blocks have shape (n_components, n_samples, n_features): block k is the transpose of the paper's M×N matrix.
    ``sparse``, ``rank_one`` and ``consensus`` are the paper's X1, X2, X3, ``slacks`` its Z1, Z2, Z3 and
    ``multipliers`` its Λ1, Λ2, Λ3 of the inexact form.
    """

    def __init__(self, problem: Problem, dictionary: Array, codes: Array, comm: Comm = SERIAL) -> None:
        self._comm = comm
        self.problem = problem
        self.rhos = problem.rhos
        self._factors = problem.threshold_factors
        self._shrink, self._penalty = SPARSE[problem.formulation.sparse]
        self._next_atoms = RANK_ONE[problem.formulation.rank_one]
        self._positive = problem.formulation.rank_one.positive_code
        self.consensus: Array = codes.T[:, :, None] * dictionary[:, None, :]
        self.sparse: Array = self.consensus
        self.rank_one: Array = self.consensus
        self.atoms = dictionary
        self.slacks: list[Array] = [
            np.zeros_like(self.consensus),
            np.zeros_like(self.consensus),
            np.zeros_like(problem.data),
        ]
        self.multipliers: list[Array] = [np.zeros_like(slack) for slack in self.slacks]
        if problem.observed is not None:  # the start fits unobserved entries exactly
            misfit = problem.data - self.consensus.sum(axis=0)
            self.slacks[2] = np.where(problem.observed, 0, misfit).astype(misfit.dtype)

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration, in the paper's order; ``following`` is the next one's ρ, if it differs."""
        Y, (rho1, rho2, rho3) = self.problem.data, self.rhos
        (S1, S2, S3), (U1, U2, U3), before = self.slacks, self.multipliers, self.consensus
        K = len(before)

        A = self._shrink(before + S1 - U1, self._factors / rho1)
        B_hat, fixed = before + S2 - U2, self.problem.n_fixed
        self.atoms = np.vstack([self.atoms[:fixed], self._next_atoms(self._comm, B_hat, self.atoms)[fixed:]])
        B = _codes(B_hat, self.atoms, self._positive)[:, :, None] * self.atoms[:, None, :]
        T: Array = rho1 * (A - S1 + U1) + rho2 * (B - S2 + U2) + rho3 * (Y - S3 + U3)
        C = (T - rho3 / (rho1 + rho2 + K * rho3) * T.sum(axis=0)) / (rho1 + rho2)

        beta1, beta2, _ = self.problem.formulation.betas
        misfits = [A - C + U1, B - C + U2, Y - C.sum(axis=0) + U3]
        slacks = [
            ridge(misfits[0], beta1 / rho1),
            ridge(misfits[1], beta2 / rho2),
            self._data_slack(misfits[2], rho3),
        ]
        multipliers = [misfit - slack for misfit, slack in zip(misfits, slacks, strict=True)]
        residuals = _differences(multipliers, self.multipliers)
        exact = self.problem.formulation.exact_consensus
        moves = [C - before] if exact else _differences(slacks, self.slacks)
        self.sparse, self.rank_one, self.consensus = A, B, C
        self.slacks, self.multipliers = slacks, multipliers
        measures = self._measure(residuals, moves)
        if following is not None:  # ρU is unchanged: the multipliers are stored divided by ρ
            self.multipliers = [multiplier * (rho1 / following) for multiplier in self.multipliers]
            self.rhos = (following, following, following)
        return measures

    def _data_slack(self, misfit: Array, rho: float) -> Array:
        """S3 ← prox of g3/ρ3: a ball or a ridge over the observed entries, free elsewhere."""
        observed, formulation = self.problem.observed, self.problem.formulation
        seen = misfit if observed is None else np.where(observed, misfit, 0)
        if formulation.radius is not None:
            slack = project_ball(seen, formulation.radius, norm(self._comm, seen))
        else:
            slack = ridge(seen, formulation.betas[2] / rho)
        return slack if observed is None else np.where(observed, slack, misfit).astype(misfit.dtype)

    def _measure(self, residuals: list[Array], moves: list[Array]) -> Measures:
        """Measure the iteration; the dual residual is the norm of ``moves``, the changes of C or of the slacks."""
        slack, error = self.slacks[2], self.problem.data - self.codes() @ self.atoms
        if self.problem.observed is not None:
            slack, error = slack * self.problem.observed, error * self.problem.observed
        comm, form, size = self._comm, self.problem.formulation, norm(self._comm, slack)
        return Measures.relative(
            objective=total(comm, self._penalty(self.sparse, self._factors)) + form.misfit_cost(size),
            primal=float(np.linalg.norm([norm(comm, residual) for residual in residuals])),
            dual=float(np.linalg.norm([norm(comm, move) for move in moves])),
            error=norm(comm, error),
            consensus=norm(comm, self.consensus),
            data=norm(comm, self.problem.data),
            slack=None if form.exact_consensus else size,
        )

    def lagrangian(self) -> float:
        """Evaluate the augmented Lagrangian (eq. Augmented-Lagrangian-DifRho); the inexact form's falls."""
        C, betas = self.consensus, self.problem.formulation.betas
        gaps = [self.sparse - C, self.rank_one - C, self.problem.data - C.sum(axis=0)]
        value = self._penalty(self.sparse, self._factors)
        for beta, rho, gap, slack, multiplier in zip(
            betas, self.rhos, gaps, self.slacks, self.multipliers, strict=True
        ):
            value += beta / 2 * float(np.vdot(slack, slack))
            shifted = gap - slack + multiplier
            value += rho / 2 * (float(np.vdot(shifted, shifted)) - float(np.vdot(multiplier, multiplier)))
        return value

    def dictionary(self) -> Array:
        """Atoms of the rank-one blocks, shape (n_components, n_features)."""
        return self.atoms

    def codes(self) -> Array:
        """Codes u_k·A_k of the sparse blocks, shape (n_samples, n_components)."""
        codes: Array = np.einsum("knm,km->nk", self.sparse, self.atoms)
        return np.maximum(codes, 0) if self._positive else codes

    def state(self) -> RunState:
        """Return views of all blocks, samples first."""
        blocks = {"sparse": self.sparse, "rank_one": self.rank_one, "consensus": self.consensus}
        for i in (0, 1):
            blocks |= {f"slack{i}": self.slacks[i], f"multiplier{i}": self.multipliers[i]}
        local = {name: block.swapaxes(0, 1) for name, block in blocks.items()}
        local |= {"slack2": self.slacks[2], "multiplier2": self.multipliers[2]}
        return RunState(local, {"atoms": self.atoms, "numbers": np.array(self.rhos)})

    def restore(self, state: RunState, start: int = 0) -> None:
        """Copy the arrays of ``state``, whose samples begin at ``start``."""
        self.sparse, self.rank_one, self.consensus = self.sparse.copy(), self.rank_one.copy(), self.consensus.copy()
        for name, array in self.state().local.items():
            array[start : start + len(state.local[name])] = state.local[name]
        self.atoms = np.array(state.shared["atoms"])
        first, second, third = (float(number) for number in state.shared["numbers"])
        self.rhos = (first, second, third)

    def close(self) -> None:
        """Nothing to release."""
