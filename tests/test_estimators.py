"""ROAD as an estimator: what its words mean, and that its parts fit together."""

import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import roadict
from roadict import ROAD, SparseCoder
from roadict.metrics import dictionary_error
from roadict.synthetic import planted


@pytest.fixture(scope="module")
def truth():
    return planted(400, 16, 32, sparsity=3, random_state=0)


@pytest.fixture(scope="module")
def model(truth):
    return ROAD(32, random_state=0).fit(truth.data)


def quick(**parameters):
    return ROAD(**({"n_components": 12, "max_iter": 40, "tol": 0, "random_state": 0} | parameters))


@pytest.fixture
def small():
    return planted(60, 8, 12, sparsity=2, random_state=3).data


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


def test_score_is_minus_the_relative_error_of_transform_and_back(model, truth):
    X = truth.data[:50]
    back = model.inverse_transform(model.transform(X))
    assert model.score(X) == pytest.approx(-np.linalg.norm(X - back) / np.linalg.norm(X))
    assert model.score(X) > -0.1


def test_lasso_transform_equals_scikit_learn(model, truth):
    from sklearn.linear_model import Lasso

    X = truth.data[:5]
    alpha = model.transform_alpha_
    for sample, code in zip(X, model.transform(X), strict=True):
        expected = Lasso(alpha=alpha / 16, fit_intercept=False, tol=1e-10, max_iter=100_000)
        np.testing.assert_allclose(code, expected.fit(model.components_.T, sample).coef_, atol=2e-2 * alpha)


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


def test_auto_epsilon_is_zero_at_full_rank_and_just_above_the_floor_below():
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


def test_lasso_form_reaches_a_smaller_lasso_objective_than_other_codes(small):
    alpha = 0.1
    model = quick(formulation="lasso", alpha=alpha, max_iter=3000, tol=1e-5).fit(small)
    assert model.stop_reason_ == "converged"

    def objective(codes, components):
        residual = small - codes @ components
        return np.abs(codes).sum() + (residual**2).sum() / (2 * alpha)

    assert model.objective_ == pytest.approx(objective(model.codes_, model.components_))
    # scikit-learn's coordinate descent solves for the codes of these atoms exactly
    assert model.objective_ <= objective(model.transform(small), model.components_) * 1.01
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = rng.standard_normal(model.components_.shape)
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        coder = clone(model)
        vars(coder).update({k: v for k, v in vars(model).items() if k.endswith("_")} | {"components_": other})
        assert model.objective_ < objective(coder.transform(small), other)


def test_inexact_form_with_three_penalties(small):
    model = quick(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 260)).fit(small)
    assert model.rho_ == pytest.approx((210, 310, 260))
    assert np.isfinite(model.components_).all()
    assert quick(formulation="inexact").fit(small).stop_reason_ == "max_iter"


