"""What the checks return for good values; tests/bad_input has the bad ones."""

from fractions import Fraction

import numpy as np
import pytest

from roadict import checks


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (checks.whole_number("n", np.int8(3)), 3),
        (checks.whole_number("n", 0, 0), 0),
        (checks.real_number("x", np.float32(0.5)), 0.5),
        (checks.real_number("x", Fraction(1, 4)), 0.25),
        (checks.real_number("x", 0, zero=True), 0.0),
        (checks.three_numbers("rho", 2), (2.0, 2.0, 2.0)),
        (checks.three_numbers("rho", np.array([1, 2, 3])), (1.0, 2.0, 3.0)),
    ],
)
def test_numbers_of_any_kind_become_those_of_python(found, expected):
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(found, tuple):
        assert {*map(type, found)} == {float}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int64, np.float64),
        (bool, np.float64),
        (np.float16, np.float64),
    ],
)
def test_matrices_become_floats_and_float32_stays(given, expected):
    value = np.eye(2, dtype=given)
    found = checks.matrix("dictionary", value)
    assert found.dtype == expected
    np.testing.assert_array_equal(found, value)
    found[0, 0] = 5
    assert value[0, 0] == 1, "what the user passed is not changed"


def test_missing_entries_are_split_off_without_touching_the_data():
    X = np.array([[1.0, np.nan], [3.0, 4.0]], np.float32)
    before = X.copy()
    data, observed = checks.split_missing(X, True)
    np.testing.assert_array_equal(data, [[1, 0], [3, 4]])
    np.testing.assert_array_equal(observed, [[True, False], [True, True]])
    np.testing.assert_array_equal(X, before)
    assert data.dtype == np.float32
    assert checks.split_missing(X[1:], True)[1] is None
