"""Planted problems: shapes, distributions, noise and seeds."""

import numpy as np
import pytest

from roadict.synthetic import Planted, planted


def snr_db(problem: Planted) -> float:
    signal = problem.data - problem.noise
    return 20 * np.log10(np.linalg.norm(signal) / np.linalg.norm(problem.noise))


def test_data_is_codes_times_dictionary_plus_noise():
    problem = planted(50, 8, 12, sparsity=3, snr_db=10, random_state=1)
    assert problem.data.shape == (50, 8)
    assert problem.dictionary.shape == (12, 8)
    assert problem.codes.shape == (50, 12)
    np.testing.assert_array_equal(problem.data, problem.codes @ problem.dictionary + problem.noise)
    np.testing.assert_allclose(np.linalg.norm(problem.dictionary, axis=1), 1, rtol=1e-14)


def test_fixed_sparsity_has_that_many_standard_normals_on_uniform_supports():
    codes = planted(20_000, 4, 8, sparsity=3, random_state=2).codes
    assert ((codes != 0).sum(axis=1) == 3).all()
    values = codes[codes != 0]
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02
    pairs = (codes != 0).T.astype(float) @ (codes != 0) / len(codes)
    np.testing.assert_allclose(np.diag(pairs), 3 / 8, atol=0.02)
    # Two given atoms of eight are both among three drawn ones with probability 3·2 / (8·7).
    np.testing.assert_allclose(pairs[~np.eye(8, dtype=bool)], 6 / 56, atol=0.02)
    # The size of a coefficient must not depend on its position.
    spread = np.sqrt((codes**2).sum(axis=0) / (codes != 0).sum(axis=0))
    np.testing.assert_allclose(spread, 1, atol=0.04)


def test_full_sparsity_is_dense():
    assert (planted(30, 4, 6, sparsity=6, random_state=0).codes != 0).all()


def test_bernoulli_codes_have_that_share_of_standard_normals():
    codes = planted(10_000, 4, 10, probability=0.2, random_state=3).codes
    counts = (codes != 0).sum(axis=1)
    assert abs(counts.mean() - 2) < 0.05
    assert abs(counts.var() - 10 * 0.2 * 0.8) < 0.06  # binomial, so not a fixed count
    assert abs(codes[codes != 0].std() - 1) < 0.02
    assert (planted(10, 4, 5, probability=1, random_state=0).codes != 0).all()


@pytest.mark.parametrize("expected", [-7.5, 0, 30, 120.0])
def test_noise_has_the_requested_ratio(expected):
    problem = planted(40, 8, 16, sparsity=2, snr_db=expected, random_state=4)
    ratio = np.linalg.norm(problem.codes @ problem.dictionary) / np.linalg.norm(problem.noise)
    assert 20 * np.log10(ratio) == pytest.approx(expected, abs=1e-10)


def test_noise_is_white_and_absent_by_default():
    noise = planted(20_000, 5, 10, sparsity=2, snr_db=20, random_state=5).noise
    covariance = noise.T @ noise / np.mean(noise**2) / len(noise)
    np.testing.assert_allclose(covariance, np.eye(5), atol=0.03)
    assert not planted(10, 5, 10, sparsity=2, random_state=5).noise.any()


def test_atom_directions_are_isotropic():
    atoms = planted(1, 4, 40_000, sparsity=1, random_state=6).dictionary
    np.testing.assert_allclose(atoms.T @ atoms / len(atoms), np.eye(4) / 4, atol=0.01)
    np.testing.assert_allclose(atoms.mean(axis=0), 0, atol=0.01)


@pytest.mark.parametrize("model", [{"sparsity": 3}, {"probability": 0.2}])
def test_one_seed_is_one_dictionary_whatever_the_number_of_samples_and_noise(model):
    small = planted(5_000, 6, 9, random_state=7, **model)
    large = planted(9_000, 6, 9, random_state=7, **model)
    noisy = planted(5_000, 6, 9, random_state=7, snr_db=3, **model)
    np.testing.assert_array_equal(small.dictionary, large.dictionary)
    np.testing.assert_array_equal(small.codes, large.codes[:5_000])
    np.testing.assert_array_equal(small.dictionary, noisy.dictionary)
    np.testing.assert_array_equal(small.codes, noisy.codes)
    other = planted(5, 6, 9, random_state=8, **model)
    assert not np.allclose(other.dictionary, small.dictionary)


def make_problem(random_state):
    return planted(20, 6, 9, sparsity=2, snr_db=20, random_state=random_state).data


@pytest.mark.parametrize(
    "make",
    [
        lambda: 3,
        lambda: np.int64(3),
        lambda: np.random.default_rng(3),
        lambda: np.random.Generator(np.random.MT19937(3)),
        lambda: np.random.RandomState(3),
        lambda: np.random.SeedSequence(3),
        lambda: np.random.SeedSequence(3).spawn(2)[1],
    ],
)
def test_every_kind_of_random_state_repeats(make):
    np.testing.assert_array_equal(make_problem(make()), make_problem(make()))


def test_a_generator_advances_and_a_seed_sequence_does_not():
    for source in (np.random.default_rng(0), np.random.RandomState(0), None):
        assert not np.array_equal(make_problem(source), make_problem(source))
    sequence = np.random.SeedSequence(0)
    np.testing.assert_array_equal(make_problem(sequence), make_problem(sequence))
    first, second = np.random.SeedSequence(0).spawn(2)
    assert not np.array_equal(make_problem(first), make_problem(second))


def test_a_start_from_the_same_seed_is_not_the_truth():
    truth = planted(1, 16, 32, sparsity=1, random_state=0).dictionary
    generators = [np.random.default_rng(0), *np.random.default_rng(0).spawn(4)]
    for generator in generators:
        start = generator.standard_normal((32, 16))
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        assert np.abs(np.sum(start * truth, axis=1)).mean() < 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"sparsity=None and probability=None: exactly one .*1 to 9"),
        ({"sparsity": 2, "probability": 0.1}, r"sparsity=2 and probability=0.1: exactly one"),
        ({"sparsity": 0}, r"sparsity=0 .* at least 1"),
        ({"sparsity": 10}, r"sparsity=10 must be at most n_components=9"),
        ({"sparsity": 2.0}, r"sparsity=2.0 must be a whole number"),
        ({"sparsity": True}, r"sparsity=True must be a whole number"),
        ({"probability": 0}, r"probability=0 must be in \(0, 1\]"),
        ({"probability": 1.5}, r"probability=1.5 must be in"),
        ({"probability": np.nan}, r"probability=nan must be in"),
        ({"sparsity": 2, "snr_db": np.inf}, r"snr_db=inf must be a finite"),
        ({"probability": 1e-12, "snr_db": 10}, r"snr_db=10.0 needs a signal"),
        ({"sparsity": 2, "random_state": -1}, r"random_state=-1 must be"),
        ({"sparsity": 2, "random_state": "seed"}, r"random_state='seed' must be"),
        ({"sparsity": 2, "n_samples": 0}, r"n_samples=0 must be a whole number of at least 1"),
        ({"sparsity": 2, "n_features": 2.5}, r"n_features=2.5 must be"),
    ],
)
def test_bad_arguments_are_refused_with_value_bound_and_remedy(arguments, message):
    sizes = {"n_samples": 5, "n_features": 6, "n_components": 9}
    with pytest.raises(ValueError, match=message):
        planted(**{**sizes, "random_state": 0, **arguments})


def test_snr_helper_agrees_with_the_codes():
    assert snr_db(planted(30, 6, 9, sparsity=2, snr_db=12, random_state=0)) == pytest.approx(12)
