"""What the estimators share."""

import errno
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from roadict import ROAD, AlternatingDictionaryLearning, Checkpoint, SparseCoder
from roadict.coders import registry
from roadict.synthetic import planted

DATA = planted(60, 6, 8, sparsity=2, random_state=0).data


@pytest.mark.parametrize(
    "model",
    [
        ROAD(8, max_iter=2, n_init=1, random_state=0),
        ROAD(8, formulation="inexact", beta=20.0, rho=21.0, max_iter=2, tol=0, random_state=0),
        AlternatingDictionaryLearning(8, n_nonzero_coefs=2, max_iter=2, random_state=0),
    ],
    ids=["not converged", "penalties", "two-stage"],
)
@pytest.mark.parametrize("fit", [lambda model: model.fit(DATA), lambda model: list(model.iter_fit(DATA))])
def test_warnings_name_the_line_of_the_user(model, fit):
    assert_warns_here(lambda: fit(model))


def assert_warns_here(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("coder", [SparseCoder(np.eye(6), algorithm="lasso"), ROAD(6, max_iter=2, tol=0, n_init=1)])
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_warnings_of_coders_name_it(coder, output, monkeypatch):
    monkeypatch.setattr(registry, "lasso", lambda problem, *others: (np.zeros((len(problem.data), 6)), 1))
    coder = clone(coder).set_output(transform=output).fit(DATA)
    assert_warns_here(lambda: coder.transform(DATA))
    assert_warns_here(lambda: make_pipeline(coder).transform(DATA))


def test_warnings_of_checkpoints_name_it(tmp_path, monkeypatch):
    def full(*arguments):
        return "No space left on device"

    model = ROAD(8, max_iter=3, tol=0, n_init=1, checkpoint=Checkpoint(tmp_path, every=0), random_state=0).fit(DATA)
    for path in sorted(tmp_path.glob("*.bin"))[-1:]:
        path.write_bytes(b"damaged")
    assert_warns_here(lambda: model.fit(DATA))
    monkeypatch.setattr("roadict.checkpoints.storage.write", full)
    assert_warns_here(lambda: model.set_params(checkpoint=Checkpoint(tmp_path / "other", every=0)).fit(DATA))


def test_a_warning_of_a_lock_names_it(tmp_path, monkeypatch):
    def refuse(*arguments, **others):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("roadict.checkpoints.lock.FileLock.acquire", refuse)
    assert_warns_here(lambda: ROAD(8, max_iter=3, tol=0, n_init=1, checkpoint=tmp_path, random_state=0).fit(DATA))
