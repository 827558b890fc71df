"""Parameters and starts that ROAD refuses, and the messages."""

import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from .small import ATOMS, MISSING, K, M, N, X, assert_sound, changed, pattern, road

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n_components", value) for value in (0, -3, 8.0, True, "8", np.nan)),
        *(("max_iter", value) for value in (0, -1, 10.0, True, "many")),
        *(("tol", value) for value in (-1e-4, np.nan, np.inf, "small", None)),
        *(("n_init", value) for value in (0, -1, 2.0)),
        *(("n_jobs", value) for value in (0, 1.5, "all")),
        *(("epsilon", value) for value in (-0.1, 1, 1.5, np.nan, np.inf, "big", None, [0.1], True)),
        *(("rho", value) for value in (0, -1, np.nan, np.inf, "big", None, (1, 2), (1, 2, 3), (1, 2, -3), ("a",) * 3)),
        *(("engine", value) for value in ("gpu", "", None, ["numba"])),
        *(("formulation", value) for value in ("ridge", None)),
        *(("transform_algorithm", value) for value in ("lars", None)),
        *(("transform_alpha", value) for value in (-1, np.nan, "x")),
        *(("transform_n_nonzero_coefs", value) for value in (0, 1.5)),
        ("callback", 3),
        *(("missing_values", value) for value in (-1, 0, "nan")),
        *(("checkpoint", value) for value in (3, True)),
        *(("random_state", value) for value in (-1, 1.5, "x")),
        *(("verbose", value) for value in (-1, 0.5, "x", None)),
    ],
)
def test_parameters_out_of_range_are_named_with_their_value(name, value):
    shown = {(1, 2, -3): "rho[2]=-3", ("a", "a", "a"): "rho[0]='a'"}.get(value) if isinstance(value, tuple) else None
    with pytest.raises(ValueError, match=pattern(shown or f"{name}={value!r}")):
        road(**{name: value}).fit(X)


def test_unknown_names_are_refused_with_the_known_ones():
    for name, known in {
        "engine": ("auto", "reference", "numba"),
        "formulation": ("constrained", "lasso", "inexact"),
        "transform_algorithm": ("omp", "mp", "sp", "cosamp", "lasso", "basis-pursuit", "half", "threshold"),
        "epsilon": ("auto", "a number"),
        "rho": ("auto", "a number"),
    }.items():
        with pytest.raises(ValueError, match=pattern(f"{name}='nope'", *known)):
            road(**{name: "nope"}).fit(X)


def test_a_zero_dimensional_array_is_a_number_for_rho_which_may_be_an_array_and_else_refused():
    model = road(rho=np.array(10.0)).fit(X)
    np.testing.assert_array_equal(model.components_, road(rho=10.0).fit(X).components_)
    for name, value in {"epsilon": 0.1, "tol": 1e-3, "max_iter": 5}.items():
        with pytest.raises(ValueError, match=pattern(f"{name}=array({value!r})")):
            road(**{name: np.array(value)}).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_components", [1, 3, 5])
def test_an_epsilon_that_cannot_be_reached_is_refused_with_the_smallest_error(dtype, n_components):
    sizes = np.linalg.svd(X.astype(dtype).astype(np.float64), compute_uv=False)
    floor = np.sqrt((sizes[n_components:] ** 2).sum() / (sizes**2).sum())
    for epsilon in (0, 0.9 * floor):
        with pytest.raises(ValueError, match=pattern("epsilon=", "is below", "smallest relative error")) as caught:
            road(n_components, epsilon=epsilon).fit(X.astype(dtype))
        assert f"n_components={n_components}" in str(caught.value)
        named = float(re.search(r"is below (\S+),", str(caught.value))[1])
        assert named == pytest.approx(floor, rel=1e-5)
    road(n_components, epsilon=1.01 * floor, max_iter=2).fit(X.astype(dtype))


