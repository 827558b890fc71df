"""``ROADCV`` chooses the number of atoms of planted problems, reproducibly, and says when there is none to choose."""

import copy
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from roadict import ROAD, ROADCV, load
from roadict.metrics import dictionary_error
from roadict.road import number
from roadict.road.hidden import hidden_entries
from roadict.road.number import MAX_ROUNDS, coarse_numbers, next_numbers
from roadict.seeds import NUMBER_MASK, streams
from roadict.synthetic import planted

NUMBERS = [6, 9, 12, 15, 20]


@pytest.fixture(scope="module")
def truth():
    return planted(400, 8, 12, sparsity=2, snr_db=25, random_state=90_100)


@pytest.fixture(scope="module")
def model(truth):
    return ROADCV(NUMBERS, random_state=0).fit(truth.data)


def test_the_true_number_is_chosen(truth, model):
    assert model.n_components_ == 12
    assert model.components_.shape == (12, 8)
    assert dictionary_error(model.components_, truth.dictionary) < 0.02
    assert not model.flat_


def test_the_results_describe_every_number(truth, model):
    results = model.cv_results_
    assert results["n_components"].tolist() == NUMBERS
    assert {column.shape for column in results.values()} == {(5,)}
    best = np.argmin(results["hidden_error"])
    np.testing.assert_allclose(results["excess"], results["hidden_error"] - results["hidden_error"][best], atol=1e-12)
    assert results["standard_error"][best] == 0
    # The chosen number is the smallest within one standard error.
    within = results["excess"] <= results["standard_error"]
    assert model.n_components_ == results["n_components"][within][0]
    noise = np.linalg.norm(truth.noise) / np.linalg.norm(truth.data)
    assert noise / 2 < results["epsilon"][2] < 2 * noise


