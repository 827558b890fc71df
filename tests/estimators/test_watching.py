"""Observers do not affect a fit: bit-identical with and without callback, progress and checkpoint, on every engine."""

import hashlib

import numpy as np
import pytest

from roadict import ROAD, AlternatingDictionaryLearning, Checkpoint, load
from roadict.synthetic import planted

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DATA = planted(40, 5, 6, sparsity=2, random_state=0).data


def digest(model):
    arrays = [model.components_, model.codes_, *(model.history_[name] for name in ("objective", "error"))]
    return model.n_iter_, model.stop_reason_, hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def watch(observer, make, tmp_path):
    """Fit a model with one kind of observer."""
    if observer == "iterated":
        model = make()
        assert len([snapshot for snapshot in model.iter_fit(DATA) if snapshot.objective > 0]) >= model.n_iter_
        return model
    watching = {
        "unwatched": {},
        "callback": {"callback": lambda snapshot: None},
        "reading callback": {"callback": lambda snapshot: snapshot.codes.sum() > np.inf},
        "verbose 1": {"verbose": 1},
        "verbose 2": {"verbose": 2},
        "checkpoint": {"checkpoint": Checkpoint(tmp_path / "checkpoints", every=0)},
    }[observer]
    return make(**watching).fit(DATA)


OBSERVERS = ("callback", "reading callback", "verbose 1", "verbose 2", "checkpoint", "iterated")


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("engine", ["reference", "numba"])
def test_road(engine, observer, tmp_path, capsys):
    def make(**watching):
        return ROAD(6, engine=engine, max_iter=300, tol=1e-3, random_state=0, **watching)

    assert digest(watch(observer, make, tmp_path)) == digest(make().fit(DATA))


@pytest.mark.parametrize("observer", OBSERVERS)
def test_road_on_a_gpu(observer, tmp_path, capsys):
    """With a constant ρ a GPU carries out several iterations at a time; the result must not depend on observers."""
    pytest.importorskip("triton")

    def make(**watching):
        return ROAD(6, engine="cuda", rho=10.0, epsilon=0.3, n_init=2, max_iter=60, tol=0.3, random_state=0, **watching)

    expected = make().fit(DATA)
    assert expected.stop_reason_ == "converged"
    watched = watch(observer, make, tmp_path)
    assert digest(watched) == digest(expected)
    assert watched.n_iter_ % 10 == 0


@pytest.mark.parametrize("observer", OBSERVERS)
def test_two_stage(observer, tmp_path, capsys):
    def make(**watching):
        return AlternatingDictionaryLearning(6, n_nonzero_coefs=2, max_iter=20, random_state=0, **watching)

    assert digest(watch(observer, make, tmp_path)) == digest(make().fit(DATA))


@pytest.mark.parametrize("engine", ["reference", "numba", "cuda"])
def test_the_program(engine, tmp_path, roadict):
    """With progress, without it, and with checkpoints: the model of the library."""
    if engine == "cuda":
        pytest.importorskip("triton")
    np.save(tmp_path / "data.npy", DATA)
    options = ("--engine", engine, "--seed", "0", "--rho", "10", "--epsilon", "0.3", "--max-iter", "60", "--tol", "0.3")
    ways = ((), ("--quiet",), ("--checkpoint", str(tmp_path / "checkpoints"), "--every", "0s"))
    found = []
    for index, way in enumerate(ways):
        output = tmp_path / f"model{index}.npz"
        result = roadict("learn", str(tmp_path / "data.npy"), "-k", "6", "-o", str(output), *options, *way)
        assert result.code == 0, result.err
        found.append(digest(load(output)))
    model = ROAD(6, engine=engine, rho=10.0, epsilon=0.3, max_iter=60, tol=0.3, random_state=0).fit(DATA)
    assert found == [digest(model)] * 3
