"""``atom_stability``: planted atoms recur in halves of the samples, surplus atoms do not."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from roadict import ROAD, ROADCV, AlternatingDictionaryLearning, SparseCoder, atom_stability, load
from roadict.estimators import stability as module
from roadict.metrics import STABLE
from roadict.synthetic import planted

N_TRUE, N_ATOMS = 12, 15


@pytest.fixture(scope="module")
def noisy():
    return planted(400, 8, N_TRUE, sparsity=2, snr_db=25, random_state=0)


@pytest.fixture(scope="module")
def fitted(noisy):
    noise = float(np.linalg.norm(noisy.noise) / np.linalg.norm(noisy.data))
    return ROAD(N_ATOMS, epsilon=noise, random_state=0).fit(noisy.data)


@pytest.fixture(scope="module")
def stability(fitted, noisy):
    return atom_stability(fitted, noisy.data, random_state=0)


def quick(**parameters):
    """A two-stage model that is fitted within milliseconds."""
    return AlternatingDictionaryLearning(
        **({"n_components": 6, "max_iter": 3, "tol": 0, "random_state": 0} | parameters)
    )


def is_true(model, truth):
    return np.abs(model.components_ @ truth.dictionary.T).max(axis=1) > 0.98


def test_planted_atoms_are_stable_and_surplus_atoms_are_not(fitted, noisy, stability):
    assert stability.shape == (N_ATOMS,)
    assert ((stability >= 0) & (stability <= 1)).all()
    true = is_true(fitted, noisy)
    assert true.sum() == N_TRUE
    np.testing.assert_array_equal(stability >= STABLE, true)
    assert stability[~true].max() < 0.8


def test_two_stage_methods_have_it_too(noisy):
    truth = planted(400, 8, 10, sparsity=2, snr_db=30, random_state=0)
    model = AlternatingDictionaryLearning(13, n_nonzero_coefs=2, tol=0, random_state=0).fit(truth.data)
    true = is_true(model, truth)
    assert true.sum() == 10
    stable = atom_stability(model, truth.data, random_state=0) >= STABLE
    assert true[stable].all(), "no false atom is stable"
    assert stable.sum() >= 8


def test_a_chosen_number_of_atoms_is_retained(noisy):
    model = ROADCV([8, N_TRUE], n_splits=1, max_iter=300, tol=0, random_state=0).fit(noisy.data)
    own = atom_stability(model, noisy.data, n_splits=1, random_state=0)
    np.testing.assert_array_equal(own, atom_stability(model.final_road(), noisy.data, n_splits=1, random_state=0))
    assert own.shape == (model.n_components_,)


def test_unobserved_entries_are_left_out(noisy):
    seen = np.random.default_rng(5).random(noisy.data.shape) >= 0.05
    data = np.where(seen, noisy.data, np.nan)
    model = ROAD(N_TRUE, epsilon=0.05, n_init=1, max_iter=1500, tol=1e-3, missing_values=np.nan, random_state=1)
    model.fit(data)
    stable = atom_stability(model, data, n_splits=1, random_state=0) >= STABLE
    assert is_true(model, noisy)[stable].all()
    assert stable.sum() >= N_TRUE - 2


def test_it_belongs_to_the_atom_whatever_its_place_and_sign(noisy):
    model = quick(n_components=10, n_nonzero_coefs=2).fit(noisy.data)
    expected = atom_stability(model, noisy.data, random_state=3)
    order = np.random.default_rng(0).permutation(10)
    model.components_ = model.components_[order] * np.where(order % 2, -1, 1)[:, None]
    np.testing.assert_allclose(atom_stability(model, noisy.data, random_state=3), expected[order], atol=1e-12)
    assert len(np.unique(expected.round(6))) > 5


def test_the_same_seed_gives_the_same_numbers(noisy):
    model = quick(n_nonzero_coefs=2).fit(noisy.data)
    first = atom_stability(model, noisy.data, random_state=1)
    np.testing.assert_array_equal(atom_stability(model, noisy.data, random_state=1, n_jobs=1), first)
    np.testing.assert_array_equal(atom_stability(model, noisy.data, random_state=1, progress=lambda *step: None), first)
    assert not np.array_equal(atom_stability(model, noisy.data, random_state=2), first)
    assert not np.array_equal(atom_stability(model, noisy.data, random_state=1, n_splits=3), first)


@pytest.fixture
def halves(monkeypatch):
    """Record the models that are fitted, and to what."""
    seen = []
    fit = module._fit

    def record(model, half, *others):
        seen.append((model, half))
        fit(model, half, *others)

    monkeypatch.setattr(module, "_fit", record)
    return seen


def test_halves_are_complementary_and_fitted_from_independent_starts(noisy, halves, capsys):
    samples = noisy.data[:21]
    model = quick(dict_init=noisy.dictionary[:6]).fit(samples)
    model.set_params(callback=lambda snapshot: 1 / 0, checkpoint="nowhere", verbose=2)
    atom_stability(model, np.vstack([samples, np.zeros((4, 8))]), n_splits=3, random_state=0)
    assert capsys.readouterr() == ("", "")
    assert not Path("nowhere").exists()
    assert len(halves) == 6
    for (_, one), (_, other) in zip(halves[::2], halves[1::2], strict=True):
        assert sorted(map(len, (one, other))) == [10, 11]
        both = np.vstack([one, other])
        np.testing.assert_array_equal(both[np.lexsort(both.T)], samples[np.lexsort(samples.T)])
    assert len({half.tobytes() for _, half in halves}) == 6
    assert len({fitted.random_state for fitted, _ in halves}) == 6
    assert all(fitted.dict_init is None for fitted, _ in halves)
    assert model.dict_init is not None


def fitted_parameters(model, data, halves):
    atom_stability(model, data, n_splits=1, random_state=0)
    return [fitted.get_params() for fitted, _ in halves]


def test_halves_are_fitted_at_the_noise_level_of_the_model(noisy, halves):
    rough = {"n_init": 1, "max_iter": 3, "tol": 0, "random_state": 0}
    data = 100 * noisy.data
    model = ROAD(6, **rough).fit(data)  # fewer atoms than features: the automatic bound depends on the samples
    assert model.epsilon_ > 0.1
    found = fitted_parameters(model, data, halves)
    assert all(p["n_components"] == 6 and p["max_iter"] == 3 and p["n_init"] == 1 for p in found)
    assert [p["epsilon"] for p in found] == [model.epsilon_] * 2
    halves.clear()
    model = ROAD(formulation="lasso", **rough).fit(data)
    found = fitted_parameters(model, data, halves)
    assert [(p["alpha"], p["n_components"]) for p in found] == [(model.transform_alpha_, 16)] * 2
    halves.clear()
    model = quick(coder="lasso").fit(data)
    found = fitted_parameters(model, data, halves)
    assert [p["alpha"] for p in found] == [model.alpha_] * 2


def test_a_half_that_cannot_reach_the_bound_gets_its_own(noisy, halves):
    data = np.vstack([1000 * noisy.data[:1], noisy.data])  # without the first sample no half reaches this bound
    model = ROAD(1, n_init=1, max_iter=3, tol=0, random_state=0).fit(data)
    bounds = [p["epsilon"] for p in fitted_parameters(model, data, halves)]
    assert model.epsilon_ in bounds
    assert max(bounds) > 0.5


def test_one_warning_reports_that_halves_have_not_converged(noisy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = quick(tol=1e-9).fit(noisy.data)
    with pytest.warns(ConvergenceWarning) as caught:
        atom_stability(model, noisy.data, random_state=0)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("4 of 4 fits of halves have not converged in max_iter=3 iterations")
    assert caught[0].filename == __file__


def test_progress_counts_halves_and_iterations(noisy):
    steps = []
    model = quick().fit(noisy.data)
    atom_stability(model, noisy.data, n_splits=1, random_state=0, progress=lambda *step: steps.append(step))
    assert [step[:2] for step in steps] == [(round(1000 * done / 6), 1000) for done in range(1, 7)]
    assert steps[0][2].startswith("half 1 of 2  iteration 1  objective")
    assert steps[-1][2].startswith("half 2 of 2  iteration 3  objective")


def few(count):
    data = np.zeros((50, 8))
    data[:count] = np.random.default_rng(0).normal(size=(count, 8))
    return data


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (few(9)[:9], {}, "X has nonzero entries in 9 samples; .* needs at least 10 .*: pass more samples"),
        (few(9), {}, "X has nonzero entries in 9 samples;"),
        (few(1), {}, "X has nonzero entries in 1 sample;"),
        (few(0), {}, "X has nonzero entries in 0 samples;"),
        (np.ones((20, 8)), {}, "all 20 samples of X are equal.*: pass other data"),
        (few(20)[:, :5], {}, "X has 5 features, but AlternatingDictionaryLearning is expecting 8"),
        (few(20), {"n_splits": 0}, "n_splits=0 must be a whole number of at least 1"),
        (few(20), {"n_splits": 1.5}, "n_splits=1.5 must be a whole number"),
        (few(20), {"n_jobs": 0}, "n_jobs=0 must be a whole number other than 0"),
        (few(20), {"random_state": "a"}, "random_state='a' must be"),
        (np.full((20, 8), np.nan), {}, "contains NaN"),
    ],
)
def test_bad_input_is_refused(noisy, data, options, message):
    model = quick().fit(noisy.data)
    with pytest.raises(ValueError, match=message):
        atom_stability(model, data, **options)


def test_models_without_atoms_are_refused(noisy):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        atom_stability(quick(), noisy.data)
    with pytest.raises(
        ValueError, match=r"must be a fitted ROAD, ROADCV or AlternatingDictionaryLearning; pass one of these"
    ):
        atom_stability(SparseCoder(noisy.dictionary), noisy.data)


def test_several_ranks_are_refused(noisy, monkeypatch):
    model = ROAD(6, n_init=1, max_iter=3, tol=0, random_state=0).fit(noisy.data)

    class Two:
        rank, size = 0, 2

    monkeypatch.setattr(ROAD, "_comm", lambda self: Two())
    with pytest.raises(ValueError, match=r"in one process, not on 2 ranks; call it within roadict.ranks.alone\(\)"):
        atom_stability(model, noisy.data)


def test_it_is_saved_with_the_model_and_discarded_by_the_next_fit(noisy, tmp_path):
    model = quick().fit(noisy.data)
    model.save(tmp_path / "without.npz")
    assert not hasattr(load(tmp_path / "without.npz"), "atom_stability_")
    model.atom_stability_ = atom_stability(model, noisy.data, random_state=0)
    model.save(tmp_path / "with.npz")
    np.testing.assert_array_equal(load(tmp_path / "with.npz").atom_stability_, model.atom_stability_)
    assert not hasattr(model.fit(noisy.data), "atom_stability_")


@pytest.mark.parametrize("values", [np.ones(5), np.full(6, 1.5), np.full(6, np.nan), np.ones(6, int)])
def test_a_file_with_other_values_is_refused(noisy, tmp_path, values):
    model = quick().fit(noisy.data)
    model.atom_stability_ = values
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="atom_stability_ must hold a number between 0 and 1 for each atom"):
        load(tmp_path / "model.npz")
