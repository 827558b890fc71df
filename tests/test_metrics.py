"""Recovery error against brute force, its invariances, and PSNR against its closed form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from roadict.metrics import dictionary_error, match_atoms, psnr

MATCHINGS = ["optimal", "greedy"]
# Sixteenths: exact ties and zero rows occur, rounding does not.
entries = st.integers(-32, 32).map(lambda n: n / 16)


def dictionaries(rows):
    return hnp.arrays(np.float64, st.tuples(rows, st.just(3)), elements=entries)


def unit(matrix):
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.where(norms > 0, matrix / np.where(norms > 0, norms, 1), 0)


def brute_force_error(estimated, truth):
    """Best over all injections; padded with zero atoms, which correlate with nothing."""
    strength = np.abs(unit(estimated) @ unit(truth).T)
    n_estimated, n_true = strength.shape
    padded = np.zeros((n_estimated + n_true, n_true))
    padded[:n_estimated] = strength
    choices = itertools.permutations(range(len(padded)), n_true)
    return 1 - max(sum(padded[row, k] for k, row in enumerate(rows)) for rows in choices) / n_true


def literal_greedy_error(estimated, truth):
    """The paper's loop, with absolute values throughout."""
    learned, free, total = unit(estimated), dict(enumerate(unit(truth))), 0.0
    for atom in learned:
        if free:
            best = max(free, key=lambda k: (abs(atom @ free[k]), -k))
            total += abs(atom @ free.pop(best))
    return 1 - total / len(truth)


@pytest.mark.parametrize("seed", range(20))
def test_optimal_matching_is_the_best_of_all_permutations(seed):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((4, 3))
    estimated = truth[rng.permutation(4)] + 0.7 * rng.standard_normal((4, 3))
    assert dictionary_error(estimated, truth) == pytest.approx(brute_force_error(estimated, truth), abs=1e-12)


@given(dictionaries(st.integers(1, 3)), dictionaries(st.integers(1, 3)))
def test_any_numbers_of_atoms_agree_with_brute_force(estimated, truth):
    assert dictionary_error(estimated, truth) == pytest.approx(brute_force_error(estimated, truth), abs=1e-12)


@pytest.mark.parametrize("n_estimated", [2, 5, 8])
def test_greedy_matching_is_the_papers_loop(n_estimated):
    rng = np.random.default_rng(n_estimated)
    for _ in range(20):
        truth, estimated = rng.standard_normal((5, 4)), rng.standard_normal((n_estimated, 4))
        expected = literal_greedy_error(estimated, truth)
        assert dictionary_error(estimated, truth, "greedy") == pytest.approx(expected, abs=1e-12)
        assert dictionary_error(estimated, truth) <= expected + 1e-12


def test_greedy_depends_on_the_order_where_optimal_does_not():
    truth = np.eye(2)
    estimated = np.array([[0.6, 0.8], [0.0, 1.0]])  # the first one takes the second one's partner
    assert dictionary_error(estimated, truth, "greedy") == pytest.approx(1 - 0.8 / 2)
    assert dictionary_error(estimated, truth, "optimal") == pytest.approx(1 - 1.6 / 2)
    assert dictionary_error(estimated[::-1], truth, "greedy") == pytest.approx(1 - 1.6 / 2)


@given(
    dictionaries(st.integers(1, 6)),
    dictionaries(st.integers(1, 6)),
    st.randoms(use_true_random=False),
    st.sampled_from([2.0**-600, 0.125, 8.0, 2.0**600]),  # exact, so that ties stay ties
)
def test_order_sign_and_length_of_atoms_do_not_matter(estimated, truth, random, scale):
    before = dictionary_error(estimated, truth)
    assert -1e-12 <= before <= 1 + 1e-12
    order = random.sample(range(len(estimated)), len(estimated))
    lengths = np.array([random.choice([-1, 1]) * scale * random.uniform(0.5, 2) for _ in order])
    changed = estimated[order] * lengths[:, None]
    assert dictionary_error(changed, truth) == pytest.approx(before, abs=1e-12)
    true_order = random.sample(range(len(truth)), len(truth))
    assert dictionary_error(estimated, -scale * truth[true_order]) == pytest.approx(before, abs=1e-12)
    greedy = dictionary_error(estimated, truth, "greedy")
    resigned = estimated * np.sign(lengths)[:, None] * scale
    assert dictionary_error(resigned, truth, "greedy") == pytest.approx(greedy, abs=1e-12)


