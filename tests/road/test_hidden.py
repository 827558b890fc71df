"""Hidden entries: which are hidden, and what their prediction says about the noise."""

import numpy as np
import pytest

from roadict.linalg import unit_rows
from roadict.road.hidden import excess, hidden_curve, hidden_entries

rng = np.random.default_rng(90_001)
X = rng.standard_normal((60, 20))


def hide(data, observed=None, seed=0):
    return hidden_entries(data, observed, np.random.default_rng(seed))


def test_every_sample_hides_the_same_share_of_its_entries():
    assert (hide(X).sum(axis=1) == 1).all()
    assert (hide(rng.standard_normal((10, 100))).sum(axis=1) == 6).all()


def test_all_entries_are_hidden_about_equally_often():
    hidden = hide(rng.standard_normal((20_000, 20)))
    assert hidden.sum(axis=0) == pytest.approx(1000, abs=5 * np.sqrt(1000))


def test_copies_hide_the_same_entries_in_any_order_and_unit():
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(hide(X)[order], hide(X[order]))
    np.testing.assert_array_equal(hide(np.vstack([X, X]))[len(X) :], hide(X))
    np.testing.assert_array_equal(hide(3e-5 * X), hide(X))
    assert (hide(X) != hide(X, seed=1)).any()


def test_only_observed_entries_are_hidden_and_never_all():
    observed = rng.random(X.shape) < 0.3
    observed[0] = observed[1] = False
    observed[1, 4] = True
    data = np.where(observed, X, 0)
    hidden = hide(data, observed)
    assert not (hidden & ~observed).any()
    assert not hidden[:2].any()
    assert (hidden[2:].sum(axis=1) == np.minimum(1, observed[2:].sum(axis=1) - 1).clip(0)).all()


def test_excess_is_paired_by_sample():
    base = rng.random(50)
    step = 0.1 + 0.01 * rng.standard_normal(50)
    sums, over, error = excess(np.stack([base + step, base]))
    assert np.argmin(sums) == 1
    assert over.tolist() == pytest.approx([step.sum(), 0])
    assert error[0] == pytest.approx(np.sqrt(50) * step.std())
    assert error[0] < 0.2 * base.std() * np.sqrt(50), "the samples' own scatter does not count"


def test_the_sparsest_row_within_one_standard_error_is_chosen():
    base = rng.random(50)
    noise = rng.standard_normal(50)
    noise -= noise.mean()
    rows = np.stack([base + noise + 0.3, base + noise + 0.1, base])
    assert excess(rows).first_within == 1


@pytest.mark.parametrize("level", [0.03, 0.1, 0.3])
def test_true_atoms_tell_the_noise_level(level):
    draw = np.random.default_rng(90_002)
    atoms = unit_rows(draw.standard_normal((32, 16)))[0]
    codes = draw.standard_normal((600, 32)) * (np.argsort(draw.random((600, 32)), axis=1) < 3)
    clean = codes @ atoms
    noise = draw.standard_normal(clean.shape)
    data = clean + noise * level * np.linalg.norm(clean) / np.linalg.norm(noise)
    hidden = hide(data)
    curve = hidden_curve(data, ~hidden, hidden, atoms, np.sqrt((data**2).sum(axis=1).mean()))
    assert (np.diff(curve.errors) < 0).all(), "smaller weights fit better"
    chosen = curve.errors[excess(curve.misses).first_within]
    assert 0.6 * level < chosen < 1.5 * level


def test_predictions_are_those_of_least_squares_and_lasso_halfway():
    """One atom and one hidden entry, by hand; least squares that more than double the code are not used."""
    atom = np.array([[0.6, 0.8]])
    data = np.array([[1.2, 2.0]])
    hidden = np.array([[False, True]])
    curve = hidden_curve(data, ~hidden, hidden, atom, 1.0)
    lasso, least = (0.6 * 1.2 - curve.weights) / 0.36, 1.2 / 0.6
    halfway = np.where(least > 2 * lasso, lasso, (lasso + least) / 2)
    np.testing.assert_allclose(curve.misses[:, 0], np.abs(2.0 - 0.8 * halfway), rtol=1e-6)
