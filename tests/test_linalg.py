import numpy as np
import pytest

from roadict.linalg import solve_ridge


@pytest.mark.parametrize("pulled", [False, True])
def test_a_ridge_solution_has_the_smallest_objective(pulled):
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(30, 5)) * [1, 2, 3, 1e-3, 0]
    data = rng.normal(size=(30, 4))
    towards = rng.normal(size=(5, 4)) if pulled else np.zeros((5, 4))
    weight = 0.01 * np.square(codes).sum() / 5

    def objective(atoms):
        return np.square(data - codes @ atoms).sum() + weight * np.square(atoms - towards).sum()

    found = solve_ridge(codes.T @ codes, codes.T @ data, 0.01, towards if pulled else None)
    np.testing.assert_allclose(found[4], towards[4], atol=1e-14)
    for size in np.logspace(-4, 0, 30):
        assert objective(found) < objective(found + size * rng.normal(size=found.shape))


def test_without_any_codes_there_are_no_atoms():
    assert not solve_ridge(np.zeros((3, 3)), np.zeros((3, 2)), 0.1).any()
