"""Exact fits: found from rough ones, and not claimed where there is none."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from roadict import ROAD, fit_all
from roadict.exact_finish.refinement import anderson_step
from roadict.exact_finish.search import find_exact_fit
from roadict.exact_finish.unmixing import unmix
from roadict.linalg import unit_rows
from roadict.metrics import dictionary_error
from roadict.synthetic import planted


@pytest.fixture(scope="module")
def rough_fit():
    """Data, planted atoms and codes, and a rough version of both as a run leaves them."""
    truth = planted(400, 16, 32, sparsity=3, random_state=5)
    rng = np.random.default_rng(6)
    atoms = unit_rows(truth.dictionary + 0.004 * rng.standard_normal((32, 16)))[0]
    return truth, atoms, truth.codes + 0.01 * rng.standard_normal(truth.codes.shape)


def test_an_exact_fit_is_found_from_a_rough_one(rough_fit):
    truth, atoms, codes = rough_fit
    fit = find_exact_fit(truth.data, atoms, codes, 1)
    assert dictionary_error(fit.dictionary, truth.dictionary) < 1e-12
    np.testing.assert_allclose(fit.codes @ fit.dictionary, truth.data, atol=1e-9)
    np.testing.assert_array_equal(np.median(np.count_nonzero(fit.codes, axis=1)), 3)


def test_an_exact_fit_undoes_mixtures_of_two_atoms(rough_fit):
    truth, atoms, codes = rough_fit
    mixed = atoms.copy()
    mixed[4] = unit_rows(atoms[4:5] + 0.3 * atoms[9:10])[0]
    fit = find_exact_fit(truth.data, mixed, codes, 1)
    assert dictionary_error(fit.dictionary, truth.dictionary) < 1e-12


def test_no_exact_fit_is_claimed_where_there_is_none(rough_fit):
    truth, atoms, codes = rough_fit
    wrong = atoms.copy()
    wrong[3] = unit_rows(np.random.default_rng(7).standard_normal((1, 16)))[0]
    assert find_exact_fit(truth.data, wrong, codes, 1) is None, "one atom is missing"
    noise = 1e-3 * np.random.default_rng(8).standard_normal(truth.data.shape)
    assert find_exact_fit(truth.data + noise, atoms, codes, 1) is None, "the data are noisy"


def test_atoms_that_come_together_in_changing_ratios_are_not_mixed():
    rng = np.random.default_rng(9)
    atoms, codes = np.eye(3), np.zeros((50, 3))
    codes[:, :2] = rng.standard_normal((50, 2))
    assert unmix(atoms, codes) is atoms


def test_a_ratio_is_found_though_the_median_lies_between_two():
    """Two atoms for two others of their plane: samples of either have them in one ratio, samples of both between."""
    codes = np.array([[1.0, -0.5]] * 6 + [[1.0, 0.1]] + [[1.0, 0.4]] * 6)
    found = unmix(np.eye(2), codes)
    ratio = found[0, 1] / found[0, 0]
    assert min(abs(ratio + 0.5), abs(ratio - 0.4)) < 1e-12


def test_of_a_pair_mixed_both_ways_only_one_changes():
    codes = np.tile([1.0, 0.5], (9, 1)) * np.arange(1, 10)[:, None]
    changed = np.any(unmix(np.eye(2), codes) != np.eye(2), axis=1)
    assert changed.tolist() == [True, False]


def test_float32_data_can_be_fitted_exactly(rough_fit):
    truth, atoms, codes = rough_fit
    fit = find_exact_fit(truth.data.astype(np.float32), atoms, codes, 1)
    assert dictionary_error(fit.dictionary, truth.dictionary) < 1e-9


def test_few_atoms_means_fewer_than_the_rank():
    """Sixty samples leave the dictionary open; a constant zero must not make them look well explained."""
    truth = planted(60, 16, 32, sparsity=3, random_state=0)
    with_zero = np.concatenate([truth.data, np.zeros((60, 1))], axis=1)
    rng = np.random.default_rng(1)
    atoms = unit_rows(rng.standard_normal((32, 17)) * np.r_[np.ones(16), 0])[0]
    codes = np.linalg.lstsq(atoms.T, with_zero.T)[0].T
    assert find_exact_fit(with_zero, atoms, codes, 1) is None
    few = planted(60, 16, 8, sparsity=3, random_state=0)
    wrong = unit_rows(rng.standard_normal((8, 8)) @ few.dictionary)[0]
    assert find_exact_fit(few.data, wrong, few.data @ np.linalg.pinv(wrong), 1) is None


def test_rounds_of_a_linear_map_are_extrapolated_to_their_end():
    end = np.array([[1.0, 0.0], [0.6, 0.8]])
    rates = np.array([[0.9, 0.9], [0.5, 0.5]])
    rounds, atoms = [], end + np.array([[0.01, 0.02], [-0.03, 0.01]])
    for _ in range(3):
        after = end + rates * (atoms - end)
        rounds.append((atoms, after))
        atoms = after
    np.testing.assert_allclose(anderson_step(rounds, rcond=1e-6), end, atol=1e-12)
    assert np.abs(after - end).max() > 0.01  # the last round itself is far from it


def test_a_fit_is_the_same_where_other_processes_look_for_exact_fits():
    data = planted(300, 16, 32, sparsity=3, random_state=8).data
    here = ROAD(32, random_state=9, n_jobs=1).fit(data)
    there = ROAD(32, random_state=9, n_jobs=1)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        fit_all([there], [data], executor=pool)
    assert there.exact_
    np.testing.assert_array_equal(there.components_, here.components_)
    np.testing.assert_array_equal(there.codes_, here.codes_)
