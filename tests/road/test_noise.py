"""The noise level from the data, and codes that are minimal for it."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

import roadict
from roadict import ROAD, SparseCoder
from roadict.checkpoints.schedule import Checkpoint, RunStoppedError
from roadict.linalg import unit_rows
from roadict.road.noise import EpsilonPath
from roadict.road.plan import Parameters
from roadict.runs.result import relative_error
from roadict.synthetic import planted


def found(atoms, truth):
    return np.mean(np.abs(unit_rows(truth)[0] @ atoms.T).max(axis=1) > 0.98)


def true_epsilon(truth):
    return np.linalg.norm(truth.noise) / np.linalg.norm(truth.data)


@pytest.fixture(scope="module")
def noisy():
    return planted(300, 16, 24, sparsity=3, snr_db=20, random_state=90_010)


@pytest.fixture(scope="module")
def model(noisy):
    return ROAD(24, random_state=1).fit(noisy.data)


def test_defaults_find_the_noise_and_the_atoms(noisy, model):
    assert 0.6 < model.epsilon_ / true_epsilon(noisy) < 1.4
    assert found(model.components_, noisy.dictionary) > 0.95
    assert (model.codes_ != 0).sum(axis=1).mean() < 9
    assert model.error_ <= model.epsilon_ * (1 + 1e-6)


def test_the_path_tells_why(model):
    path = model.epsilon_path_
    frame = path.to_frame()
    assert frame["chosen"].sum() == 1
    assert frame["epsilon"][path.chosen] == model.epsilon_
    assert (np.diff(path.epsilon) < 0).all()
    within = np.flatnonzero(path.excess <= path.standard_error)
    assert path.chosen == within[0], "the largest within one standard error"
    assert path.excess.min() == 0
    assert "chosen" in repr(path)
    assert len(path.plot().axes) == 2


def test_the_path_is_saved(model, tmp_path):
    model.save(tmp_path / "m.npz")
    loaded = roadict.load(tmp_path / "m.npz")
    assert loaded.epsilon_path_.to_json() == model.epsilon_path_.to_json()


def test_a_path_survives_json(model):
    path = model.epsilon_path_
    again = EpsilonPath.from_json(json.loads(json.dumps(path.to_json())))
    assert again.to_json() == path.to_json()


def test_exact_data_stay_exact():
    truth = planted(300, 16, 24, sparsity=3, random_state=90_011)
    model = ROAD(24, random_state=1).fit(truth.data)
    assert model.epsilon_ == 0
    assert model.exact_
    assert model.epsilon_path_ is None
    assert found(model.components_, truth.dictionary) == 1


def test_few_exact_samples_count_as_exact():
    truth = planted(120, 16, 32, sparsity=3, random_state=90_013)
    model = ROAD(32, random_state=1).fit(truth.data)
    assert model.epsilon_ == 0
    assert found(model.components_, truth.dictionary) > 0.9


def test_a_number_switches_it_off(noisy):
    model = ROAD(24, epsilon=0.1, n_init=1, max_iter=100, tol=0, random_state=1).fit(noisy.data)
    assert model.epsilon_ == 0.1
    assert model.epsilon_path_ is None


def test_when_the_noise_is_unknown():
    assert Parameters().noise_is_unknown
    assert Parameters(formulation="lasso").noise_is_unknown
    assert Parameters(rho=10.0, n_init=3).noise_is_unknown
    assert not Parameters(rho=10.0).noise_is_unknown
    assert not Parameters(rho=10.0, n_init=1).noise_is_unknown
    assert not Parameters(epsilon=0.0).noise_is_unknown
    assert not Parameters(formulation="lasso", alpha=0.1).noise_is_unknown
    assert not Parameters(formulation="inexact").noise_is_unknown


def test_too_few_entries_leave_it_as_it_was():
    narrow = planted(60, 6, 8, sparsity=2, snr_db=20, random_state=90_013)
    model = ROAD(8, max_iter=50, tol=0, n_init=1, random_state=1).fit(narrow.data)
    assert model.epsilon_ == 0
    assert model.epsilon_path_ is None


def test_with_fewer_atoms_than_the_rank_the_floor_is_the_lower_end():
    data = load_wine().data / load_wine().data.std(axis=0)
    data = data - data.mean(axis=0)
    floor = np.sqrt((np.linalg.svd(data, compute_uv=False)[4:] ** 2).sum()) / np.linalg.norm(data)
    model = ROAD(4, random_state=1).fit(data)
    assert model.epsilon_ >= floor
    assert model.epsilon_path_ is not None


def test_with_missing_entries(noisy):
    seen = np.random.default_rng(3).random(noisy.data.shape) > 0.1
    model = ROAD(24, missing_values=np.nan, random_state=1).fit(np.where(seen, noisy.data, np.nan))
    assert 0.5 < model.epsilon_ / true_epsilon(noisy) < 1.6
    assert found(model.components_, noisy.dictionary) > 0.8


def test_the_lasso_form_takes_its_weight_from_the_path(noisy):
    model = ROAD(24, formulation="lasso", random_state=1).fit(noisy.data)
    path = model.epsilon_path_
    assert model.transform_alpha_ == path.alpha[path.chosen]
    assert found(model.components_, noisy.dictionary) > 0.9


def test_the_masks_come_from_random_state(noisy, model):
    again = ROAD(24, random_state=1).fit(noisy.data)
    np.testing.assert_array_equal(again.components_, model.components_)
    assert again.epsilon_path_.to_json() == model.epsilon_path_.to_json()
    other = ROAD(24, random_state=2).fit(noisy.data)
    assert other.epsilon_path_.to_json() != model.epsilon_path_.to_json()
    assert other.epsilon_ == pytest.approx(model.epsilon_, rel=0.5)


def test_rounds_begin_at_a_large_bound_where_the_data_are_surely_noisy(noisy):
    """From a small one, real data seem almost exact: atoms that have fitted the noise predict best at small bounds."""
    ends = {}
    for seen in ROAD(24, random_state=1).iter_fit(noisy.data):
        if seen.stage == "noise":
            ends[seen.start] = seen.error
    assert ends[1] == pytest.approx(0.15, rel=0.01)


def test_stages_are_told(noisy):
    stages = [snapshot.stage for snapshot in ROAD(24, random_state=1).iter_fit(noisy.data)]
    changes = [stage for stage, before in zip(stages, [None, *stages], strict=False) if stage != before]
    assert changes == ["search", "noise", "descent"], "atoms of the last round and another start descend, and agree"


def test_a_callback_ends_the_fit_while_the_noise_is_sought(noisy):
    model = ROAD(24, random_state=1, callback=lambda snapshot: snapshot.stage == "noise" and snapshot.iteration == 3)
    model.fit(noisy.data)
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 3
    assert model.error_ <= model.epsilon_
    assert model.codes_.shape == (300, 24)


@pytest.mark.parametrize("n_components", [20, 64])
def test_pure_noise_is_all_noise(n_components):
    data = np.random.default_rng(90_015).standard_normal((200, 40))
    model = ROAD(n_components, n_init=1, max_iter=200, tol=0, random_state=1).fit(data)
    assert 0.5 < model.epsilon_ < 1
    assert model.epsilon_path_.hidden_error.min() > 0.9


@pytest.mark.parametrize("stopped_at", [("noise", 3), ("descent", 2), ("descent", 20)])
def test_a_fit_that_was_stopped_resumes_with_the_same_result(noisy, model, tmp_path, stopped_at):
    seen = []

    def stop():
        after_noise = "noise" in {name for name, _ in seen}
        return 15 if after_noise and seen[-1] == stopped_at else 0

    def watch(snapshot):
        seen.append((snapshot.stage, snapshot.iteration))

    settings = Checkpoint(tmp_path, every=1e9, stop=stop)
    with pytest.raises(RunStoppedError):
        ROAD(24, random_state=1, checkpoint=settings, callback=watch).fit(noisy.data)
    resumed = ROAD(24, random_state=1, checkpoint=Checkpoint(tmp_path, every=1e9)).fit(noisy.data)
    np.testing.assert_array_equal(resumed.components_, model.components_)
    np.testing.assert_array_equal(resumed.codes_, model.codes_)
    assert resumed.epsilon_path_.to_json() == model.epsilon_path_.to_json()


def wine():
    return load_wine().data, 26


def digits():
    return load_digits().data[:200, :32], 48


def planted_exact():
    return planted(100, 12, 20, sparsity=3, random_state=90_014).data, 20


@pytest.mark.parametrize("problem", [wine, digits, planted_exact])
@pytest.mark.parametrize("max_iter", [100, 2000])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_codes_of_exact_fits_are_those_of_basis_pursuit(problem, max_iter):
    data, n_components = problem()
    model = ROAD(n_components, epsilon=0, n_init=1, max_iter=max_iter, tol=1e-3, random_state=0).fit(data)
    least = SparseCoder(model.components_, algorithm="basis-pursuit").transform(data)
    assert np.abs(model.codes_).sum() <= 1.001 * np.abs(least).sum()
    assert (model.codes_ != 0).sum(axis=1).max() <= data.shape[1]


@pytest.mark.parametrize("problem", [wine, digits, planted_exact])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_codes_of_bounded_fits_are_minimal(problem, epsilon):
    """The minimum of Σ|codes| under a common bound: Lasso codes of one weight, whose error is the bound."""
    data, n_components = problem()
    model = ROAD(n_components, epsilon=epsilon, n_init=1, max_iter=300, tol=0, random_state=0).fit(data)
    atoms = model.components_
    assert model.error_ <= epsilon
    low, high = 1e-6 * np.abs(data).max(), 1e3 * np.abs(data).max()
    for _ in range(60):
        weight = np.sqrt(low * high)
        codes = SparseCoder(atoms, algorithm="lasso", alpha=weight).transform(data)
        low, high = (weight, high) if relative_error(data, None, codes, atoms) <= epsilon else (low, weight)
    least = SparseCoder(atoms, algorithm="lasso", alpha=low).transform(data)
    assert np.abs(model.codes_).sum() <= 1.001 * np.abs(least).sum()
    assert (model.codes_ != 0).sum(axis=1).max() <= data.shape[1]
