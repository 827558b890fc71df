"""Every update against competitors, closed forms and planted truths."""

import numpy as np
import pytest

from roadict.metrics import dictionary_error
from roadict.synthetic import planted
from roadict.updates.blotless import total_least_squares
from roadict.updates.ksvd import top_eigenvector
from roadict.updates.registry import UPDATES
from roadict.updates.replace import replace_atoms, replace_rare_atoms
from roadict.updates.sequential import adaptive_penalty
from roadict.updates.simco import simco
from roadict.updates.sparse import csc_structure, products, refit, residual

ON_SUPPORT = ("mod", "ksvd", "approximate-ksvd", "simco", "blotless")
ALPHA = 0.1


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def error(data, dictionary, codes):
    return np.linalg.norm(data - codes @ dictionary)


@pytest.fixture
def start():
    """Data, wrong atoms, and codes on the true support."""
    truth = planted(200, 10, 14, sparsity=2, random_state=0)
    atoms = unit(truth.dictionary + 0.2 * np.random.default_rng(1).standard_normal((14, 10)))
    return truth, atoms, refit(truth.data, atoms, truth.codes, 0.0, False)


def run(name, data, atoms, codes):
    values = {"alpha": ALPHA, "ridge": 0.0}
    return UPDATES[name].step(data, atoms, codes, **{key: values[key] for key in UPDATES[name].parameters})


# ---- shared functions ----------------------------------------------------------------------------------------------


def test_sparse_operations_equal_dense_ones(start):
    truth, atoms, codes = start
    starts, samples = csc_structure(codes)
    for k in range(14):
        np.testing.assert_array_equal(samples[starts[k] : starts[k + 1]], np.flatnonzero(codes[:, k]))
    np.testing.assert_allclose(residual(truth.data, atoms, codes), truth.data - codes @ atoms, atol=1e-12)
    gram, cross = products(codes, truth.data)
    np.testing.assert_allclose(gram, codes.T @ codes, atol=1e-12)
    np.testing.assert_allclose(cross, codes.T @ truth.data, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_refit_is_least_squares_on_the_support(start, ridge):
    truth, atoms, codes = start
    fitted = refit(truth.data, atoms, codes, ridge, False)
    for sample, old, new in zip(truth.data, codes, fitted, strict=True):
        used = np.flatnonzero(old)
        stacked = np.vstack([atoms[used].T, np.sqrt(ridge) * np.eye(len(used))])
        expected = np.linalg.lstsq(stacked, np.append(sample, np.zeros(len(used))), rcond=None)[0]
        np.testing.assert_allclose(new[used], expected, atol=1e-10)
        assert not np.delete(new, used).any()


def test_refit_handles_duplicate_and_too_many_atoms():
    atoms = np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    fitted = refit(np.array([[2.0, 1.0]]), atoms, np.ones((1, 3)), 0.0, False)
    assert np.isfinite(fitted).all()
    np.testing.assert_allclose(fitted @ atoms, [[2.0, 1.0]], atol=1e-9)


@pytest.mark.parametrize("name", UPDATES)
def test_results_are_new_arrays_of_unit_atoms_and_reproducible(start, name):
    truth, atoms, codes = start
    copies = truth.data.copy(), atoms.copy(), codes.copy()
    dictionary, values = run(name, truth.data, atoms, codes)
    for before, after in zip(copies, (truth.data, atoms, codes), strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1)
    again = run(name, truth.data, atoms, codes)
    np.testing.assert_array_equal(dictionary, again[0])
    np.testing.assert_array_equal(values, again[1])


@pytest.mark.parametrize("name", ON_SUPPORT)
def test_the_error_falls_and_the_support_stays(start, name):
    truth, atoms, codes = start
    before = error(truth.data, atoms, codes)
    dictionary, values = run(name, truth.data, atoms, codes)
    assert error(truth.data, dictionary, values) < 0.9 * before
    assert not values[codes == 0].any()


@pytest.mark.parametrize("name", UPDATES)
def test_unused_atoms_and_zero_samples_are_handled(start, name):
    truth, atoms, codes = start
    data, codes = truth.data.copy(), codes.copy()
    codes[:, 3] = 0
    data[5], codes[5] = 0, 0
    for values in (codes, np.zeros_like(codes)):
        dictionary, new = run(name, data, atoms, values)
        assert np.isfinite(new).all()
        np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1)
    if name in ON_SUPPORT:
        dictionary, new = run(name, data, atoms, codes)
        assert not new[:, 3].any()


