"""Recovery as claimed in the paper, on fresh trials with independent seeds for data and starts."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

TRIALS = range(20)
SIZE = {"n_features": 16, "n_components": 32, "sparsity": 3}

pytestmark = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")


def recovery(trial, truth, **parameters):
    model = ROAD(32, random_state=trial, **parameters).fit(truth.data)
    return dictionary_error(model.components_, truth.dictionary)


def test_papers_settings_recover_at_400_samples():
    truths = [planted(400, **SIZE, random_state=700 + trial) for trial in TRIALS]
    errors = [recovery(trial, truth, rho=10, max_iter=300, tol=0) for trial, truth in enumerate(truths)]
    assert np.mean(errors) < 0.01, errors


def test_noise_bound_helps_at_30_db():
    trials = TRIALS[:3]
    truths = [planted(400, **SIZE, snr_db=30, random_state=800 + trial) for trial in trials]
    epsilons = [float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data)) for truth in truths]
    bounded = [recovery(i, truths[i], epsilon=epsilons[i], n_init=1) for i in trials]
    exact = [recovery(i, truths[i], epsilon=0, n_init=1) for i in trials]
    assert np.median(bounded) < np.median(exact)


def test_a_fifth_of_the_entries_may_be_missing_and_are_filled_in():
    """Of 24 trials one missed an atom; what is filled in has a relative error of 0.27, with a deviation of 0.04."""
    errors, filled = [], []
    for trial in TRIALS[:6]:
        truth = planted(500, **SIZE, random_state=900 + trial)
        seen = np.random.default_rng([trial, 1]).random(truth.data.shape) >= 0.2
        model = ROAD(32, random_state=trial, missing_values=np.nan, rho=10, max_iter=600, n_init=1)
        model.fit(np.where(seen, truth.data, np.nan))
        errors.append(dictionary_error(model.components_, truth.dictionary))
        missed = (model.codes_ @ model.components_ - truth.data)[~seen]
        filled.append(np.linalg.norm(missed) / np.linalg.norm(truth.data[~seen]))
    assert np.median(errors) < 0.01, errors
    assert np.median(filled) < 0.4, filled


def test_inexact_form_is_far_slower_than_the_exact_one():
    """The paper's Figure 1. Eight trials gave medians of 0.23 and 0.17, each with a deviation of 0.02, and of 4e-5."""
    papers = {"formulation": "inexact", "beta": (200, 300, 250), "rho": (210, 310, 260), "max_iter": 1000, "tol": 0}
    errors = {300: [], 1000: [], "exact": []}
    for trial in TRIALS[:8]:
        truth = planted(300, **SIZE, random_state=1000 + trial)

        def callback(view, truth=truth):
            if view.iteration in errors:
                errors[view.iteration].append(dictionary_error(view.dictionary, truth.dictionary))

        recovery(trial, truth, callback=callback, **papers)
        errors["exact"].append(recovery(trial, truth, rho=10, max_iter=300, tol=0))
    medians = {when: np.median(found) for when, found in errors.items()}
    assert medians["exact"] < 1e-3, errors
    assert 0.1 < medians[1000] < 0.9 * medians[300], errors


def test_inexact_form_stops_as_in_the_paper():
    """Its dual residual is that of the slacks: by that of C it would stop after 360 iterations, at an error of 0.2."""
    truth = planted(300, **SIZE, random_state=90_001)
    model = ROAD(32, formulation="inexact", tol=1e-3, random_state=90_001).fit(truth.data)
    assert model.stop_reason_ == "converged"
    assert 3000 < model.n_iter_ < 8000
    assert dictionary_error(model.components_, truth.dictionary) < 0.05


def test_defaults_recover_from_half_the_samples():
    """Nine trials of ten do (benchmarks/RESULTS.md), and a third of those with one start or with a constant ρ."""
    truths = [planted(150, **SIZE, random_state=1100 + trial) for trial in TRIALS[:6]]
    errors = [recovery(trial, truth) for trial, truth in enumerate(truths)]
    assert np.median(errors) < 0.01, errors


@pytest.mark.parametrize(("n_features", "n_components"), [(16, 8), (16, 16), (8, 64)])
def test_every_shape_converges(n_features, n_components):
    """Fewer atoms than features, where the error stays above a floor, and eight times as many."""
    truth = planted(250, n_features, max(n_components, 32), sparsity=2, random_state=1200)
    model = ROAD(n_components, random_state=0, n_init=1).fit(truth.data)
    assert model.stop_reason_ == "converged"
    assert model.error_ <= model.epsilon_ + 10 * model.tol


@pytest.mark.parametrize("seed", [1300, 97_300, 97_302])
def test_runs_on_samples_of_very_unequal_norms_converge(seed):
    truth = planted(250, **SIZE, random_state=seed)
    sizes = np.exp(2 * np.random.default_rng(seed + 1).standard_normal((250, 1)))
    model = ROAD(32, random_state=0, n_init=1).fit(truth.data * sizes)
    assert model.stop_reason_ == "converged"
    assert model.error_ <= 10 * model.tol
