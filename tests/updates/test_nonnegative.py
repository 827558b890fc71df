"""Updates with codes or atoms that must not be negative: constraints, descent, and independent truths."""

import numpy as np
import pytest
from scipy.optimize import nnls

from roadict.synthetic import planted
from roadict.updates.ksvd import approximate_ksvd, ksvd
from roadict.updates.mod import mod
from roadict.updates.registry import UPDATES
from roadict.updates.replace import replace_atoms, replace_rare_atoms
from roadict.updates.sparse import refit

ALPHA = 0.1
CASES = [(name, wanted) for name, update in UPDATES.items() for wanted in update.constraints]
CASES += [(name, "both") for name, update in UPDATES.items() if len(update.constraints) == 2]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def start(seed=0):
    """Return data of both signs, nonnegative atoms and nonnegative codes, which many updates would make negative."""
    truth, rng = planted(200, 10, 14, sparsity=3, random_state=seed), np.random.default_rng([seed, 1])
    atoms = unit(np.abs(rng.standard_normal((14, 10))))
    return truth.data, atoms, refit(truth.data, atoms, np.abs(truth.codes), 0.0, True)


def objective(name, data, dictionary, codes):
    penalty = UPDATES[name].penalty
    return ((data - codes @ dictionary) ** 2).sum() / 2 + (0 if penalty is None else penalty(codes, ALPHA))


@pytest.mark.parametrize(("name", "wanted"), CASES)
def test_constraints_hold_and_the_objective_falls(name, wanted):
    data, atoms, codes = start()
    given = {"alpha": ALPHA, "ridge": 0.0}
    arguments = {key: given[key] for key in UPDATES[name].parameters}
    flags = {flag: True for flag in ("positive_code", "positive_dict") if wanted in (flag, "both")}
    free = UPDATES[name].step(data, atoms, codes, **arguments)
    if name != "mod" or "positive_dict" in flags:
        assert any(
            (array < 0).any()
            for array, flag in zip(free, ("positive_dict", "positive_code"), strict=True)
            if flag in flags
        )
    before = objective(name, data, atoms, codes)
    for _ in range(5):
        atoms, codes = UPDATES[name].step(data, atoms, codes, **arguments, **flags)
        np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1)
        assert (codes >= 0).all() or "positive_code" not in flags
        assert (atoms >= 0).all() or "positive_dict" not in flags
        after = objective(name, data, atoms, codes)
        assert after <= before * (1 + 1e-12)
        before = after


def test_refit_is_nonnegative_least_squares_on_the_support():
    data, atoms, _ = start()
    codes = np.where(np.random.default_rng(3).random((200, 14)) < 0.4, 1.0, 0.0)
    codes[:, 0] = 1
    fitted = refit(data, atoms, codes, 0.0, True)
    for sample, old, new in zip(data, codes, fitted, strict=True):
        used = np.flatnonzero(old)
        np.testing.assert_allclose(np.linalg.norm(sample - new @ atoms), nnls(atoms[used].T, sample)[1], atol=1e-9)
        assert not new[old == 0].any()
        assert (new >= 0).all()


def test_mod_is_nonnegative_least_squares_over_the_atoms():
    data, atoms, codes = start()
    codes[:, 4] = 0
    dictionary, scaled = mod(data, atoms, codes, positive_dict=True)
    truth = np.array([nnls(codes, feature)[0] for feature in data.T]).T
    np.testing.assert_allclose(scaled @ dictionary, codes @ truth, atol=1e-9)
    np.testing.assert_array_equal(dictionary[4], atoms[4])


@pytest.mark.parametrize("update", [ksvd, approximate_ksvd])
def test_ksvd_of_nonnegative_rank_one_data_is_exact(update):
    rng = np.random.default_rng(0)
    codes, atom = np.abs(rng.standard_normal((30, 1))), np.abs(rng.standard_normal((1, 8)))
    first = unit(np.abs(rng.standard_normal((1, 8))))
    dictionary, values = update(codes @ atom, first, np.ones((30, 1)), positive_code=True, positive_dict=True)
    np.testing.assert_allclose(dictionary, unit(atom), atol=1e-12)
    np.testing.assert_allclose(values @ dictionary, codes @ atom, atol=1e-12)


def test_ksvd_ends_in_a_fixed_point_and_below_one_step():
    data = np.random.default_rng(0).standard_normal((40, 8))
    first = unit(np.abs(np.random.default_rng(1).standard_normal((1, 8)))), np.ones((40, 1))
    atom, codes = ksvd(data, *first, positive_code=True, positive_dict=True)
    best = np.maximum(codes[:, 0] @ data, 0)
    np.testing.assert_allclose(atom[0], best / np.linalg.norm(best), atol=1e-6)
    np.testing.assert_allclose(codes[:, 0], np.maximum(data @ atom[0], 0), atol=1e-12)
    other, more = approximate_ksvd(data, *first, positive_code=True, positive_dict=True)
    assert np.linalg.norm(data - codes @ atom) < np.linalg.norm(data - more @ other)


def test_opposite_atoms_are_no_duplicates_for_nonnegative_codes():
    atoms, codes = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    data = codes @ atoms + [[0.0, 0.0], [0.0, 0.3], [0.0, 0.1]]
    found = replace_atoms(data, atoms, codes, positive_code=True)
    for array, same in zip(found, (atoms, codes), strict=True):
        np.testing.assert_array_equal(array, same)
    assert (replace_atoms(data, atoms, codes)[1] < 0).any()


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_replaced_atoms_are_not_negative_and_lower_the_objective(alpha):
    data, atoms, codes = start()
    codes[:, :3] = 0
    atoms[5] = atoms[6]
    flags = {"positive_code": True, "positive_dict": True}
    found, values = replace_atoms(data, atoms, codes, alpha, **flags)
    assert (found != atoms).any(axis=1).sum() >= 3
    rare = codes.copy()
    rare[1:, 8] = 0
    for dictionary in (found, replace_rare_atoms(data, atoms, rare, **flags)):
        assert (dictionary >= 0).all()
        assert (dictionary != atoms).any()
        np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1)
    assert (values >= 0).all()

    def cost(dictionary, codes):
        return ((data - codes @ dictionary) ** 2).sum() / 2 + alpha * codes.sum()

    assert cost(found, values) < cost(atoms, codes)


@pytest.mark.parametrize(
    ("sample", "code"),
    [([-1.0, -1.0], 0.0), ([-1.0, -1.0], 0.5), ([1.0, -1.0], 1.0)],
    ids=["negative", "negative with a code", "nothing to gain"],
)
def test_samples_that_a_nonnegative_atom_does_not_help_become_none(sample, code):
    data, atoms, codes = np.array([sample]), np.eye(2), np.array([[code, 0.0]])
    flags = {"positive_code": True, "positive_dict": True}
    for array, same in zip(replace_atoms(data, atoms, codes, **flags), (atoms, codes), strict=True):
        np.testing.assert_array_equal(array, same)
    np.testing.assert_array_equal(replace_rare_atoms(-np.ones((1, 2)), atoms, codes, **flags), atoms)