@pytest.mark.parametrize("name", ["ksvd", "simco", "blotless"])
def test_planted_atoms_are_found_on_the_true_support(start, name):
    truth, atoms, codes = start
    for _ in range(40):
        atoms, codes = run(name, truth.data, atoms, codes)
    assert dictionary_error(atoms, truth.dictionary) < 1e-3


# ---- each update --------------------------------------------------------------------------------------------------


def test_mod_is_least_squares(start):
    truth, atoms, codes = start
    dictionary, values = run("mod", truth.data, atoms, codes)
    expected = np.linalg.lstsq(codes, truth.data, rcond=None)[0]
    np.testing.assert_allclose(dictionary, unit(expected), atol=1e-10)
    np.testing.assert_allclose(values @ dictionary, codes @ expected, atol=1e-10)


def test_mod_with_dependent_codes_takes_the_solution_of_least_norm(start):
    truth, atoms, codes = start
    codes = codes.copy()
    codes[:, 1] = 2 * codes[:, 0]
    dictionary, values = run("mod", truth.data, atoms, codes)
    expected = np.linalg.lstsq(codes, truth.data, rcond=None)[0]
    np.testing.assert_allclose(values @ dictionary, codes @ expected, atol=1e-8)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("n_samples", [200, 12])
def test_ksvd_takes_the_top_singular_pair_of_every_atom(n_samples):
    truth = planted(n_samples, 10, 4, sparsity=2, snr_db=5, random_state=2)
    atoms, codes = unit(np.random.default_rng(0).standard_normal((4, 10))), truth.codes
    dictionary, values = run("ksvd", truth.data, atoms, codes)
    for k in range(4):
        used = np.flatnonzero(codes[:, k])
        others = [j for j in range(4) if j != k]
        # atom k was updated after those before it, and before those after it
        mixed = np.where(np.arange(4)[:, None] < k, dictionary, atoms)[others]
        mixed_codes = np.where(np.arange(4) < k, values, codes)[np.ix_(used, others)]
        left, sizes, right = np.linalg.svd(truth.data[used] - mixed_codes @ mixed)
        fit = sizes[0] * np.outer(left[:, 0], right[0])
        np.testing.assert_allclose(np.outer(values[used, k], dictionary[k]), fit, atol=1e-8)


@pytest.mark.parametrize("ratio", [0.5, 0.99, 1 - 1e-9, 1.0])
def test_top_eigenvector_from_a_wrong_one(ratio):
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((9, 9)))[0]
    sizes = np.array([1.0, ratio, *np.linspace(0.4, 0, 7)])
    matrix = (basis * sizes) @ basis.T
    found = top_eigenvector(matrix, basis[:, 3].copy())
    assert found @ matrix @ found == pytest.approx(1.0, abs=1e-9)
    if ratio < 1 - 1e-6:
        assert abs(found @ basis[:, 0]) == pytest.approx(1.0, abs=1e-9)
    start = basis[:, 1].copy()
    np.testing.assert_array_equal(top_eigenvector(np.zeros((9, 9)), start), start)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_simco_lowers_its_own_objective_below_that_of_nearby_atoms(start, ridge):
    truth, atoms, codes = start

    def objective(dictionary):
        fitted = refit(truth.data, dictionary, codes, ridge, False)
        return error(truth.data, dictionary, fitted) ** 2 + ridge * np.sum(fitted**2)

    dictionary, values = simco(truth.data, atoms, codes, ridge=ridge)
    reached = objective(dictionary)
    assert reached < 0.7 * objective(atoms)
    np.testing.assert_allclose(values, refit(truth.data, dictionary, codes, ridge, False), atol=1e-10)
    rng = np.random.default_rng(4)
    for size in (0.03, 0.1, 0.3):
        for _ in range(20):
            assert reached < objective(unit(atoms + size * rng.standard_normal(atoms.shape)))


def test_blotless_solves_a_square_block_in_one_update():
    truth = planted(120, 8, 8, sparsity=2, random_state=5)
    atoms = unit(truth.dictionary + 0.3 * np.random.default_rng(6).standard_normal((8, 8)))
    codes = refit(truth.data, atoms, truth.codes, 0.0, False)
    dictionary, _ = run("blotless", truth.data, atoms, codes)
    assert dictionary_error(dictionary, truth.dictionary) < 1e-3
    ksvd, _ = run("ksvd", truth.data, atoms, codes)
    assert dictionary_error(dictionary, truth.dictionary) < 0.1 * dictionary_error(ksvd, truth.dictionary)


def test_blotless_retains_atoms_of_rank_deficient_blocks():
    atoms = np.eye(3)[:2]
    codes = np.array([[1.0, 1.0]])  # one sample does not determine two atoms
    np.testing.assert_array_equal(total_least_squares(codes @ atoms, atoms, codes), atoms)


