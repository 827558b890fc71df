"""What is said of fits that were stopped: nothing that is not so."""

import numpy as np
import pytest

from roadict import ROAD, AlternatingDictionaryLearning
from roadict.estimators.doubts import unfinished
from roadict.synthetic import planted

NOISY = planted(200, 8, 16, sparsity=2, snr_db=20, random_state=0).data
HOLES = np.where(np.random.default_rng(0).random(NOISY.shape) < 0.35, np.nan, NOISY)


def stopped(model, X):
    """Stop a fit after three iterations, as Ctrl-C would."""
    model.set_params(callback=lambda snapshot: snapshot.iteration == 3, random_state=0).fit(X)
    model.stop_reason_ = "interrupted"
    return unfinished(model)


@pytest.mark.parametrize("update", ["mod", "ksvd"])
def test_a_given_number_of_coefficients_is_no_lack_of_sparsity(update):
    assert stopped(AlternatingDictionaryLearning(16, update=update, n_nonzero_coefs=6), NOISY) == ""


def test_a_noise_level_is_missing_only_where_it_was_to_be_found():
    assert "noise level not found yet" in stopped(ROAD(16), NOISY)
    assert "noise level" not in stopped(ROAD(16, epsilon=0.1), NOISY)
    assert "noise level" not in stopped(ROAD(16, missing_values=np.nan), HOLES)


def test_a_fit_that_ended_lacks_nothing():
    assert unfinished(ROAD(16, epsilon=0.1, n_init=1, random_state=0).fit(NOISY)) == ""