def test_missing_entries_are_learned_around(truth):
    X = truth.data.copy()
    X[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    model = ROAD(32, missing_values=np.nan, random_state=0, max_iter=1000, tol=0).fit(X)
    assert dictionary_error(model.components_, truth.dictionary) < 0.03
    seen = ~np.isnan(X)
    error = np.linalg.norm((X - model.codes_ @ model.components_)[seen]) / np.linalg.norm(X[seen])
    assert model.error_ == pytest.approx(error)
    filled = model.codes_ @ model.components_
    assert np.linalg.norm((filled - truth.data)[~seen]) < 0.5 * np.linalg.norm(truth.data[~seen])
    assert model.transform(X[:10]).shape == (10, 32)
    assert model.score(X[:50]) > -0.2


def test_missing_values_without_any_missing_change_nothing(small):
    plain, marked = quick().fit(small), quick(missing_values=np.nan).fit(small)
    assert np.array_equal(plain.components_, marked.components_)


# ------------------------------------------------------------------ scale, dtype, seeds, threads


@pytest.mark.parametrize("power", [-200, -20, 20, 200])
@pytest.mark.parametrize("form", ["constrained", "lasso", "inexact"])
def test_rescaling_by_a_power_of_two_is_exact(small, power, form):
    factor = 2.0**power
    plain, scaled = quick(formulation=form).fit(small), quick(formulation=form).fit(small * factor)
    assert np.array_equal(plain.components_, scaled.components_)
    assert np.array_equal(plain.codes_ * factor, scaled.codes_)
    assert scaled.objective_ == plain.objective_ * factor
    assert plain.n_iter_ == scaled.n_iter_


@pytest.mark.parametrize("power", [-20, 20])
def test_a_whole_fit_does_not_depend_on_the_unit_or_the_threads(truth, power):
    """Annealed runs are chaotic: a difference in the last bit would lead elsewhere."""
    plain = ROAD(32, random_state=3, n_jobs=1).fit(truth.data[:150])
    scaled = ROAD(32, random_state=3, n_jobs=2).fit(truth.data[:150] * 2.0**power)
    np.testing.assert_array_equal(plain.components_, scaled.components_)
    assert plain.n_iter_ == scaled.n_iter_


def test_rescaling_by_any_number(model, truth):
    scaled = ROAD(32, random_state=0).fit(truth.data * 1000)
    assert dictionary_error(scaled.components_, model.components_) < 1e-9, "another way, the same atoms"
    assert scaled.objective_ == pytest.approx(1000 * model.objective_)


def test_converged_is_exact_or_within_the_tolerance(model, truth):
    """A run that found an exact fit stops before its residuals are small; any other ends with small ones."""
    assert model.error_ < 1e-9
    assert np.median((model.codes_ != 0).sum(axis=1)) == 3
    noisy = ROAD(32, epsilon=0.2, n_init=1, random_state=0).fit(truth.data[:100])
    assert noisy.stop_reason_ == "converged"
    assert noisy.history_["primal"][-1] <= noisy.tol
    assert noisy.history_["dual"][-1] <= noisy.tol
    assert noisy.error_ == pytest.approx(0.2, abs=1e-3)
    assert noisy.error_ <= 0.2
    assert noisy.objective_ <= 1.01 * noisy.history_["objective"][-1], "the polish keeps what the bound allows"


def test_numeric_rho_is_the_papers(truth):
    """Ten times the data with a tenth of rho is the same run; the same rho is not."""
    first = ROAD(32, rho=8.0, max_iter=30, tol=0, random_state=0).fit(truth.data)
    same = ROAD(32, rho=1.0, max_iter=30, tol=0, random_state=0).fit(truth.data * 8)
    other = ROAD(32, rho=8.0, max_iter=30, tol=0, random_state=0).fit(truth.data * 8)
    np.testing.assert_allclose(first.components_, same.components_, atol=1e-9)
    assert np.abs(first.components_ - other.components_).max() > 1e-3


def test_float32_is_kept(small):
    model = quick().fit(small.astype(np.float32))
    assert (
        model.components_.dtype == model.codes_.dtype == model.transform(small.astype(np.float32)).dtype == np.float32
    )
    assert model.inverse_transform(model.codes_).dtype == np.float32


def test_same_seed_same_result_whatever_n_jobs(small):
    first, second, third = (quick(n_jobs=n).fit(small) for n in (1, 2, None))
    for other in (second, third):
        assert np.array_equal(first.components_, other.components_)
        assert np.array_equal(first.codes_, other.codes_)
    assert not np.array_equal(first.components_, quick(random_state=1).fit(small).components_)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState, np.random.SeedSequence])
def test_every_kind_of_random_state(small, kind):
    first, second = (quick(random_state=kind(4)).fit(small) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)


