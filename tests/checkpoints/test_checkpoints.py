"""Runs that are stopped and resumed end with the same model."""

import shutil
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import cross_val_score

from checkpointed_runs import CUTS, DATA, HOLES, assert_same, road, stopping
from roadict import ROAD, AlternatingDictionaryLearning, load
from roadict.checkpoints import storage
from roadict.checkpoints.schedule import Checkpoint, RunStoppedError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ROADS = {
    "exact": {"rho": 10.0},
    "ball": {"rho": 10.0, "epsilon": 0.1},
    "lasso": {"rho": 10.0, "formulation": "lasso"},
    "inexact": {"formulation": "inexact"},
    "missing": {"rho": 10.0, "missing_values": np.nan},
    "several starts": {"rho": 10.0, "n_init": 3, "max_iter": 30},
    "annealed, several starts": {"max_iter": 200, "n_init": 3},
    "reference": {"rho": 10.0, "engine": "reference", "max_iter": 40},
    "without a seed": {"rho": 10.0, "n_init": 2, "max_iter": 30, "random_state": None},
}
BRIEF = {"rho": 10.0, "n_init": 1, "max_iter": 12}
UPDATES = ("mod", "ksvd", "approximate-ksvd", "simco", "blotless", "sequential", "consistent-sequential")


def data_of(model):
    return HOLES if getattr(model, "missing_values", None) is not None else DATA


def stop_at(folder, model, moment, data=None):
    """Run until a stop; False if the fit ended before."""
    try:
        model.set_params(checkpoint=stopping(folder, moment)).fit(data_of(model) if data is None else data)
    except RunStoppedError:
        return True
    return False


@pytest.mark.parametrize("name", ROADS)
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, name):
    for moment in (1, 13, 14, 47, 95):
        folder = tmp_path / f"at {moment}"
        uninterrupted = road(**ROADS[name])
        if uninterrupted.random_state is None:  # the checkpoint stores the drawn seed
            assert stop_at(folder, road(**ROADS[name]), moment) is (moment < 60)
            if moment < 60:
                first, second = folder, tmp_path / f"copy {moment}"
                shutil.copytree(first, second)
                models = [road(**ROADS[name], checkpoint=copy).fit(DATA) for copy in (first, second)]
                assert_same(*models)
            continue
        stopped = stop_at(folder, road(**ROADS[name]), moment)
        assert stopped or moment > 20
        if stopped:
            resumed = road(**ROADS[name], checkpoint=folder).fit(data_of(uninterrupted))
            assert_same(resumed, uninterrupted.fit(data_of(uninterrupted)))


def test_the_exact_finish_is_not_tried_twice_at_the_same_residual(tmp_path, monkeypatch):
    """A resumed run tries it next at the next, smaller residual."""
    tried, tries_at = [], []

    def find_exact_fit(data, atoms, *rest, **constraints):
        tried.append(atoms.copy())

    monkeypatch.setattr("roadict.road.multistart.find_exact_fit", find_exact_fit)
    options = {"max_iter": 600, "n_init": 1, "callback": lambda snapshot: tries_at.append(len(tried))}
    uninterrupted = road(**options).fit(DATA)
    expected = tried.copy()
    assert len(expected) > 1
    moment = tries_at.index(1) + 3  # three iterations after the first try
    tried.clear()
    tries_at.clear()
    assert stop_at(tmp_path, road(**options), moment)
    assert len(tried) == 1
    assert_same(road(**options, checkpoint=tmp_path).fit(DATA), uninterrupted)
    np.testing.assert_array_equal(tried, expected)


@pytest.mark.parametrize("update", UPDATES)
def test_two_stage_runs_resume_too(tmp_path, update):
    def model(**more):
        return AlternatingDictionaryLearning(9, update=update, max_iter=30, tol=0, random_state=0, **more)

    uninterrupted = model().fit(DATA)
    for moment in (1, 12, 24, 25, 29):  # the last fifth continues from the best iteration
        folder = tmp_path / str(moment)
        assert stop_at(folder, model(), moment)
        resumed = model(checkpoint=folder).fit(DATA)
        np.testing.assert_array_equal(resumed.components_, uninterrupted.components_)
        np.testing.assert_array_equal(resumed.codes_, uninterrupted.codes_)
        assert (resumed.objective_, resumed.error_) == (uninterrupted.objective_, uninterrupted.error_)


def test_checkpoints_change_nothing_and_two_are_retained(tmp_path):
    model = road(rho=10.0, checkpoint=Checkpoint(tmp_path, every=0)).fit(DATA)
    assert_same(model, road(rho=10.0).fit(DATA))
    numbers = storage.numbers(tmp_path)
    assert len(numbers) == 2
    assert numbers[1] == numbers[0] + 1
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2 * 3
    again = road(rho=10.0, checkpoint=tmp_path).fit(DATA)  # nothing remains to be done
    assert_same(again, model)