def test_zero_epsilon_is_fine_where_the_rank_allows_it():
    low_rank = X[:, :3] @ np.random.default_rng(0).standard_normal((3, M))
    assert road(3, epsilon=0).fit(low_rank).epsilon_ == 0
    assert road(3).fit(low_rank).epsilon_ == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ATOMS.T, pattern("dict_init", "(6, 8)", "(8, 6)")),
        (ATOMS[:-1], pattern("dict_init", "(7, 6)", "(8, 6)")),
        (ATOMS[0], pattern("dict_init", "(6,)", "(8, 6)")),
        (changed([2, 5], 0, ATOMS), pattern("dict_init", "2 zero rows", "2")),
        (changed((1, 1), np.nan, ATOMS), pattern("dict_init", "NaN")),
        (changed((1, 1), np.inf, ATOMS), pattern("dict_init", "infinity")),
        (ATOMS + 1j, pattern("dict_init", "complex128", "real numbers")),
        ([["a"] * M] * K, pattern("dict_init", "real numbers")),
        ([[1.0, 2.0], [3.0]], pattern("dict_init")),
        ("kmeans", pattern("dict_init")),
    ],
)
def test_dictionaries_to_start_from(value, message):
    with pytest.raises(ValueError, match=message):
        road(dict_init=value).fit(X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((K, N)), pattern("code_init", "(8, 40)", "(40, 8)")),
        (np.ones((N - 1, K)), pattern("code_init", "(39, 8)", "(40, 8)")),
        (np.full((N, K), np.nan), pattern("code_init", "NaN")),
        ([["a"] * K] * N, pattern("code_init", "real numbers")),
        ([[1.0, 2.0], [3.0]], pattern("code_init")),
    ],
)
def test_codes_to_start_from(value, message):
    with pytest.raises(ValueError, match=message):
        road(code_init=value).fit(X)


@pytest.mark.parametrize(
    ("beta", "rho", "message"),
    [
        (200, 100, pattern("rho1=100", "must exceed", "beta1=200", "auto")),
        (200, 200, pattern("rho1=200", "must exceed", "beta1=200")),
        ((200, 300, 250), (210, 300, 260), pattern("rho2=300", "must exceed", "beta2=300")),
        ((200, 300, 250), (210, 310, 240), pattern("rho3=240", "must exceed", "beta3=250")),
        ((200, 300, 250), 260, pattern("rho2=260", "must exceed", "beta2=300")),
        (None, 1e-3, pattern("rho1=0.001", "must exceed", "beta1=")),
        (0, "auto", pattern("beta=0", "above 0")),
        (-1, "auto", pattern("beta=-1", "above 0")),
        (np.nan, "auto", pattern("beta=nan", "above 0")),
        ((1, 2), "auto", pattern("beta=(1, 2)", "one number or three")),
        ((1, 2, 0), "auto", pattern("beta[2]=0", "above 0")),
        ("auto", "auto", pattern("beta='auto'")),
    ],
)
def test_inexact_penalties_below_the_bound(beta, rho, message):
    with pytest.raises(ValueError, match=message):
        road(formulation="inexact", beta=beta, rho=rho).fit(X)


def test_inexact_penalties_between_the_two_bounds_warn():
    with pytest.warns(UserWarning, match=pattern("rho3=251", "beta3=250", "beta3 + 2")):
        road(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 251)).fit(X)
    road(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 260)).fit(X)  # no warning, which would be an error


def test_inexact_does_not_support_missing_values():
    with pytest.raises(ValueError, match=pattern("inexact", "missing values")):
        road(formulation="inexact", missing_values=np.nan).fit(MISSING)
    assert_sound(road(formulation="inexact", missing_values=np.nan).fit(X), X)  # none is missing


@pytest.mark.parametrize("alpha", [0, -1, np.nan, "x", True])
def test_lasso_weights(alpha):
    with pytest.raises(ValueError, match=pattern(f"alpha={alpha!r}", "above 0")):
        road(formulation="lasso", alpha=alpha).fit(X)


def test_all_zero_codes_are_no_start():
    with pytest.raises(ValueError, match="code_init is all zero"):
        road(code_init=np.zeros((len(X), K))).fit(X)


def test_doubtful_bound_with_missing_entries_warns():
    with pytest.warns(UserWarning, match=r"epsilon=0.01 is below .* estimate"):
        road(2, epsilon=0.01, missing_values=np.nan).fit(MISSING)