@pytest.mark.parametrize("name", ["sequential", "consistent-sequential"])
def test_sequential_updates_lower_their_objective_for_any_support(start, name):
    truth, atoms, _ = start
    codes = np.zeros((200, 14))
    penalty = UPDATES[name].penalty

    def objective(dictionary, values):
        return error(truth.data, dictionary, values) ** 2 / 2 + penalty(values, ALPHA)

    last = objective(atoms, codes)
    for _ in range(5):
        atoms, codes = run(name, truth.data, atoms, codes)
        assert objective(atoms, codes) < last
        last = objective(atoms, codes)
    target, atom, best = truth.data - codes[:, :13] @ atoms[:13], atoms[13], codes[:, 13]  # the last to be updated

    def costs(values):
        misfit = np.sum((target - np.outer(values, atom)) ** 2, axis=1) / 2
        return misfit + [penalty(np.array([[value]]), ALPHA) for value in values]

    assert 0 < np.count_nonzero(best) < 100
    for competitor in (np.zeros(200), *(best + step for step in (-0.3, -0.03, -0.003, 0.003, 0.03, 0.3))):
        assert (costs(best) <= costs(competitor) + 1e-12).all()


def test_the_adaptive_penalty_belongs_to_the_adaptive_threshold():
    z = 1.7
    grid = np.linspace(0, 3, 30_001)
    costs = [(x - z) ** 2 / 2 + adaptive_penalty(np.array([[x]]), 0.8) for x in grid]
    assert grid[np.argmin(costs)] == pytest.approx(z - 0.8**2 / z, abs=2e-4)
    assert adaptive_penalty(np.array([[0.0]]), 0.8) == 0


# ---- replaced atoms -------------------------------------------------------------------------------------------------


def test_unused_atoms_become_the_worst_represented_samples(start):
    truth, atoms, codes = start
    codes = codes.copy()
    codes[:, [2, 9]] = 0
    worst = np.argsort(-np.linalg.norm(truth.data - codes @ atoms, axis=1))[:2]
    dictionary, values = replace_atoms(truth.data, atoms, codes)
    np.testing.assert_allclose(dictionary[[2, 9]], unit(truth.data[worst]))
    assert error(truth.data, dictionary, values) < error(truth.data, atoms, codes)
    np.testing.assert_allclose((values @ dictionary)[worst], truth.data[worst])
    assert ((values != 0).sum(axis=1) <= (codes != 0).sum(axis=1)).sum() >= 198


def test_one_of_two_equal_atoms_is_replaced(start):
    truth, atoms, _ = start
    atoms = atoms.copy()
    atoms[4] = -atoms[11]
    codes = refit(truth.data, atoms, truth.codes, 0.0, False)
    dictionary, values = replace_atoms(truth.data, atoms, codes)
    changed = np.flatnonzero((dictionary != atoms).any(axis=1))
    assert len(changed) == 1
    assert changed[0] in (4, 11)
    assert error(truth.data, dictionary, values) < error(truth.data, atoms, codes)
    assert not np.allclose(np.abs(dictionary[4] @ dictionary[11]), 1)


def test_atoms_are_not_replaced_for_samples_that_are_represented():
    truth = planted(50, 6, 8, sparsity=2, random_state=1)
    codes, atoms = np.hstack([truth.codes, np.zeros((50, 1))]), np.vstack([truth.dictionary, np.eye(6)[:1]])
    for found, given in zip(replace_atoms(truth.data, atoms, codes), (atoms, codes), strict=True):
        np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(replace_rare_atoms(truth.data, atoms, codes), atoms)


def test_rare_atoms_are_replaced(start):
    truth, atoms, codes = start
    codes = codes.copy()
    codes[np.flatnonzero(codes[:, 6])[3:], 6] = 0
    replaced = replace_rare_atoms(truth.data, atoms, codes)
    assert (replaced != atoms).any(axis=1).tolist() == [k == 6 for k in range(14)]
    assert np.linalg.norm(replaced[6]) == pytest.approx(1)


@pytest.mark.parametrize("name", ["sequential", "consistent-sequential"])
def test_a_single_atom_leaves_the_given_codes_alone(name):
    """A column is contiguous both ways: its transpose is easily taken for a copy."""
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((30, 1))
    before = codes.copy()
    UPDATES[name].step(rng.standard_normal((30, 4)), np.eye(1, 4), codes, alpha=0.1)
    np.testing.assert_array_equal(codes, before)
