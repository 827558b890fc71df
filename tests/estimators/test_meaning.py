"""ROAD as an estimator: the meaning of its attributes, files, and use within scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import roadict
from roadict import ROAD, SparseCoder
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

from .conftest import quick


def test_planted_dictionary_is_found(model, truth):
    assert model.stop_reason_ == "converged"
    assert dictionary_error(model.components_, truth.dictionary) < 1e-4


def test_attributes_mean_what_they_say(model, truth):
    X = truth.data
    assert model.components_.shape == (32, 16)
    assert model.codes_.shape == (400, 32)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(32), largest] > 0).all()
    error = np.linalg.norm(X - model.codes_ @ model.components_) / np.linalg.norm(X)
    assert model.error_ == pytest.approx(error)
    assert model.error_ <= 10 * model.tol
    assert model.objective_ == pytest.approx(np.abs(model.codes_).sum())
    np.testing.assert_allclose(model.atom_usage_, (model.codes_ != 0).mean(axis=0))
    assert model.n_iter_ == len(model.history_["objective"])
    assert model.n_features_in_ == 16
    assert model.epsilon_ == 0
    assert model.history_["rho"][-1] == pytest.approx(model.rho_)


def test_codes_are_sparse_and_as_small_as_the_planted_ones(model, truth):
    assert (model.codes_ != 0).sum(axis=1).mean() < 3.5
    assert model.objective_ == pytest.approx(np.abs(truth.codes).sum(), rel=1e-3)


def test_score_is_minus_the_relative_reconstruction_error(model, truth):
    X = truth.data[:50]
    back = model.inverse_transform(model.transform(X))
    assert model.score(X) == pytest.approx(-np.linalg.norm(X - back) / np.linalg.norm(X))
    assert model.score(X) > -0.1


def test_transform_alpha_does_not_depend_on_the_batch(model, truth):
    whole = model.transform(truth.data[:40])
    parts = np.concatenate([model.transform(truth.data[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(whole, parts, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["omp", "mp", "sp", "cosamp", "lasso", "basis-pursuit", "half", "threshold"])
def test_transform_codes_as_a_sparse_coder_with_the_weight_of_the_fit(model, truth, algorithm):
    coder = clone(model).set_params(transform_algorithm=algorithm, transform_n_nonzero_coefs=3)
    vars(coder).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    settings = {"lasso": {"alpha": model.transform_alpha_}, "threshold": {"alpha": model.transform_alpha_}}
    chosen = settings.get(algorithm, {} if algorithm == "basis-pursuit" else {"n_nonzero_coefs": 3})
    X = truth.data[:30]
    expected = SparseCoder(model.components_, algorithm=algorithm, **chosen).transform(X)
    np.testing.assert_array_equal(coder.transform(X), expected)
    error = np.linalg.norm(X - expected @ model.components_) / np.linalg.norm(X)
    assert error < {"threshold": np.inf, "cosamp": 0.7}.get(algorithm, 0.5)


# ------------------------------------------------------------------ formulations


def test_error_stays_within_the_bound():
    noisy = planted(400, 16, 32, sparsity=3, snr_db=20, random_state=2)
    epsilon = float(np.linalg.norm(noisy.noise) / np.linalg.norm(noisy.data))
    model = ROAD(32, epsilon=epsilon, random_state=0).fit(noisy.data)
    assert model.stop_reason_ == "converged"
    assert model.error_ <= epsilon + 10 * model.tol
    exact = ROAD(32, epsilon=0, random_state=0, max_iter=300, tol=0).fit(noisy.data)
    assert model.objective_ < exact.objective_


def test_auto_epsilon_is_zero_at_full_rank_and_slightly_above_the_floor_otherwise():
    X = np.random.default_rng(0).standard_normal((50, 6))
    sizes = np.linalg.svd(X, compute_uv=False)
    floor = np.sqrt((sizes[3:] ** 2).sum() / (sizes**2).sum())
    assert quick(n_components=6).fit(X).epsilon_ == 0
    below = quick(n_components=3, max_iter=2000, tol=1e-4).fit(X)
    assert floor < below.epsilon_ <= 1.1 * floor + 1e-12
    assert below.stop_reason_ == "converged"
    assert below.error_ <= below.epsilon_ + 1e-3
    low_rank = X[:, :2] @ np.random.default_rng(1).standard_normal((2, 6))
    assert quick(n_components=2).fit(low_rank).epsilon_ == 0


def test_lasso_form_ends_in_a_minimum(small):
    """Other codes of its atoms, those of scikit-learn's coordinate descent, and other atoms are no better."""
    alpha = 0.1
    model = quick(formulation="lasso", alpha=alpha, max_iter=3000, tol=1e-5).fit(small)
    assert model.stop_reason_ == "converged"

    def objective(codes, atoms):
        return np.abs(codes).sum() + ((small - codes @ atoms) ** 2).sum() / (2 * alpha)

    def least(atoms):
        return objective(sparse_encode(small, atoms, algorithm="lasso_cd", alpha=alpha, max_iter=10_000), atoms)

    assert model.objective_ == pytest.approx(objective(model.codes_, model.components_))
    assert model.objective_ == pytest.approx(least(model.components_), rel=1e-4)
    rng = np.random.default_rng(0)
    for step in (0.02, 0.1, 1):
        for _ in range(3):
            other = model.components_ + step * rng.standard_normal((12, 8)) / np.sqrt(8)
            assert least(other / np.linalg.norm(other, axis=1, keepdims=True)) > model.objective_