def test_fits_in_threads_of_the_user(small):
    expected = quick().fit(small).components_
    results = []
    threads = [threading.Thread(target=lambda: results.append(quick().fit(small).components_)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(expected, result) for result in results)


def test_engines_give_the_same_fit(small):
    fused, reference = quick(engine="numba").fit(small), quick(engine="reference").fit(small)
    np.testing.assert_allclose(fused.components_, reference.components_, atol=1e-9)
    np.testing.assert_allclose(fused.codes_, reference.codes_, atol=1e-9)


# ------------------------------------------------------------------ starts


def test_a_model_can_be_continued_from_its_own_atoms_and_codes(model, truth):
    again = ROAD(32, dict_init=model.components_, code_init=model.codes_, random_state=9).fit(truth.data)
    np.testing.assert_allclose(again.components_, model.components_, atol=1e-3)
    assert again.n_iter_ <= model.n_iter_


def test_dict_init_alone_is_honoured(truth):
    start = truth.dictionary + 0.02 * np.random.default_rng(0).standard_normal(truth.dictionary.shape)
    near = ROAD(32, dict_init=5 * start, random_state=0, max_iter=100, tol=0).fit(truth.data)
    far = ROAD(32, random_state=0, max_iter=100, tol=0).fit(truth.data)
    matched = np.abs(np.sum(near.components_ * truth.dictionary, axis=1))
    assert matched.min() > 0.99, "atoms stay in the order of dict_init"
    assert np.abs(np.sum(far.components_ * truth.dictionary, axis=1)).min() < 0.9


def test_code_init_alone_is_honoured(truth):
    near = ROAD(32, code_init=truth.codes, random_state=0, max_iter=100, tol=0).fit(truth.data)
    assert np.abs(np.sum(near.components_ * truth.dictionary, axis=1)).min() > 0.99


def test_code_init_with_an_unused_atom(truth):
    codes = truth.codes.copy()
    codes[:, 4] = 0
    model = ROAD(32, code_init=codes, random_state=0, max_iter=20, tol=0).fit(truth.data)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_several_starts_keep_the_smallest_objective(small):
    """Four starts given one by one, and the four that n_init draws from the same seed."""
    from roadict.road.start import starting_point
    from roadict.seeds import streams

    parameters = {"max_iter": 400, "tol": 0, "epsilon": 0.1, "rho": 12.0}
    best = quick(n_init=4, **parameters).fit(small)
    singles = []
    for rng in streams(0, 1, 4):
        dictionary, codes = starting_point(small, 12, None, None, rng)
        singles.append(quick(dict_init=dictionary, code_init=codes, **parameters).fit(small))
    allowed = [single.objective_ for single in singles if single.error_ <= 0.1 + 1e-3]
    assert len(allowed) > 1
    assert best.objective_ == pytest.approx(min(allowed), rel=1e-3)
    assert max(allowed) > 1.005 * min(allowed), "the starts differ"


def test_starts_go_on_until_two_agree():
    truth = planted(200, 16, 32, sparsity=3, random_state=12)
    begun = []
    model = ROAD(32, random_state=0, callback=lambda view: begun.append(1) if view.iteration == 1 else None)
    model.fit(truth.data)
    assert 2 <= len(begun) <= 6
    assert dictionary_error(model.components_, truth.dictionary) < 1e-2
    assert model.history_["rho"][0] < model.history_["rho"][-1] == model.rho_


def test_a_given_start_or_a_numeric_rho_runs_once_and_is_not_annealed(small):
    for parameters in ({"dict_init": np.eye(12, 8) + 0.1}, {"rho": 10.0}):
        begun = []

        def count(view, begun=begun):
            begun.append(view.iteration)

        model = quick(callback=count, **parameters).fit(small)
        assert len(set(model.history_["rho"])) == 1
        assert begun.count(1) == 1


# ------------------------------------------------------------------ stopping, telling


def test_run_that_has_not_converged_warns_and_says_by_how_much(small):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=5 .* primal residual \d.* \(tol=0.0001\)"):
        model = quick(max_iter=5, tol=1e-4).fit(small)
    assert model.stop_reason_ == "max_iter"


def test_tolerance_zero_runs_all_iterations_without_a_warning(small):
    assert quick(max_iter=7).fit(small).n_iter_ == 7


def test_callback_sees_the_run_and_can_stop_it(small):
    seen = []

    def callback(view):
        seen.append((view.iteration, view.objective, view.error, view.rho))
        assert view.dictionary.shape == (12, 8)
        assert view.codes.shape == (60, 12)
        for array in (view.dictionary, view.codes):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 1
        return view.iteration == 6

    model = quick(callback=callback).fit(1000 * small)
    assert model.stop_reason_ == "callback"
    assert [row[0] for row in seen] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([row[1] for row in seen], model.history_["objective"])
    np.testing.assert_allclose([row[3] for row in seen], model.history_["rho"])


def test_callback_that_returns_something_truthy_but_not_true_does_not_stop(small):
    assert quick(callback=lambda view: view).fit(small).n_iter_ == 40
    assert quick(callback=lambda view: np.bool_(view.iteration == 3)).fit(small).n_iter_ == 3


def test_the_same_seed_sequence_serves_twice(small):
    seeds = np.random.SeedSequence(5)
    first, second = (quick(random_state=seeds).fit(small) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)


@pytest.mark.parametrize("engine", ["numba", "reference"])
def test_numbers_that_overflow_end_the_run(small, engine):
    with pytest.warns(ConvergenceWarning, match="not finite"):
        model = quick(
            engine=engine, rho=1e-300, dict_init=np.eye(12, 8) + 1e-3, code_init=np.full((60, 12), 1e200)
        ).fit(small)
    assert model.stop_reason_ == "non-finite"
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.codes_).all()


def test_verbose_writes_plain_lines(small, capsys):
    quick(verbose=2, max_iter=3).fit(small)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "iteration 2/3" in captured.err
    assert "objective" in captured.err
    assert "left" in captured.err
    assert "\x1b" not in captured.err
    quick().fit(small)
    assert capsys.readouterr().err == ""


def test_history_turns_into_a_frame_and_a_plot(model):
    frame = model.history_.to_frame()
    assert list(frame.columns) == ["objective", "primal", "dual", "error", "rho", "seconds"]
    assert frame.index[0] == 1
    assert (np.diff(frame["seconds"]) >= 0).all()
    assert len(model.history_.plot().axes) >= 2


# ------------------------------------------------------------------ files, scikit-learn


def test_save_and_load_give_the_model_back(model, truth, tmp_path):
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


def test_model_file_holds_no_pickles(model, tmp_path):
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
    pipeline = make_pipeline(
        StandardScaler(), ROAD(max_iter=15, tol=0, random_state=0), LogisticRegression(max_iter=500)
    )
    search = GridSearchCV(pipeline, {"road__n_components": [8, 16]}, cv=2).fit(X, y[:150])
    assert search.best_score_ > 0.8
    alone = GridSearchCV(ROAD(random_state=0, max_iter=15, tol=0), {"n_components": [4, 16]}, cv=2).fit(X)
    assert alone.best_params_ == {"n_components": 16}
