"""One iteration of the reference engine against a generic ADMM on the paper's standard form, A x + B z = c.

The matrices are built as the paper prints them (before eq. ADMM-inexact-StandardForm; erratum 9 mended), for
a small problem, with the blocks of x updated one after the other. Nothing of the closed forms of the package is used:
proximal gradient steps for X1 and X2, least squares for X3, a linear system for z.
"""

import numpy as np
import pytest

from roadict.engines.reference import ReferenceEngine
from roadict.formulation import Problem, inexact
from roadict.linalg import unit_rows

M, N, K = 3, 5, 4
SIZE = M * N
BETAS = (2.0, 3.0, 2.5)


def columns(matrix):
    """The paper's vec: the columns of an M×N matrix, one below the other."""
    return matrix.reshape(-1, order="F")


def matrices(x):
    """The K matrices that a block of x stacks."""
    return [part.reshape(M, N, order="F") for part in x.reshape(-1, SIZE)]


def shrink_columns(x, threshold):
    shrunk = []
    for matrix in matrices(x):
        lengths = np.sqrt((matrix**2).sum(axis=0))
        shrunk.append(columns(matrix * np.maximum(0, 1 - threshold / np.maximum(lengths, 1e-300))))
    return np.concatenate(shrunk)


def project_to_rank_one(x, threshold):
    projected = []
    for matrix in matrices(x):
        left, sizes, right = np.linalg.svd(matrix)
        projected.append(columns(sizes[0] * np.outer(left[:, 0], right[0])))
    return np.concatenate(projected)


def proximal_gradient(prox, start, G, b):
    """Minimise f(x) + ½‖Gx - b‖² by proximal gradient steps; ``prox(x, t)`` is that of t·f."""
    step = 1 / np.linalg.norm(G, 2) ** 2
    x = start
    for _ in range(20):
        x = prox(x - step * G.T @ (G @ x - b), step)
    return x


class GenericADMM:
    """Scaled ADMM for f1(x1) + f2(x2) + g(z), subject to A x + B z = c, with a penalty per row of the constraint."""

    def __init__(self, data, start, rhos):
        many, one, zero = np.eye(K * SIZE), np.eye(SIZE), np.zeros
        none = zero((K * SIZE, K * SIZE))
        self.A = np.block([
            [many, none, -many],
            [none, many, -many],
            [zero((SIZE, K * SIZE)), zero((SIZE, K * SIZE)), np.kron(np.ones((1, K)), one)],
        ])  # fmt: skip
        self.B = np.block([
            [-many, none, zero((K * SIZE, SIZE))],
            [none, -many, zero((K * SIZE, SIZE))],
            [zero((SIZE, K * SIZE)), zero((SIZE, K * SIZE)), one],
        ])  # fmt: skip
        self.c = np.concatenate([zero(2 * K * SIZE), columns(data)])
        sizes = (K * SIZE, K * SIZE, SIZE)
        self.weights = np.repeat(BETAS, sizes)
        self.penalties = np.repeat(rhos, sizes)
        self.blocks = [slice(i * K * SIZE, (i + 1) * K * SIZE) for i in range(3)]
        self.x, self.z, self.multiplier = np.tile(start, 3), zero(len(self.c)), zero(len(self.c))

    def step(self):
        roots = np.sqrt(self.penalties)
        for block, prox in zip(self.blocks, (shrink_columns, project_to_rank_one, None), strict=True):
            others = np.delete(np.arange(len(self.x)), block)
            rest = self.c - self.multiplier - self.A[:, others] @ self.x[others] - self.B @ self.z
            G, b = roots[:, None] * self.A[:, block], roots * rest
            if prox is None:
                self.x[block] = np.linalg.lstsq(G, b)[0]
            else:
                self.x[block] = proximal_gradient(prox, self.x[block], G, b)
        gap, before = self.c - self.multiplier - self.A @ self.x, self.z
        weighted = self.B.T * self.penalties
        self.z = np.linalg.solve(np.diag(self.weights) + weighted @ self.B, weighted @ gap)
        residual = self.A @ self.x + self.B @ self.z - self.c
        self.multiplier = self.multiplier + residual
        consensus, data_slack = self.x[self.blocks[2]], self.z[2 * K * SIZE :]
        primal = np.linalg.norm(residual) / np.linalg.norm(consensus)
        dual = np.linalg.norm(self.B @ (self.z - before)) / np.linalg.norm(data_slack)
        return primal, dual


def stacked(blocks):
    """The reference engine's blocks (atom, sample, feature) in the order of the paper's x and z."""
    return np.concatenate([columns(block.T) for block in blocks])


@pytest.mark.parametrize("rhos", [(5.0, 5.0, 5.0), (3.0, 6.0, 4.0)], ids=["one rho", "three"])
def test_the_reference_is_admm_on_the_standard_form(rhos):
    rng = np.random.default_rng(3)
    dictionary, codes = unit_rows(rng.standard_normal((K, M)))[0], rng.standard_normal((N, K))
    data = rng.standard_normal((N, M))
    engine = ReferenceEngine(Problem(data, None, inexact(BETAS), rhos), dictionary, codes)
    generic = GenericADMM(data.T, stacked(engine.consensus), rhos)
    for _ in range(4):
        measures = engine.step()
        primal, dual = generic.step()
        x = np.concatenate([stacked(blocks) for blocks in (engine.sparse, engine.rank_one, engine.consensus)])
        assert x == pytest.approx(generic.x, abs=1e-10)
        (s1, s2, s3), (u1, u2, u3) = engine.slacks, engine.multipliers
        assert np.concatenate([stacked(s1), stacked(s2), columns(s3.T)]) == pytest.approx(generic.z, abs=1e-10)
        # The third constraint of the standard form has the opposite sides, and its multiplier the opposite sign.
        signed = np.concatenate([stacked(u1), stacked(u2), -columns(u3.T)])
        assert signed == pytest.approx(generic.multiplier, abs=1e-10)
        assert measures.primal == pytest.approx(primal, rel=1e-9)
        assert measures.dual == pytest.approx(dual, rel=1e-9)
