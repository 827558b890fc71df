"""Watching changes nothing: the same bits with and without callback, progress and checkpoint, on every engine."""

import hashlib
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from roadict import ROAD, AlternatingDictionaryLearning, Checkpoint, load
from roadict.synthetic import planted

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DATA = planted(40, 5, 6, sparsity=2, random_state=0).data


def digest(model):
    arrays = [model.components_, model.codes_, *(model.history_[name] for name in ("objective", "error"))]
    return model.n_iter_, model.stop_reason_, hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def watch(how, make, tmp_path, data=DATA):
    """Fit a model while somebody watches it in one way or another."""
    if how == "iterated":
        model = make()
        assert len([snapshot for snapshot in model.iter_fit(data) if snapshot.objective > 0]) >= model.n_iter_
        return model
    watching = {
        "unwatched": {},
        "callback": {"callback": lambda snapshot: None},
        "looking callback": {"callback": lambda snapshot: snapshot.codes.sum() > np.inf},
        "verbose 1": {"verbose": 1},
        "verbose 2": {"verbose": 2},
        "checkpoint": {"checkpoint": Checkpoint(tmp_path / "checkpoints", every=0)},
    }[how]
    return make(**watching).fit(data)


WAYS = ("callback", "looking callback", "verbose 1", "verbose 2", "checkpoint", "iterated")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("engine", ["reference", "numba"])
def test_road(engine, how, tmp_path, capsys):
    def make(**watching):
        return ROAD(6, engine=engine, max_iter=300, tol=1e-3, random_state=0, **watching)

    assert digest(watch(how, make, tmp_path)) == digest(make().fit(DATA))


SMALL = DATA[:20, :4]
"""Triton's interpreter takes a fifth of a second for an iteration."""
ON_A_GPU = {"engine": "cuda", "rho": 10.0, "epsilon": 0.5, "n_init": 1, "max_iter": 20, "tol": 0.3, "random_state": 0}


@pytest.fixture(scope="module")
def unwatched():
    pytest.importorskip("triton")
    return ROAD(3, **ON_A_GPU).fit(SMALL)


@pytest.mark.parametrize("how", WAYS)
def test_road_on_a_gpu(how, unwatched, tmp_path, capsys):
    """With a constant ρ a GPU carries out ten iterations at once; the run must not depend on who looks."""
    residuals = np.maximum(unwatched.history_["primal"], unwatched.history_["dual"])
    assert unwatched.n_iter_ == 10
    assert residuals[:9].min() <= 0.3, "who tests for convergence after every iteration ends earlier"
    assert digest(watch(how, partial(ROAD, 3, **ON_A_GPU), tmp_path, SMALL)) == digest(unwatched)


@pytest.mark.parametrize("how", WAYS)
def test_two_stage(how, tmp_path, capsys):
    def make(**watching):
        return AlternatingDictionaryLearning(6, n_nonzero_coefs=2, max_iter=20, random_state=0, **watching)

    assert digest(watch(how, make, tmp_path)) == digest(make().fit(DATA))


@pytest.mark.parametrize("engine", ["reference", "numba", "cuda"])
def test_the_program(engine, tmp_path, roadict):
    """With its progress, without it, and with checkpoints: the model of the library."""
    if engine == "cuda":
        pytest.importorskip("triton")
    np.save(tmp_path / "data.npy", SMALL)
    options = ("--engine", engine, "--seed", "0", "--rho", "10", "--epsilon", "0.5", "--max-iter", "20", "--tol", "0.3")
    ways = ((), ("--quiet",), ("--checkpoint", str(tmp_path / "checkpoints"), "--every", "0s"))
    found = []
    for index, way in enumerate(ways):
        output = tmp_path / f"model{index}.npz"
        result = roadict("learn", str(tmp_path / "data.npy"), "-k", "3", "-o", str(output), *options, *way)
        assert result.code == 0, result.err
        found.append(digest(load(output)))
    assert found == [digest(ROAD(3, **ON_A_GPU | {"engine": engine}).fit(SMALL))] * 3


@pytest.mark.parametrize("make", [partial(ROAD, 6), partial(AlternatingDictionaryLearning, 6, n_nonzero_coefs=2)])
def test_a_fit_that_is_left_early_leaves_the_model_as_it_was(make):
    unfitted, fitted = make(random_state=0), make(random_state=0, max_iter=3, tol=0).fit(DATA)
    for model in (unfitted, fitted):
        before = dict(vars(model))
        for _ in model.iter_fit(DATA[:, :4]):
            break
        assert vars(model) == before
    with pytest.raises(NotFittedError):
        unfitted.transform(DATA)
    assert fitted.transform(DATA).shape == (40, 6)


@pytest.mark.parametrize("make", [partial(ROAD, 6, n_init=1), partial(AlternatingDictionaryLearning, 6)])
def test_a_warning_that_is_an_error_leaves_the_model_as_it_was(make):
    unfitted, fitted = make(random_state=0, max_iter=2), make(random_state=0, max_iter=2, tol=0).fit(DATA)
    fitted.set_params(tol=1e-9)
    for model in (unfitted, fitted):
        before = dict(vars(model))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ConvergenceWarning):
                model.fit(DATA[:, :4])
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())


def test_a_snapshot_that_is_outdated_says_so():
    first, *_ = snapshots = list(ROAD(6, rho=10.0, n_init=1, max_iter=3, tol=0, random_state=0).iter_fit(DATA))
    assert [snapshot.iteration for snapshot in snapshots] == [1, 2, 3]
    for act in (lambda: first.dictionary, lambda: first.codes, first.stop):
        with pytest.raises(RuntimeError, match="of iteration 1, and the run has moved on"):
            act()
