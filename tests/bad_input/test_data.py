"""Data that ROAD refuses, and the messages."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from .small import MISSING, M, N, X, changed, pattern, road

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (MISSING, pattern("NaN")),
        (changed((3, 2), np.inf), pattern("infinity in 1 place (first: row 3, column 2, counting from 0); remove")),
        (changed((3, 2), -np.inf), pattern("infinity in 1 place (first: row 3, column 2")),
        (np.zeros((0, M)), pattern("0 sample(s)")),
        (np.zeros((N, 0)), pattern("0 feature(s)")),
        (X[:1], pattern("1 sample(s)", "2")),
        (np.zeros((N, M)), pattern("all entries of X are zero")),
        (np.zeros((N, M), np.int64), pattern("all entries of X are zero")),
        (np.array([["a", "b"], ["c", "d"]], dtype=object), pattern("convert", "'a'")),
        (np.array([["1", "b"], ["2", "3"]]), pattern("convert", "b")),
        (np.array([[1.0, None], [2.0, 3.0]], dtype=object), pattern("NaN")),
        (X + 1j, pattern("Complex")),
        (X[0], pattern("2D")),
        (X.reshape(N, 3, 2), pattern("dim 3")),
        (3.0, pattern("2D")),
        (None, pattern("2D")),
        ([[1.0, 2.0], [3.0]], pattern("inhomogeneous")),
    ],
)
def test_data_that_is_not_a_matrix_of_finite_numbers(data, message):
    with pytest.raises(ValueError, match=message):
        road().fit(data)


def test_objects_that_are_not_numbers():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):  # the class that scikit-learn requires
        road().fit(np.array([[1.0, {}], [2.0, 3.0]], dtype=object))


def test_nan_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="missing_values"):
        road().fit(MISSING)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(7, np.nan, MISSING), pattern("no observed entry", "row 7")),
        (np.full((N, M), np.nan), pattern(f"{N} samples", "no observed entry", "row 0")),
        (changed((3, 2), np.inf, MISSING), pattern("infinity")),
        (np.where(np.isnan(MISSING), np.nan, 0), pattern("all entries of X are zero")),
    ],
)
def test_data_with_missing_entries(data, message):
    with pytest.raises(ValueError, match=message):
        road(missing_values=np.nan).fit(data)


def test_masked_arrays_are_missing_entries_or_refused():
    masked = np.ma.array(X, mask=np.random.default_rng(0).random(X.shape) < 0.1)
    with pytest.raises(ValueError, match=r"masked array.*missing_values=np.nan"):
        road().fit(masked)
    marked = road(missing_values=np.nan).fit(masked)
    assert np.array_equal(marked.components_, road(missing_values=np.nan).fit(masked.filled(np.nan)).components_)


@pytest.mark.parametrize(
    ("first", "message"), [(("f1", "f0"), "fixed_atoms[X.columns]"), (("g", "f1"), "as those of X")]
)
def test_known_atoms_of_other_columns(first, message):
    pd = pytest.importorskip("pandas")
    names = [f"f{i}" for i in range(M)]
    known = pd.DataFrame(np.eye(M)[:1], columns=[*first, *names[2:]])
    with pytest.raises(ValueError, match=pattern("column 0 of fixed_atoms is", "that of X is 'f0'", message)):
        road(fixed_atoms=known).fit(pd.DataFrame(X, columns=names))
    for fine in (known.to_numpy(), pd.DataFrame(np.eye(M)[:1], columns=names), pd.DataFrame(np.eye(M)[:1])):
        road(fixed_atoms=fine).fit(pd.DataFrame(X, columns=names))
