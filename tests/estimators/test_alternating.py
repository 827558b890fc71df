"""AlternatingDictionaryLearning: the contract of ROAD, for every update and coder."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import roadict
from roadict import AlternatingDictionaryLearning, two_stage
from roadict.coders.registry import CODER_PARAMETERS
from roadict.kernels import Workers
from roadict.metrics import dictionary_error
from roadict.synthetic import planted
from roadict.two_stage import starting_atoms
from roadict.updates.registry import UPDATES

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)
TRUTH = planted(150, 8, 12, sparsity=2, snr_db=40, random_state=0)
X = TRUTH.data


def learner(**parameters):
    chosen = {"n_components": 12, "max_iter": 20, "tol": 0, "random_state": 0} | parameters
    if "sequential" not in str(chosen.get("update")) and chosen.get("coder") in (None, "omp"):
        chosen = {"n_nonzero_coefs": 2} | chosen
    return AlternatingDictionaryLearning(**chosen)


@parametrize_with_checks(
    [
        AlternatingDictionaryLearning(max_iter=5),
        AlternatingDictionaryLearning(n_components=3, update="sequential", max_iter=5),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)
    assert estimator.get_params()["max_iter"] == 5


@pytest.mark.parametrize("update", ["mod", "sequential"])
def test_a_fit_of_non_finite_numbers_returns_its_start_and_measures_it(monkeypatch, update):
    def overflowing(data, dictionary, codes, **others):
        return dictionary * np.nan, codes

    monkeypatch.setitem(UPDATES, update, replace(UPDATES[update], step=overflowing))
    model = learner(update=update, dict_init=TRUTH.dictionary).fit(X)
    assert model.stop_reason_ == "non-finite"
    np.testing.assert_allclose(np.abs((model.components_ * TRUTH.dictionary).sum(axis=1)), 1)
    misfit = np.linalg.norm(X - model.codes_ @ model.components_)
    assert model.error_ == pytest.approx(misfit / np.linalg.norm(X))
    objective = misfit if update == "mod" else np.abs(model.codes_).sum() + misfit**2 / (2 * model.alpha_)
    assert model.objective_ == pytest.approx(objective)


@pytest.mark.parametrize("update", UPDATES)
def test_attributes_mean_what_they_say(update):
    model = learner(update=update).fit(X)
    atoms, codes = model.components_, model.codes_
    assert (atoms.shape, codes.shape, model.n_features_in_) == ((12, 8), (150, 12), 8)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1)
    assert (atoms[np.arange(12), np.abs(atoms).argmax(axis=1)] > 0).all()
    misfit = np.linalg.norm(X - codes @ atoms)
    assert model.error_ == pytest.approx(misfit / np.linalg.norm(X))
    if update == "sequential":
        assert model.objective_ == pytest.approx(np.abs(codes).sum() + misfit**2 / (2 * model.alpha_))
    elif update != "consistent-sequential":
        assert model.objective_ == pytest.approx(misfit)
        assert (codes != 0).sum(axis=1).max() <= 2
        assert model.alpha_ is None
    assert model.history_["objective"][-1] == pytest.approx(model.objective_)
    np.testing.assert_allclose(model.atom_usage_, (codes != 0).mean(axis=0))
    assert (model.n_iter_, model.stop_reason_) == (20, "max_iter")
    assert len(model.history_["seconds"]) == 20
    assert model.error_ < 0.35
    model.history_.plot()


@pytest.mark.parametrize("coder", CODER_PARAMETERS)
def test_every_coder_can_be_combined_with_an_update(coder):
    model = learner(update="mod", coder=coder, max_iter=5).fit(X)
    assert np.isfinite(model.codes_).all()
    assert model.transform(X[:7]).shape == (7, 12)


@pytest.mark.parametrize("update", ["mod", "ksvd", "simco", "blotless", "sequential"])
def test_an_easy_planted_dictionary_is_found(update):
    truth = planted(500, 16, 20, sparsity=2, random_state=1)
    found = learner(n_components=20, update=update, max_iter=60).fit(truth.data).components_
    assert dictionary_error(found, truth.dictionary) < 0.06
    assert dictionary_error(starting_atoms(truth.data, 20, np.random.default_rng(0)), truth.dictionary) > 0.1


@pytest.mark.parametrize("update", UPDATES)
def test_the_objective_never_rises_while_refining(update):
    objective = learner(update=update, max_iter=50).fit(X).history_["objective"]
    first = 0 if update.endswith("sequential") else 40
    falls = objective[first:]
    assert (np.diff(falls) <= 1e-9 * falls[:-1]).all()
    assert objective[-1] == objective.min()
    if update in ("mod", "ksvd"):  # codes are accepted per sample: steps are rarely rejected
        assert (np.diff(falls) < 0).sum() >= 5


@pytest.mark.parametrize("update", ["blotless", "simco"])
def test_a_step_at_a_fixed_point_is_not_computed_again(update, monkeypatch):
    steps = []

    def count(*arguments, **named):
        steps.append(1)
        return UPDATES[f"plain {update}"].step(*arguments, **named)

    monkeypatch.setitem(UPDATES, f"plain {update}", UPDATES[update])
    monkeypatch.setitem(UPDATES, update, replace(UPDATES[update], step=count))
    models, numbers = [], []
    for same in (two_stage._same, lambda *_: False):
        monkeypatch.setattr(two_stage, "_same", same)
        models.append(learner(update=update, max_iter=100).fit(X))
        numbers.append(len(steps))
        steps.clear()
    assert numbers[0] < numbers[1] == models[0].n_iter_ == models[1].n_iter_ == 100
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    for name in ("objective", "code_change", "atom_change"):
        np.testing.assert_array_equal(models[0].history_[name], models[1].history_[name])


def test_a_run_at_a_fixed_point_goes_on_from_the_state_that_is_restored():
    def run():
        code = two_stage._coding_stage("omp", 8, 2, None, False, Workers(1))
        chosen = {"update": UPDATES["blotless"], "code": code, "codes": np.zeros((150, 12)), "alpha": 0.0}
        atoms = starting_atoms(X, 12, np.random.default_rng(0))
        return two_stage.Alternation(X, atoms, arguments={}, constraints={}, max_iter=1000, **chosen)

    moved, fresh = run(), run()
    early = moved.state()
    while (changes := moved.step()).atom_change > 0 or changes.code_change > 0:
        pass
    moved.restore(early)
    assert moved.step() == fresh.step()


def test_runs_converge_or_warn():
    model = learner(max_iter=400, tol=1e-3).fit(X)
    assert model.stop_reason_ == "converged"
    assert model.history_["code_change"][-1] <= 1e-3
    assert model.history_["atom_change"][-1] <= 1e-3
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .*tol=1e-09.*larger max_iter"):
        learner(max_iter=2, tol=1e-9).fit(X)


def test_initial_atoms_are_mutually_dissimilar_samples():
    atoms = starting_atoms(X, 12, np.random.default_rng(0))
    samples = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose((atoms @ samples.T).max(axis=1), 1)

    def coherence(rows):
        return np.sort(np.abs(rows @ rows.T - np.eye(12)).max(axis=1)).mean()

    plain = [coherence(samples[np.random.default_rng(seed).permutation(150)[:12]]) for seed in range(20)]
    spread = [coherence(starting_atoms(X, 12, np.random.default_rng(seed))) for seed in range(20)]
    assert np.mean(spread) < np.mean(plain) - 0.05
    more = starting_atoms(X[:3], 12, np.random.default_rng(0))  # Gaussian directions for the rest
    np.testing.assert_allclose(np.linalg.norm(more, axis=1), 1)


def test_a_run_starts_from_dict_init():
    seen = []
    learner(dict_init=3 * TRUTH.dictionary, max_iter=1, callback=lambda s: seen.append(s.error)).fit(X)
    assert seen[0] < 0.1
    learner(max_iter=1, callback=lambda s: seen.append(s.error)).fit(X)
    assert seen[1] > 2 * seen[0]


@pytest.mark.parametrize("update", UPDATES)
def test_threads_do_not_change_a_result(update, monkeypatch):
    monkeypatch.setattr("roadict.two_stage.MIN_PARALLEL_WORK", 0)
    one, two = (learner(update=update, n_jobs=jobs, max_iter=8).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.codes_, two.codes_)


@pytest.mark.parametrize("update", UPDATES)
def test_scale_and_dtype_follow_the_data(update):
    model = learner(update=update, max_iter=8).fit(X)
    scaled = learner(update=update, max_iter=8).fit(X * 2.0**40)
    np.testing.assert_array_equal(scaled.components_, model.components_)
    np.testing.assert_array_equal(scaled.codes_, model.codes_ * 2.0**40)
    assert scaled.objective_ == pytest.approx(model.objective_ * 2.0**40)
    narrow = learner(update=update, max_iter=8).fit(X.astype(np.float32))
    assert {narrow.components_.dtype, narrow.codes_.dtype, narrow.transform(X[:3].astype(np.float32)).dtype} == {
        np.dtype(np.float32)
    }


def test_transform_codes_by_the_coder_of_the_fit():
    model = learner(max_iter=40).fit(X)
    codes = model.transform(X[:20])
    assert (codes != 0).sum(axis=1).max() <= 2
    back = model.inverse_transform(codes)
    assert model.score(X[:20]) == pytest.approx(-np.linalg.norm(X[:20] - back) / np.linalg.norm(X[:20]))
    lasso = learner(update="sequential", alpha=0.2).fit(X)
    assert lasso.alpha_ == pytest.approx(0.2)
    gradient = (X - lasso.transform(X) @ lasso.components_) @ lasso.components_.T
    assert np.abs(gradient).max() <= 0.2 * 1.01  # the optimality condition of the Lasso


def test_callbacks_observe_the_run_and_may_end_it():
    seen = []

    def callback(snapshot):
        seen.append((snapshot.iteration, snapshot.max_iter, snapshot.dictionary.shape, snapshot.codes.shape))
        misfit = np.linalg.norm(X - snapshot.codes @ snapshot.dictionary) / np.linalg.norm(X)
        assert snapshot.error == pytest.approx(misfit)
        with pytest.raises(ValueError, match="read-only"):
            snapshot.dictionary[0] = 0
        return snapshot.iteration == 12

    model = learner(callback=callback).fit(X)
    assert (model.stop_reason_, model.n_iter_) == ("callback", 12)
    assert seen == [(i, 20, (12, 8), (150, 12)) for i in range(1, 13)]


def test_progress_goes_to_standard_error(capsys):
    learner(verbose=2, max_iter=3).fit(X)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(" 33 %  ")
    assert "  iteration 1  objective" in lines[0]
    assert lines[-1].startswith("max_iter after 3 iterations")


@pytest.mark.parametrize("update", ["ksvd", "sequential"])
def test_saved_models_can_be_loaded(update, tmp_path):
    model = learner(update=update).fit(X)
    model.save(tmp_path / "model.npz")
    again = roadict.load(tmp_path / "model.npz")
    assert type(again) is AlternatingDictionaryLearning
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    for name in ("codes_", "atom_usage_", "alpha_", "error_", "objective_", "n_iter_", "stop_reason_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.history_["error"], model.history_["error"])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    assert clone(model).get_params() == model.get_params()


# ---- invalid input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n_components", value) for value in (0, -3, 8.0, True, "8", np.nan)),
        *(("max_iter", value) for value in (0, -1, 10.0, True, None)),
        *(("tol", value) for value in (-1e-4, np.nan, np.inf, "small", None)),
        *(("n_jobs", value) for value in (0, 1.5, "all")),
        *(("update", value) for value in ("svd", "", None, ["mod"])),
        *(("coder", value) for value in ("lars", "", 3)),
        *(("n_nonzero_coefs", value) for value in (0, -1, 1.5, True, "2")),
        *(("alpha", value) for value in (0, -1, np.nan, "x", True)),
        *(("ridge", value) for value in (-1, np.nan, np.inf, "x")),
        ("callback", 3),
        *(("random_state", value) for value in (-1, 1.5, "x")),
        *(("verbose", value) for value in (-1, 0.5, "x", None)),
    ],
)
def test_errors_name_parameters_out_of_range_and_their_value(name, value):
    update = {"alpha": "sequential", "ridge": "simco"}.get(name, "ksvd")
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
        learner(**{"update": update} | {name: value}).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.1}, r"alpha=0.1 is not used by update=\"ksvd\" with coder='omp'; leave it out"),
        ({"ridge": 0.1}, r"ridge=0.1 is not used"),
        ({"coder": "lasso", "n_nonzero_coefs": 3}, r"n_nonzero_coefs=3 is not used .*coder='lasso'"),
        ({"update": "sequential", "n_nonzero_coefs": 3}, r"n_nonzero_coefs=3 is not used .*coder=None"),
        ({"dict_init": np.eye(8)}, r"dict_init has shape \(8, 8\).*\(12, 8\)"),
        ({"dict_init": np.zeros((12, 8))}, r"dict_init has 12 zero rows"),
    ],
)
def test_inconsistent_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        learner(**parameters).fit(X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.where(np.arange(8) == 3, np.nan, X), r"NaN in 150 places \(first: row 0, column 3, counting from 0.*ROAD"),
        (np.where(np.arange(8) == 3, np.inf, X), "infinity"),
        (np.zeros((150, 8)), "all entries of X are zero"),
        (np.zeros((0, 8)), r"0 sample\(s\)"),
        (X[:1], r"1 sample\(s\)"),
        (X[0], "2D"),
        (X + 1j, "Complex"),
        (X * 1e307, "might overflow"),
        (np.ma.masked_array(X, X > 2), "masked array"),
    ],
)
def test_invalid_data_are_rejected(data, message):
    with pytest.raises(ValueError, match=message):
        learner().fit(data)


def test_unfitted_models_raise(tmp_path):
    for call in ("transform", "score", "inverse_transform", "save"):
        with pytest.raises(NotFittedError):
            getattr(learner(), call)(X if call != "save" else tmp_path / "model.npz")


@pytest.mark.parametrize("update", UPDATES)
def test_degenerate_data(update):
    rng = np.random.default_rng(0)
    doubled = np.repeat(X[:10], 5, axis=0)
    for data, n_components in (
        (X[:5], 20),  # more atoms than samples
        (X[:, :1], 4),  # one feature
        (doubled, 12),
        (np.vstack([X, np.zeros((5, 8))]), 12),
        (rng.integers(0, 5, (30, 4)), 6),
        (np.outer(np.ones(9), X[0]), 3),  # rank one
        (X * 1e-200, 12),
        (X * 1e200, 12),
    ):
        model = learner(update=update, n_components=n_components, max_iter=6).fit(data)
        assert np.isfinite(model.codes_).all()
        assert model.stop_reason_ == "max_iter"
        assert model.error_ <= 1 + 1e-9
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