def test_inexact_form_with_three_penalties(small):
    model = quick(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 260)).fit(small)
    assert model.rho_ == pytest.approx((210, 310, 260))
    assert np.isfinite(model.components_).all()
    assert quick(formulation="inexact").fit(small).stop_reason_ == "max_iter"


@pytest.mark.parametrize(("formulation", "expected"), [("constrained", 2000), ("lasso", 2000), ("inexact", 10_000)])
def test_default_number_of_iterations_fits_the_formulation(small, formulation, expected):
    first = next(ROAD(12, formulation=formulation, rho=1000.0, random_state=0).iter_fit(small))
    assert first.max_iter == expected


def test_errors_are_of_the_observed_entries_where_some_are_missing(small):
    X = np.where(np.random.default_rng(5).random(small.shape) < 0.2, np.nan, small)
    seen = ~np.isnan(X)
    model = quick(missing_values=np.nan).fit(X)
    for codes, error in ((model.codes_, model.error_), (model.transform(X), -model.score(X))):
        residual = (X - codes @ model.components_)[seen]
        assert error == pytest.approx(np.linalg.norm(residual) / np.linalg.norm(X[seen]))


def test_missing_values_without_missing_entries_have_no_effect(small):
    plain, marked = quick().fit(small), quick(missing_values=np.nan).fit(small)
    assert np.array_equal(plain.components_, marked.components_)


# ------------------------------------------------------------------ files, scikit-learn


def test_save_and_load_restore_the_model(model, truth, tmp_path):
    model.save(tmp_path / "model.npz")
    again = roadict.load(tmp_path / "model.npz")
    assert again.get_params() == model.get_params()
    for name in ("components_", "codes_", "atom_usage_"):
        assert np.array_equal(getattr(again, name), getattr(model, name))
    for name in ("n_iter_", "stop_reason_", "objective_", "error_", "rho_", "epsilon_", "transform_alpha_"):
        assert getattr(again, name) == getattr(model, name)
        assert type(getattr(again, name)) is type(getattr(model, name))
    assert np.array_equal(again.history_["primal"], model.history_["primal"])
    assert np.array_equal(again.transform(truth.data[:9]), model.transform(truth.data[:9]))


def test_saved_inexact_model_with_missing_feature_names(small, tmp_path):
    import pandas as pd

    frame = pd.DataFrame(small, columns=[f"x{i}" for i in range(8)])
    model = quick(formulation="inexact", rho=(2100, 3100, 2600), beta=(2000, 3000, 2500)).fit(frame)
    model.set_params(callback=print, random_state=np.random.default_rng(0)).save(tmp_path / "model.npz")
    again = roadict.load(tmp_path / "model.npz")
    assert again.rho_ == model.rho_
    assert again.rho == (2100, 3100, 2600)
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.callback is None
    assert again.epsilon_ is None
    assert list(model.get_feature_names_out())[:2] == ["road0", "road1"]


def test_model_file_contains_no_pickles(model, tmp_path):
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)


def test_clone_and_pickle(model):
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.components_, model.components_)
    assert again.history_["objective"][-1] == model.history_["objective"][-1]


def test_pipeline_and_grid_search():
    from sklearn.datasets import load_digits

    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:150].astype(float)
    road = ROAD(formulation="lasso", alpha=1.0, n_init=1, tol=1e-2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), road, LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"road__n_components": [8, 16]}, cv=2).fit(X, y[:150])
    assert search.best_score_ > 0.8
    alone = GridSearchCV(road, {"n_components": [4, 16]}, cv=2).fit(X)
    assert alone.best_params_ == {"n_components": 16}