def test_the_final_fit_is_that_of_road(truth, model):
    road = ROAD(12, random_state=0).fit(truth.data)
    np.testing.assert_array_equal(model.components_, road.components_)
    np.testing.assert_array_equal(model.codes_, road.codes_)
    assert (model.epsilon_, model.stop_reason_, model.n_iter_) == (road.epsilon_, road.stop_reason_, road.n_iter_)
    np.testing.assert_array_equal(model.transform(truth.data), road.transform(truth.data))
    assert model.score(truth.data) == road.score(truth.data)
    assert model.inverse_transform(model.codes_).shape == truth.data.shape
    assert model.get_feature_names_out().tolist() == [f"roadcv{index}" for index in range(12)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_same_seed_gives_the_same_result_for_any_number_of_jobs(truth, model, n_jobs):
    numbers = np.array(NUMBERS[::-1] + NUMBERS[:1])  # neither order nor repetition matters
    other = ROADCV(numbers, random_state=np.random.SeedSequence(0), n_jobs=n_jobs).fit(truth.data)
    for name, column in model.cv_results_.items():
        np.testing.assert_array_equal(other.cv_results_[name], column, err_msg=name)
    np.testing.assert_array_equal(other.components_, model.components_)


def test_a_search_without_numbers_finds_the_true_one(truth):
    model = ROADCV(n_splits=1, random_state=0).fit(truth.data)
    assert abs(model.n_components_ - 12) <= 1
    tried = model.cv_results_["n_components"]
    assert {4, 8, 16, 32} <= {*tried.tolist()}
    assert len(tried) <= 14


@pytest.mark.parametrize("true", [1, 2, 5, 23, 32, 33, 40, 61, 64, 200])
def test_the_search_ends_at_the_minimum_of_a_curve_that_falls_steeply_and_rises_slowly(true):
    tried, before = set(coarse_numbers(1600, 100 if true > 64 else 16)), 0
    for _ in range(MAX_ROUNDS):
        ordered = sorted(tried)
        errors = [(true - k) / true if k < true else 0.2 * (k - true) / true for k in ordered]
        chosen = int(np.argmin(errors))
        more, before = next_numbers(ordered, chosen, before), ordered[chosen]
        if not more:
            break
        assert not tried & {*more}
        tried |= {*more}
    assert abs(ordered[chosen] - true) <= true // 32
    assert len(tried) <= 16


def fake_trials(monkeypatch, error, deviation=0.001):
    """Let a function of the number of atoms, the split and the start take the place of learning."""
    spread = np.random.default_rng(90_105).standard_normal(400)

    def try_number(problem, split, n_components, bound, start=0):
        misses = error(n_components, split.number, start) + deviation * spread * n_components
        return number.Trial(misses, 0.1, 3.0, 0.1, np.eye(4))

    monkeypatch.setattr(number, "try_number", try_number)


@pytest.mark.parametrize("numbers", [[8, 10, 12, 14, 16], None])
def test_a_poor_local_minimum_of_the_true_number_does_not_change_the_choice(truth, monkeypatch, numbers):
    def error(n_components, split, start):
        poor = n_components == 12 and (split, start) == (1, 0)
        return 0.2 + 0.1 * max(0, 12 - n_components) + 0.01 * max(0, n_components - 12) + 0.05 * poor

    fake_trials(monkeypatch, error)
    path = number.choose_number(truth.data, None, numbers, 2, "numba", 2, np.random.SeedSequence(0))
    assert path.n_components[path.chosen] == 12
    assert not path.flat


def test_of_equal_numbers_the_smallest_is_chosen_and_the_curve_is_flat(truth, monkeypatch):
    fake_trials(monkeypatch, lambda n_components, split, start: 0.2 if n_components >= 10 else 0.5)
    path = number.choose_number(truth.data, None, [8, 10, 12, 14], 1, "numba", 1, np.random.SeedSequence(0))
    assert (path.n_components[path.chosen], path.flat) == (10, True)
    np.testing.assert_allclose(path.hidden_error[1:], path.hidden_error[1], rtol=0.05)
    assert path.hidden_error[0] > 2 * path.hidden_error[1]


def test_a_neighbour_that_is_worse_by_chance_does_not_end_the_search(monkeypatch):
    def error(n_components, split, start):
        return 0.5 if n_components < 8 else 0.25 if n_components == 12 else 0.2

    fake_trials(monkeypatch, error)
    data = np.random.default_rng(90_106).standard_normal((400, 26))  # a search starts with 13 atoms
    path = number.choose_number(data, None, None, 1, "numba", 1, np.random.SeedSequence(0))
    assert path.n_components[path.chosen] == 8


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("rise", "chosen"), [(0.001, 10), (0.01, 12)])
def test_of_numbers_that_all_predict_almost_exactly_the_smallest_is_chosen(monkeypatch, unit, rise, chosen):
    """The rise is that of the error with 10 atoms over that with 12, of the size of the hidden entries."""
    data = unit * np.random.default_rng(90_107).standard_normal((400, 8))
    hidden = hidden_entries(data, None, streams(np.random.SeedSequence(0), NUMBER_MASK, 1)[0])
    per_sample = np.abs(data[hidden]).sum() / len(data)
    errors = {8: 0.5, 10: 0.003 + rise, 12: 0.003, 14: 0.003}
    fake_trials(monkeypatch, lambda n_components, split, start: per_sample * errors[n_components], 0)
    path = number.choose_number(data, None, [*errors], 1, "numba", 1, np.random.SeedSequence(0))
    assert path.n_components[path.chosen] == chosen


