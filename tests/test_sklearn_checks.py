"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from roadict import ROAD


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@parametrize_with_checks([ROAD(max_iter=50), ROAD(n_components=3, formulation="lasso", max_iter=50)])
def test_estimator_check(estimator, check):
    check(estimator)
    assert estimator.get_params()["max_iter"] == 50
