"""What the estimators share."""

import warnings

import pytest

from roadict import ROAD, AlternatingDictionaryLearning
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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