@pytest.mark.parametrize("writers", [1, 2, 3])
def test_a_run_resumes_on_another_number_of_ranks(tmp_path, on_ranks, writers):
    for name in ("ball", "several starts", "missing"):
        data = HOLES if name == "missing" else DATA
        uninterrupted = road(**ROADS[name]).fit(data)
        folder = tmp_path / name
        parts = np.split(data, CUTS[writers])

        def stop(comm, folder=folder, parts=parts, name=name):
            return stop_at(folder, road(**ROADS[name]), 43 - comm.rank, parts[comm.rank])  # some rank is the first

        assert on_ranks(writers, stop) == [True] * writers
        for readers in (1, 2, 3):
            copy = tmp_path / f"{name} {readers}"
            shutil.copytree(folder, copy)
            shares = np.split(data, CUTS[readers])

            def resume(comm, copy=copy, shares=shares, name=name):
                return road(**ROADS[name], checkpoint=copy).fit(shares[comm.rank])

            models = on_ranks(readers, resume)
            np.testing.assert_allclose(models[0].components_, uninterrupted.components_, atol=1e-10)
            codes = np.concatenate([model.codes_ for model in models])
            np.testing.assert_allclose(codes, uninterrupted.codes_, atol=1e-9)
            assert models[0].n_iter_ == uninterrupted.n_iter_


def test_checkpoint_settings_are_not_saved_with_the_model(tmp_path):
    model = road(rho=10.0, max_iter=5, checkpoint=tmp_path / "checkpoints").fit(DATA)
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").checkpoint is None


def test_cross_validation_with_checkpoints_scores_as_without(tmp_path):
    scores = [
        cross_val_score(road(**BRIEF, checkpoint=checkpoint), DATA, cv=3, error_score="raise")
        for checkpoint in (None, Checkpoint(tmp_path, 0.0), Checkpoint(tmp_path, 0.0))
    ]
    np.testing.assert_array_equal(scores[1:], [scores[0]] * 2)


def test_parallel_cross_validation_never_scores_another_part(tmp_path):
    """In real processes: parts that find the folder in use are refused, all others scored as without checkpoints."""
    expected = cross_val_score(road(**BRIEF), DATA, cv=4, error_score="raise")
    model = road(**BRIEF, checkpoint=Checkpoint(tmp_path, 0.0), callback=lambda snapshot: time.sleep(0.1))
    for _ in range(2):  # the second time in a folder with checkpoints of one part
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FitFailedWarning)
            scores = cross_val_score(model, DATA, cv=4, n_jobs=2)
        refused = np.isnan(scores)
        assert not refused.all()
        np.testing.assert_array_equal(scores[~refused], expected[~refused])
        failures = [str(each.message) for each in caught if each.category is FitFailedWarning]
        assert len(failures) == refused.any()
        reasons = [line for text in failures for line in text.splitlines() if line.startswith("ValueError: ")]
        assert [reason for reason in reasons if "is in use by process" not in reason] == []
        assert len(reasons) >= len(failures)


@pytest.mark.parametrize("learner", [ROAD, AlternatingDictionaryLearning])
@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0)])
def test_a_refit_without_a_seed_is_a_new_fit(tmp_path, learner, random_state):
    model = learner(9, max_iter=5, tol=0, random_state=random_state, checkpoint=Checkpoint(tmp_path, 0.0))
    first, second = (model.fit(DATA).components_ for _ in range(2))
    assert not np.allclose(first, second)


def test_an_interrupted_fit_without_a_seed_resumes(tmp_path):
    with pytest.raises(RunStoppedError):
        road(random_state=None, checkpoint=stopping(tmp_path, 7)).fit(DATA)
    seen = []
    road(random_state=None, checkpoint=tmp_path, callback=lambda snapshot: seen.append(snapshot.iteration)).fit(DATA)
    assert seen[0] == 8


def test_a_finished_fit_with_a_seed_is_returned_again_and_gives_way_to_others(tmp_path):
    """Days of work are not lost if the model could not be saved."""
    settings = Checkpoint(tmp_path, 0.0)
    first = road(**BRIEF, checkpoint=settings).fit(DATA)
    seen = []
    again = road(**BRIEF, checkpoint=settings, callback=lambda snapshot: seen.append(snapshot.iteration)).fit(DATA)
    assert_same(first, again)
    assert len(seen) < first.n_iter_
    assert_same(road(**BRIEF, random_state=1, checkpoint=settings).fit(DATA), road(**BRIEF, random_state=1).fit(DATA))
