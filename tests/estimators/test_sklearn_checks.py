"""scikit-learn's own checks of an estimator."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from roadict import ROAD, SparseCoder

COUNTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "starts are drawn from rows, in their order, so that copies lead to another start; from the same start weights "
        "are copies (test_sample_weight.py)"
    )
}


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@parametrize_with_checks(
    [ROAD(max_iter=50), ROAD(n_components=3, formulation="lasso", max_iter=50)],
    expected_failed_checks=lambda _: COUNTED,
)
def test_estimator_check(estimator, check):
    check(estimator)
    assert estimator.get_params()["max_iter"] == 50


REASON = "the check's samples have another number of features than the dictionary given at construction"
NOT_PERMITTED = dict.fromkeys(
    (
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_transformers_unfitted_stateless",
    ),
    REASON,
)


@parametrize_with_checks(
    [
        SparseCoder(np.random.default_rng(0).standard_normal((5, 3)), positive_code=positive)
        for positive in (False, True)
    ],
    expected_failed_checks=lambda _: NOT_PERMITTED,
)
def test_sparse_coder_check(estimator, check):
    check(estimator)


# What the skipped checks test, with a dictionary of matching size.


def test_sparse_coder_accepts_other_dtypes_and_read_only_data_and_leaves_its_parameters_unchanged():
    rng = np.random.default_rng(1)
    dictionary, X = rng.standard_normal((5, 3)), rng.integers(-9, 9, (6, 3))
    X.flags.writeable = dictionary.flags.writeable = False
    coder = SparseCoder(dictionary)
    assert coder.fit(X) is coder
    assert coder.n_features_in_ == 3
    assert coder.dictionary is dictionary
    expected = coder.transform(X.astype(np.float64))
    for other in (X, X.astype(object), X.astype(np.int8), X.tolist()):
        np.testing.assert_array_equal(SparseCoder(dictionary).transform(other), expected)
    np.testing.assert_array_equal(coder.fit(X).transform(X), expected)
    assert expected.dtype == np.float64
