"""Shared by these tests: a small problem, a short fit, and what must hold for every model."""

import re

import numpy as np
import pytest

from roadict import ROAD
from roadict.synthetic import planted

N, M, K = 40, 6, 8
X = planted(N, M, K, sparsity=2, random_state=0).data
ATOMS = np.random.default_rng(1).standard_normal((K, M))
MISSING = np.where(np.random.default_rng(2).random((N, M)) < 0.2, np.nan, X)
MISSING[0, 0] = np.nan


def road(n_components=K, **parameters):
    return ROAD(n_components, **({"max_iter": 30, "random_state": 0} | parameters))


def changed(place, value, data=X):
    copy = data.copy()
    copy[place] = value
    return copy


def pattern(*pieces):
    """Return a pattern for a message that contains these pieces in this order."""
    return "(?s)" + ".*".join(map(re.escape, pieces))


def relative_error(data, model):
    residual = np.where(np.isnan(data), 0, data - model.codes_ @ model.components_)
    return np.linalg.norm(residual) / np.linalg.norm(np.nan_to_num(data))


def assert_sound(model, data):
    """Unit atoms with a positive largest entry, finite codes, and an error that is the error."""
    data = np.asarray(data)
    atoms = model.components_
    assert model.codes_.shape == (len(data), len(atoms))
    assert atoms.shape[1] == data.shape[1] == model.n_features_in_
    assert np.isfinite(model.codes_).all()
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-5)
    assert (atoms[np.arange(len(atoms)), np.abs(atoms).argmax(axis=1)] > 0).all()
    assert model.error_ == pytest.approx(relative_error(data.astype(np.float64), model), rel=1e-3, abs=1e-6)
    assert model.stop_reason_ in ("converged", "max_iter")
