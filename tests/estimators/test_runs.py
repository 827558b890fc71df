"""ROAD as an estimator: scale, dtype, seeds, threads, starts, stopping and reporting."""

import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD, checks
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

from .conftest import quick

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
def test_a_complete_fit_does_not_depend_on_the_unit_or_the_threads(truth, power):
    """Annealed runs are chaotic: a difference in the last bit would lead elsewhere."""
    plain = ROAD(32, random_state=3, n_jobs=1).fit(truth.data[:150])
    scaled = ROAD(32, random_state=3, n_jobs=2).fit(truth.data[:150] * 2.0**power)
    np.testing.assert_array_equal(plain.components_, scaled.components_)
    assert plain.n_iter_ == scaled.n_iter_


def test_rescaling_by_any_number(model, truth):
    scaled = ROAD(32, random_state=0).fit(truth.data * 1000)
    assert dictionary_error(scaled.components_, model.components_) < 1e-9, "another path, the same atoms"
    assert scaled.objective_ == pytest.approx(1000 * model.objective_)


def test_converged_is_exact_or_within_the_tolerance(model, truth):
    """A run that found an exact fit stops before its residuals are small; a descent ends where it is stationary."""
    assert model.error_ < 1e-9
    assert np.median((model.codes_ != 0).sum(axis=1)) == 3
    noisy = ROAD(32, epsilon=0.2, n_init=1, random_state=0).fit(truth.data[:100])
    assert noisy.stop_reason_ == "converged"
    assert noisy.history_["stationarity"][-1] <= 10 * noisy.tol
    assert noisy.error_ == pytest.approx(0.2, abs=1e-3)
    assert noisy.error_ <= 0.2
    assert noisy.objective_ <= 1.01 * noisy.history_["objective"][-1], "the polish discards only what the bound allows"


def test_numeric_rho_is_the_papers(truth):
    """Ten times the data with a tenth of rho is the same run; the same rho is not."""
    first = ROAD(32, rho=8.0, max_iter=30, tol=0, random_state=0).fit(truth.data)
    same = ROAD(32, rho=1.0, max_iter=30, tol=0, random_state=0).fit(truth.data * 8)
    other = ROAD(32, rho=8.0, max_iter=30, tol=0, random_state=0).fit(truth.data * 8)
    np.testing.assert_allclose(first.components_, same.components_, atol=1e-9)
    assert np.abs(first.components_ - other.components_).max() > 1e-3


def test_float32_is_preserved(small):
    model = quick().fit(small.astype(np.float32))
    assert (
        model.components_.dtype == model.codes_.dtype == model.transform(small.astype(np.float32)).dtype == np.float32
    )
    assert model.inverse_transform(model.codes_).dtype == np.float32


def test_same_seed_gives_same_result_for_any_n_jobs(small):
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
    elsewhere = ROAD(32, dict_init=truth.data[:32], random_state=9).fit(truth.data)
    assert again.n_iter_ < elsewhere.n_iter_


def test_dict_init_alone_is_used(truth):
    start = truth.dictionary + 0.02 * np.random.default_rng(0).standard_normal(truth.dictionary.shape)
    near = ROAD(32, dict_init=5 * start, random_state=0, max_iter=100, tol=0).fit(truth.data)
    far = ROAD(32, random_state=0, max_iter=100, tol=0).fit(truth.data)
    matched = np.abs(np.sum(near.components_ * truth.dictionary, axis=1))
    assert matched.min() > 0.99, "atoms stay in the order of dict_init"
    assert np.abs(np.sum(far.components_ * truth.dictionary, axis=1)).min() < 0.9


def test_code_init_alone_is_used(truth):
    near = ROAD(32, code_init=truth.codes, random_state=0, max_iter=100, tol=0).fit(truth.data)
    assert np.abs(np.sum(near.components_ * truth.dictionary, axis=1)).min() > 0.99


def test_code_init_with_an_unused_atom(truth):
    codes = truth.codes.copy()
    codes[:, 4] = 0
    model = ROAD(32, code_init=codes, random_state=0, max_iter=20, tol=0).fit(truth.data)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)


def test_of_several_starts_the_smallest_objective_is_returned(small):
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
    assert best.objective_ <= 1.001 * min(allowed), (
        "several starts descend, a single one is the paper's plain iteration"
    )
    assert max(allowed) > 1.005 * min(allowed), "the starts differ"


def test_starts_continue_until_two_agree():
    truth = planted(200, 16, 32, sparsity=3, random_state=12)
    started = []
    model = ROAD(32, random_state=0, callback=lambda view: started.append(1) if view.iteration == 1 else None)
    model.fit(truth.data)
    assert 2 <= len(started) <= 6
    assert dictionary_error(model.components_, truth.dictionary) < 1e-2
    assert len(set(model.history_["rho"])) > 1, "it is annealed"
    assert model.history_["rho"][-1] == model.rho_


def test_a_given_start_or_a_numeric_rho_runs_once_and_is_not_annealed(small):
    for parameters in ({"dict_init": np.eye(12, 8) + 0.1}, {"rho": 10.0}):
        started = []

        def count(view, started=started):
            started.append(view.iteration)

        model = quick(callback=count, **parameters).fit(small)
        assert len(set(model.history_["rho"])) == 1
        assert started.count(1) == 1


# ------------------------------------------------------------------ stopping, reporting


def test_run_that_has_not_converged_warns_with_its_residuals(small):
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


def test_any_true_value_of_a_callback_stops_and_no_other(small):
    for false in (None, 0, "", np.zeros(1), np.ones((2, 3))):
        assert quick(callback=lambda view, false=false: false).fit(small).n_iter_ == 40
    for true in (1, "stop", np.True_, np.array([True]), np.float64(2)):
        assert quick(callback=lambda view, true=true: view.iteration == 3 and true).fit(small).n_iter_ == 3


def test_a_seed_sequence_can_be_reused(small):
    seeds = np.random.SeedSequence(5)
    first, second = (quick(random_state=seeds).fit(small) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)


@pytest.mark.parametrize("engine", ["numba", "reference"])
def test_overflow_ends_the_run(small, engine, monkeypatch):
    monkeypatch.setattr(checks, "code_range", lambda codes: None)  # which refuses such a start
    with pytest.warns(ConvergenceWarning, match="non-finite"):
        model = quick(
            engine=engine, rho=1e-300, dict_init=np.eye(12, 8) + 1e-3, code_init=np.full((60, 12), 1e200)
        ).fit(small)
    assert model.stop_reason_ == "non-finite"
    assert (model.n_starts_, model.n_starts_agreed_) == (1, 1)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.codes_).all()


def test_verbose_writes_plain_lines(small, capsys):
    quick(verbose=2, max_iter=3).fit(small)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "iteration 2 " in captured.err
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
