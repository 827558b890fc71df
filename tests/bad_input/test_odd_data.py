"""Unusual but valid data that ROAD must accept."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD, load
from roadict.synthetic import planted

from .small import ATOMS, MISSING, K, M, N, X, assert_sound, changed, road

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)


@pytest.mark.parametrize(
    ("n_components", "data"),
    [
        pytest.param(2, X[:, :1], id="one feature"),
        pytest.param(None, X[:, :1], id="one feature, default atoms"),
        pytest.param(K, X[:5], id="fewer samples than atoms"),
        pytest.param(3, X[:4], id="fewer samples than features"),
        pytest.param(K, X[:2], id="two samples"),
        pytest.param(1, X, id="one atom"),
        pytest.param(3 * M, X, id="many atoms"),
        pytest.param(K, changed((slice(None), 2), 3.0), id="a constant column"),
        pytest.param(K, changed((slice(None), 2), 0.0), id="a zero column"),
        pytest.param(K, np.full((N, M), 2.0), id="one value everywhere"),
        pytest.param(K, np.repeat(X[:4], 10, axis=0), id="repeated samples"),
        pytest.param(K, changed((slice(1, None), slice(None)), 0.0), id="a single sample that is not zero"),
        pytest.param(K, np.eye(M), id="the identity"),
    ],
)
@pytest.mark.parametrize("formulation", ["constrained", "lasso", "inexact"])
def test_small_and_degenerate_shapes(formulation, n_components, data):
    model = road(n_components, formulation=formulation).fit(data)
    assert_sound(model, data)
    assert np.isfinite(model.transform(data)).all()
    assert np.isfinite(model.score(data))


@pytest.mark.parametrize("formulation", ["constrained", "lasso", "inexact"])
def test_zero_rows_get_zero_codes(formulation):
    data = changed([3, 7], 0.0)
    model = road(formulation=formulation).fit(data)
    assert_sound(model, data)
    for codes in (model.codes_, model.transform(data)):
        assert not codes[[3, 7]].any()
        assert codes[[2, 4]].any()


SCALES = [(np.float64, 1e-200), (np.float64, 1e200), (np.float32, 1e-30), (np.float32, 1e30)]


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
@pytest.mark.parametrize("formulation", ["constrained", "lasso", "inexact"])
def test_learning_follows_the_scale_of_the_data(dtype, scale, formulation):
    data = X.astype(dtype)
    plain = road(formulation=formulation).fit(data)
    scaled = road(formulation=formulation).fit(data * dtype(scale))
    tolerance = 1e-9 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=tolerance)
    close = tolerance * np.abs(plain.codes_).max()
    np.testing.assert_allclose(scaled.codes_ / dtype(scale), plain.codes_, atol=close)
    assert scaled.components_.dtype == scaled.codes_.dtype == dtype
    assert scaled.error_ == pytest.approx(plain.error_, rel=1e-2, abs=1e-6)
    assert scaled.objective_ / scale == pytest.approx(plain.objective_, rel=1e-3)


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
@pytest.mark.parametrize("algorithm", ["lasso", "omp", "basis-pursuit", "threshold"])
def test_transform_follows_the_scale_of_the_data(dtype, scale, algorithm):
    data = X.astype(dtype)
    plain = road(transform_algorithm=algorithm).fit(data)
    scaled = road(transform_algorithm=algorithm).fit(data * dtype(scale))
    codes = scaled.transform(data * dtype(scale))
    assert codes.dtype == dtype
    np.testing.assert_allclose(codes / dtype(scale), plain.transform(data), atol=1e-3 * np.abs(plain.codes_).max())


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_scores_do_not_depend_on_the_scale_of_the_data(dtype, scale):
    plain = road(transform_algorithm="threshold").fit(X.astype(dtype))
    scaled = road(transform_algorithm="threshold").fit(X.astype(dtype) * dtype(scale))
    score = scaled.score(X.astype(dtype) * dtype(scale))
    assert score == pytest.approx(plain.score(X.astype(dtype)), abs=1e-2)


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e-200), (np.float32, 1e-30)])
@pytest.mark.parametrize("missing", [False, True])
def test_tiny_samples_among_large_ones(dtype, factor, missing):
    data = (MISSING if missing else X).astype(dtype)
    data[[3, 9]] *= dtype(factor)
    model = road(N, missing_values=np.nan if missing else None).fit(data)  # as many atoms: every sample is drawn
    assert_sound(model, data)
    assert model.error_ < 0.5


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e-200), (np.float64, 1e200), (np.float32, 1e-30)])
def test_starting_atoms_of_any_length(dtype, factor):
    plain = road(dict_init=ATOMS).fit(X.astype(dtype))
    scaled = road(dict_init=ATOMS * factor).fit(X.astype(dtype))
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9 if dtype is np.float64 else 1e-3)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # in scikit-learn's search for NaN
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("end", ["max", "tiny", "smallest_subnormal"])
def test_the_ends_of_the_floating_point_range(dtype, end):
    """Finite results, or an error that names what is wrong with X: never silent NaN."""
    data = (X / np.abs(X).max()).astype(dtype) * dtype(getattr(np.finfo(dtype), end))
    try:
        model = road().fit(data)
    except ValueError as error:
        assert re.search(r"\bX\b|data|zero", str(error))  # noqa: PT017
    else:
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.codes_).all()


def test_layouts_and_containers_make_no_difference():
    plain = road().fit(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((2 * N, 3 * M))
    wide[::2, ::3] = X
    for data in (
        np.asfortranarray(X),
        frozen,
        wide[::2, ::3],
        X[::-1][::-1],
        X.tolist(),
        tuple(map(tuple, X)),
        X.astype(object),
        X.astype(">f8"),
        X.astype(np.longdouble),
    ):
        model = road().fit(data)
        np.testing.assert_array_equal(model.components_, plain.components_)
        np.testing.assert_array_equal(model.codes_, plain.codes_)
        assert model.components_.dtype == np.float64
        assert np.isfinite(model.transform(data)).all()


def test_data_and_starts_are_not_modified():
    data, atoms, codes = MISSING.copy(), ATOMS.copy(), np.ones((N, K))
    road(missing_values=np.nan, dict_init=atoms, code_init=codes).fit(data).transform(data)
    np.testing.assert_array_equal(data, MISSING)
    np.testing.assert_array_equal(atoms, ATOMS)
    np.testing.assert_array_equal(codes, 1)
    for array in (data, atoms, codes):
        array.flags.writeable = False
    road(missing_values=np.nan, dict_init=atoms, code_init=codes).fit(data).transform(data)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.bool_])
def test_integers_become_float64(dtype):
    integers = np.abs(20 * X).astype(dtype)
    model = road().fit(integers)
    assert model.components_.dtype == model.codes_.dtype == model.transform(integers).dtype == np.float64
    np.testing.assert_array_equal(model.components_, road().fit(integers.astype(np.float64)).components_)


def test_float32_stays():
    single = X.astype(np.float32)
    model = road().fit(single)
    assert model.components_.dtype == model.codes_.dtype == model.transform(single).dtype == np.float32


def test_float32_codes_without_a_warning_per_sample():
    data = planted(200, 16, 32, sparsity=2, random_state=0).data.astype(np.float32)
    model = ROAD(32, max_iter=100, random_state=0).fit(data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(data)
    assert len(caught) <= 1, caught[0].message


def test_names_of_data_frames_are_stored(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"band {i}" for i in range(M)]
    frame = pandas.DataFrame(X, columns=names)
    model = road().fit(frame)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.components_, road().fit(X).components_)
    assert len(model.get_feature_names_out()) == K
    model.save(tmp_path / "model.npz")
    for known in (model, load(tmp_path / "model.npz")):
        assert known.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(known.transform(frame), model.transform(frame))
        with pytest.raises(ValueError, match="feature names"):
            known.transform(frame.rename(columns={"band 0": "red"}))
    mixed = frame.astype({"band 1": np.float32, "band 2": object})
    assert_sound(road().fit(mixed), mixed.astype(np.float64))
    with pytest.raises(ValueError, match="convert"):
        road().fit(frame.astype(object).assign(**{"band 3": "text"}))


@pytest.mark.parametrize("formulation", ["constrained", "lasso"])
@pytest.mark.parametrize("n_components", [1, 3, M, K])
def test_missing_entries_with_any_number_of_atoms(formulation, n_components):
    model = road(n_components, formulation=formulation, missing_values=np.nan).fit(MISSING)
    assert_sound(model, MISSING)
    assert np.isfinite(model.transform(MISSING)).all()
    if formulation == "constrained":
        assert (0 < model.epsilon_ < 1) if n_components < M else model.epsilon_ == 0


def test_the_bound_of_auto_is_met_with_missing_entries_and_few_atoms():
    model = road(3, missing_values=np.nan, max_iter=2000, tol=1e-3, random_state=3).fit(MISSING)
    assert model.stop_reason_ == "converged"
    assert 0 < model.epsilon_ < 1
    assert model.error_ <= model.epsilon_ + 10 * model.tol


def test_a_feature_that_was_never_observed():
    data = changed((slice(None), 0), np.nan, MISSING)
    data[~np.isfinite(data).any(axis=1), 1] = 1.0
    for n_components in (3, K):
        with pytest.warns(UserWarning, match=r"1 feature of X is never observed \(first: index 0\)") as caught:
            model = road(n_components, missing_values=np.nan).fit(data)
        assert sum("never observed" in str(warning.message) for warning in caught) == 1
        assert_sound(model, data)
        assert (model.components_[:, 0] == 0).all()


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = road().fit(X)
    atoms = model.components_.copy()
    with pytest.raises(ValueError, match="rho"):
        model.set_params(rho=-1.0).fit(2 * X)
    np.testing.assert_array_equal(model.components_, atoms)
    assert np.isfinite(model.transform(X)).all()


def test_wide_data_is_fitted_by_the_suitable_engine():
    wide = np.random.default_rng(0).standard_normal((3, 200))
    auto, reference = (road(4, engine=engine).fit(wide) for engine in ("auto", "reference"))
    assert np.array_equal(auto.components_, reference.components_)


@pytest.mark.parametrize("size", [1e300, 1e160])
def test_codes_to_start_from_that_would_overflow_are_refused(size):
    codes = np.full((len(X), K), size)
    with pytest.raises(
        ValueError, match=r"code_init reaches .* times the size of the data.*; pass codes below 1e\+148"
    ):
        ROAD(K, code_init=codes, n_init=1, random_state=0).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_codes_to_start_from_give_finite_results(dtype):
    codes = np.full((len(X), K), (1e12 if dtype == np.float32 else 1e147) * np.abs(X).max(), dtype)
    model = ROAD(K, code_init=codes, n_init=1, random_state=0, max_iter=5).fit(X.astype(dtype))
    assert np.isfinite([model.error_, model.objective_]).all()
