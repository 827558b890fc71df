"""Every prox against competitor points: none may have a smaller objective."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from roadict.prox import nearest_rank_one, project_ball, ridge, shrink_groups

numbers = st.floats(-10, 10, allow_nan=False, width=64)
matrices = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=numbers)


def competitors(point, others, rng):
    """Yield points near and far, and some that a plausible wrong formula would give."""
    yield from others
    for size in (1e-3, 1e-1, 1.0, 10.0):
        for _ in range(10):
            yield point + size * rng.standard_normal(point.shape)
    for factor in (0.0, 0.5, 0.9, 0.99, 1.01, 2.0):
        yield factor * point


@given(matrices, st.floats(0, 5))
def test_shrink_groups_minimises_its_objective(points, threshold):
    def objective(z):
        return threshold * np.linalg.norm(z, axis=1).sum() + ((z - points) ** 2).sum() / 2

    best = shrink_groups(points, threshold)
    for other in competitors(best, [points, np.zeros_like(points)], np.random.default_rng(0)):
        assert objective(best) <= objective(other) + 1e-9


@given(matrices, st.floats(0, 100))
def test_ridge_minimises_its_objective(points, weight):
    def objective(z):
        return weight / 2 * (z**2).sum() + ((z - points) ** 2).sum() / 2

    best = ridge(points, weight)
    for other in competitors(best, [points, np.zeros_like(points)], np.random.default_rng(0)):
        assert objective(best) <= objective(other) + 1e-9


@given(matrices, st.just(0.0) | st.floats(1e-100, 20))
def test_project_ball_is_the_nearest_point_of_the_ball(points, radius):
    best = project_ball(points, radius)
    assert np.linalg.norm(best) <= radius * (1 + 1e-12)
    if np.linalg.norm(points) <= radius:
        assert np.array_equal(best, points)
    for other in competitors(best, [points], np.random.default_rng(0)):
        size = np.linalg.norm(other)
        inside = other if size <= radius else other * radius / size
        assert np.linalg.norm(best - points) <= np.linalg.norm(inside - points) + 1e-9


@given(matrices)
def test_nearest_rank_one_beats_other_rank_one_matrices(matrix):
    codes, atom = nearest_rank_one(matrix)
    assert np.linalg.norm(atom) == pytest.approx(1)
    distance = np.linalg.norm(np.outer(codes, atom) - matrix)
    rng = np.random.default_rng(0)
    directions = [*matrix, *np.eye(matrix.shape[1]), *rng.standard_normal((50, matrix.shape[1]))]
    for direction in directions:
        length = np.linalg.norm(direction)
        if length > 0:
            unit = direction / length
            assert distance <= np.linalg.norm(np.outer(matrix @ unit, unit) - matrix) + 1e-9


def test_nearest_rank_one_accepts_stacks():
    stack = np.random.default_rng(0).standard_normal((3, 6, 4))
    codes, atoms = nearest_rank_one(stack)
    for matrix, code, atom in zip(stack, codes, atoms, strict=True):
        alone = np.outer(*nearest_rank_one(matrix))
        np.testing.assert_allclose(np.outer(code, atom), alone, atol=1e-12)