@pytest.mark.parametrize("matching", MATCHINGS)
def test_known_values(matching):
    truth = np.random.default_rng(0).standard_normal((6, 6))
    orthogonal = np.linalg.qr(truth)[0]
    assert dictionary_error(-3 * orthogonal[::-1], orthogonal, matching) == pytest.approx(0, abs=1e-15)
    assert dictionary_error(orthogonal[:4], orthogonal, matching) == pytest.approx(2 / 6)
    assert dictionary_error(np.zeros((6, 6)), orthogonal, matching) == 1
    # A zero true atom cannot be recovered; extra learned atoms cost nothing.
    with_zero = np.vstack([orthogonal[:5], np.zeros(6)])
    assert dictionary_error(orthogonal, with_zero, matching) == pytest.approx(1 / 6)
    assert dictionary_error(np.vstack([orthogonal, truth]), orthogonal, matching) == pytest.approx(0)
    assert dictionary_error(np.array([[5e-324, 0]]), [[1, 0]], matching) == 0


@pytest.mark.parametrize("matching", MATCHINGS)
def test_match_atoms_inverts_a_permutation_with_signs(matching):
    rng = np.random.default_rng(1)
    truth = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    order, signs = rng.permutation(7), rng.choice([-1.0, 1.0], 7)
    estimated = truth[order] * signs[:, None] * 2
    indices, found_signs = match_atoms(estimated, truth, matching)
    np.testing.assert_allclose(estimated[indices] * found_signs[:, None] / 2, truth, atol=1e-12)


def test_match_atoms_marks_true_atoms_without_partner():
    indices, signs = match_atoms([[0.0, -1.0, 0.0]], np.eye(3))
    assert indices.tolist() == [-1, 0, -1]
    assert signs.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("estimated", "truth", "matching", "message"),
    [
        (np.eye(3), np.eye(4), "optimal", r"estimated has 3 features and truth 4"),
        (np.ones(3), np.eye(3), "optimal", r"estimated has shape \(3,\)"),
        (np.eye(3), np.ones((1, 3, 3)), "optimal", r"truth has shape \(1, 3, 3\)"),
        (np.zeros((0, 3)), np.eye(3), "optimal", r"estimated has shape \(0, 3\)"),
        ([[np.nan, 1.0]], np.eye(2), "optimal", "estimated contains NaN"),
        (np.eye(2), [[np.inf, 1.0]], "greedy", "truth contains NaN or infinity"),
        ([["a", "b"]], np.eye(2), "optimal", "estimated has dtype"),
        (np.eye(2) * 1j, np.eye(2), "optimal", "estimated has dtype complex"),
        (np.eye(2), np.eye(2), "best", """matching='best' is unknown; pass "optimal" or "greedy\""""),
    ],
)
def test_bad_dictionaries_are_refused(estimated, truth, matching, message):
    with pytest.raises(ValueError, match=message):
        dictionary_error(estimated, truth, matching)
    with pytest.raises(ValueError, match=message):
        match_atoms(estimated, truth, matching)


def test_psnr_of_a_constant_shift():
    picture = np.random.default_rng(0).random((5, 6, 3))
    assert psnr(picture + 0.01, picture) == pytest.approx(40)
    assert psnr(picture + 0.01, picture, peak=10) == pytest.approx(60)
    assert psnr(picture, picture) == math.inf


def test_psnr_of_bytes_does_not_wrap_around():
    dark, bright = np.array([[0, 10]], np.uint8), np.array([[5, 5]], np.uint8)
    assert psnr(dark, bright, peak=255) == pytest.approx(20 * math.log10(255 / 5))


@pytest.mark.parametrize(
    ("image", "reference", "peak", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), 1.0, r"shape \(2, 3\) and reference \(3, 2\)"),
        (np.ones((2, 1)), np.ones((2, 3)), 1.0, r"must be equal"),
        (np.ones((0, 3)), np.ones((0, 3)), 1.0, "no pixels"),
        ([np.nan], [1.0], 1.0, "image contains NaN"),
        ([1.0], [np.inf], 1.0, "reference contains NaN or infinity"),
        ([1.0], [1.0], 0.0, r"peak=0.0 must be"),
        ([1.0], [1.0], math.nan, r"peak=nan must be"),
    ],
)
def test_bad_pictures_are_refused(image, reference, peak, message):
    with pytest.raises(ValueError, match=message):
        psnr(image, reference, peak)