def test_data_without_a_true_number_have_a_flat_curve():
    X = np.random.default_rng(90_101).standard_normal((300, 8)) @ np.diag(np.arange(1.0, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ROADCV([2, 3, 4], n_splits=1, max_iter=100, random_state=0).fit(X)
    assert model.flat_
    assert "no clear minimum" in model.plot().axes[0].get_title()


def test_the_true_number_is_chosen_despite_missing_entries(truth):
    X = truth.data.copy()
    X[np.random.default_rng(90_102).random(X.shape) < 0.1] = np.nan
    model = ROADCV([8, 12, 16], n_splits=1, missing_values=np.nan, random_state=0).fit(X)
    assert model.n_components_ == 12


def test_exact_data_are_reproduced_by_the_final_fit():
    X = planted(300, 8, 12, sparsity=2, random_state=90_103).data
    model = ROADCV([9, 12, 16], n_splits=1, random_state=0).fit(X)
    assert (model.n_components_, model.exact_, model.epsilon_) == (12, True, 0.0)


def test_the_lasso_form_is_fitted_if_asked_for(truth):
    model = ROADCV([9, 12], n_splits=1, formulation="lasso", random_state=0).fit(truth.data)
    assert (model.n_components_, model.epsilon_) == (12, None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": []}, r"n_components=\[\] is empty"),
        ({"n_components": [8, 0]}, r"n_components\[1\]=0 must be a whole number of at least 1"),
        ({"n_components": [8.0]}, r"n_components\[0\]=8.0 must be a whole number"),
        ({"n_components": [8, 401]}, "n_components=401 is more than the 400 samples"),
        ({"n_components": 0}, "n_components=0 must be a whole number of at least 1"),
        ({"n_components": "auto"}, "n_components='auto' must be a list"),
        ({"n_components": np.eye(2, dtype=int)}, "must be a list, array or range"),
        ({"n_splits": 0}, "n_splits=0 must be a whole number of at least 1"),
        ({"formulation": "inexact"}, "formulation='inexact' must be 'constrained' or 'lasso'"),
        ({"engine": "abacus"}, "engine='abacus'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_parameters_out_of_bounds_are_refused(truth, parameters, message):
    with pytest.raises(ValueError, match=message):
        ROADCV(**parameters).fit(truth.data)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.eye(9), r"9 samples \(n_samples = 9\); ROADCV needs at least 10"),
        (np.arange(20.0)[:, None], r"1 observed entries on average \(n_features = 1\); .* at least 2"),
        (np.full((20, 8), 3.0), "all observed entries of X are 3: any number of atoms predicts them"),
        (np.zeros((20, 8)), "all observed entries of X are 0"),
    ],
)
def test_data_with_nothing_to_choose_by_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        ROADCV().fit(X)


def test_few_hidden_entries_are_reported():
    X = planted(40, 8, 8, sparsity=2, snr_db=20, random_state=90_104).data
    with pytest.warns(UserWarning, match="about 40 of 320 entries are hidden"):
        ROADCV([4, 8], n_splits=1, max_iter=50, tol=1.0, random_state=0).fit(X)


def test_a_clone_is_unfitted_and_a_pipeline_passes_its_parameters(truth, model):
    unfitted = clone(model)
    assert unfitted.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        unfitted.plot()
    pipeline = make_pipeline(StandardScaler(), ROADCV([12], n_splits=1, random_state=0))
    pipeline.set_params(roadcv__n_components=range(11, 13))
    codes = pipeline.fit(truth.data).transform(truth.data)
    assert codes.shape == (400, pipeline[-1].n_components_)


@pytest.mark.parametrize("numbers", [range(9, 13, 3), np.array([9, 12]), [9, 12], None])
def test_a_saved_model_opens_with_its_curve(truth, model, tmp_path, numbers):
    model = copy.copy(model).set_params(n_components=numbers)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert type(again) is ROADCV
    assert again.n_components == (None if numbers is None else (9, 12))
    assert (again.n_components_, again.flat_, again.epsilon_) == (model.n_components_, model.flat_, model.epsilon_)
    assert again.cv_results_.keys() == model.cv_results_.keys()
    for name, column in model.cv_results_.items():
        np.testing.assert_array_equal(again.cv_results_[name], column)
    np.testing.assert_array_equal(again.transform(truth.data), model.transform(truth.data))
    assert again.plot() is not None


def test_the_plot_shows_the_curve_and_the_chosen_number(model):
    (axes,) = model.plot().axes
    curve, chosen = axes.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), NUMBERS)
    np.testing.assert_array_equal(curve.get_ydata(), model.cv_results_["hidden_error"])
    assert chosen.get_xdata()[0] == 12


def test_a_callback_observes_the_final_fit_and_progress_is_printed(truth, capsys, monkeypatch):
    monkeypatch.setattr("roadict.progress.terminal.PAUSE", 0.0)
    seen = []
    model = ROADCV(
        [9, 12], n_splits=1, verbose=1, random_state=0, callback=lambda snapshot: seen.append(snapshot.start)
    )
    model.fit(truth.data)
    assert len(seen) >= model.n_iter_
    lines = capsys.readouterr().err.splitlines()
    assert any(re.match(r"choosing n_components +\d+ % .* run 3  ", line) for line in lines), "a second start"
    shares = [int(share) for share in re.findall(r"(?m)^(?:choosing n_components)? +(\d+) %", "\n".join(lines))]
    assert shares == sorted(shares), "the fit continues where the choice ended"


@pytest.mark.filterwarnings("ignore:about .* entries are hidden:UserWarning")
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@parametrize_with_checks(
    [ROADCV(n_splits=1, max_iter=50)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "starts and the minimum of ten samples count rows"
    },
)
def test_estimator_check(estimator, check):
    check(estimator)
