"""Why the rank-one constraint is not relaxed to a nuclear norm: prop. convex-not-work, by an independent solver."""

import numpy as np
import pytest

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

M, N, K, MU = 8, 120, 12, 1.0


def norms(blocks):
    """Σ_k ‖Z_k‖_{2,1} + μ‖Z_k‖_*, the convex relaxation of ROAD's objective; samples are columns."""
    lengths = np.sqrt((blocks**2).sum(axis=1)).sum()
    return lengths + MU * np.linalg.svd(blocks, compute_uv=False).sum()


def solve_relaxation(data, start, rho=0.3, rounds=3000):
    """Minimise ``norms`` subject to Σ_k Z_k = Y by ADMM: convex, so that any start ends at the minimum."""
    blocks = start
    first = second = np.zeros_like(blocks)
    for _ in range(rounds):
        shifted = blocks - first
        lengths = np.sqrt((shifted**2).sum(axis=1, keepdims=True))
        sparse = shifted * np.maximum(0, 1 - 1 / rho / np.maximum(lengths, 1e-300))
        left, sizes, right = np.linalg.svd(blocks - second, full_matrices=False)
        low_rank = (left * np.maximum(0, sizes - MU / rho)[:, None, :]) @ right
        blocks = (sparse + first + low_rank + second) / 2
        blocks = blocks + (data - blocks.sum(axis=0)) / len(blocks)
        first, second = first + sparse - blocks, second + low_rank - blocks
    return blocks


@pytest.fixture(scope="module")
def truth():
    return planted(N, M, K, sparsity=2, random_state=90_000)


@pytest.fixture(scope="module")
def relaxed(truth):
    start = np.random.default_rng(1).standard_normal((K, M, N))
    return solve_relaxation(truth.data.T, start)


def test_the_trivial_solution_is_a_minimum_of_the_relaxation(truth, relaxed):
    """The solver reaches the value of Z_k = Y / K, and nothing below it."""
    data = truth.data.T
    trivial = norms(np.repeat(data[None] / K, K, axis=0))
    assert trivial == pytest.approx(norms(data[None]))
    assert np.abs(relaxed.sum(axis=0) - data).max() < 1e-9
    assert norms(relaxed) == pytest.approx(trivial, rel=1e-3)


def test_the_planted_blocks_cost_more_than_the_trivial_solution(truth):
    planted_blocks = truth.dictionary[:, :, None] * truth.codes.T[:, None, :]
    assert planted_blocks.sum(axis=0) == pytest.approx(truth.data.T)
    assert norms(planted_blocks) > 1.3 * norms(truth.data.T[None])


def test_the_relaxation_does_not_find_the_dictionary_that_road_finds(truth, relaxed):
    left, sizes, _ = np.linalg.svd(relaxed, full_matrices=False)
    assert (sizes[:, 1] > 0.3 * sizes[:, 0]).all()  # no block has rank one
    assert dictionary_error(left[:, :, 0], truth.dictionary) > 0.1
    model = ROAD(K, epsilon=0, random_state=0).fit(truth.data)
    assert dictionary_error(model.components_, truth.dictionary) < 1e-3
