import numpy as np
import pytest

import browser
from roadict.road.formulation import Problem, constrained, inexact, lasso
from roadict.road.start import starting_point
from roadict.synthetic import planted


@pytest.fixture
def make_problem():
    """Build a (problem, dictionary, codes) triple of any form, shape and share of missing entries."""

    def make(form, shape=(16, 32, 300), missing=0.0, dtype=np.float64, rho=10.0, seed=0):
        n_features, n_components, n_samples = shape
        data = planted(n_samples, n_features, n_components, sparsity=3, random_state=seed).data.astype(dtype)
        observed = None
        if missing:
            observed = np.random.default_rng(seed + 1).random(data.shape) >= missing
            observed[~observed.any(axis=1), 0] = True
            data = np.where(observed, data, 0).astype(dtype)
        formulation = {
            "exact": constrained(0.0),
            "ball": constrained(0.3 * float(np.linalg.norm(data))),
            "lasso": lasso(5.0),
            "inexact-one": inexact((300.0, 300.0, 300.0)),
            "inexact-three": inexact((200.0, 300.0, 250.0)),
        }[form]
        rhos = {"inexact-one": (310.0,) * 3, "inexact-three": (210.0, 310.0, 260.0)}.get(form, (rho,) * 3)
        start = starting_point(data, n_components, None, None, np.random.default_rng(seed + 2))
        return Problem(data, observed, formulation, rhos), *start

    return make


@pytest.fixture(scope="session")
def chromium():
    """Give a Chromium to open pages in; one for all tests, as its start takes a second or two."""
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.browser() as opened:
        yield opened
