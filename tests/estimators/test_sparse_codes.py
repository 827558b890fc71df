"""Codes as CSR arrays: from ``transform``, in ``inverse_transform``, as ``codes_`` of a model."""

import tracemalloc
from copy import copy

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from bad_input.small import changed, pattern
from roadict import ROAD, ROADCV, AlternatingDictionaryLearning, SparseCoder, load
from roadict.coders.registry import CODER_PARAMETERS
from roadict.files.models import ModelFileError, read_model, write_model
from roadict.synthetic import planted

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)

N, M, K = 120, 6, 8
RNG = np.random.default_rng(0)
X, ATOMS = planted(N, M, K, sparsity=2, random_state=0).data, RNG.standard_normal((K, M))
HOLES = np.where(RNG.random((N, M)) < 0.2, np.nan, X)
HOLES[:, 0] = X[:, 0]
CODES = RNG.standard_normal((5, K)) * (RNG.random((5, K)) < 0.3)
CODES[2] = 0


def assert_equal(found, dense):
    assert isinstance(found, scipy.sparse.csr_array)
    assert found.dtype == dense.dtype
    assert found.nnz == np.count_nonzero(dense)
    np.testing.assert_array_equal(found.toarray(), dense)


# ---- transform -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [X, X.astype(np.float32), changed((slice(3, 5)), 0, X), HOLES, X[:1], X.tolist()])
@pytest.mark.parametrize("algorithm", CODER_PARAMETERS)
def test_a_coder(algorithm, data):
    coder = SparseCoder(ATOMS, algorithm=algorithm, missing_values=np.nan)
    dense = coder.transform(data)
    assert_equal(coder.transform(data, sparse=True), dense)
    assert_equal(coder.fit(data).transform(data, sparse=True), dense)
    np.testing.assert_array_equal(coder.fit_transform(data), dense)


@pytest.mark.parametrize(
    "model",
    [
        ROAD(K, max_iter=20, n_init=1, random_state=0, missing_values=np.nan),
        ROAD(K, max_iter=20, n_init=1, random_state=0, transform_algorithm="omp", transform_n_nonzero_coefs=2),
        ROAD(K, max_iter=20, n_init=1, random_state=0, transform_algorithm="basis-pursuit"),
        ROADCV([K], max_iter=20, n_splits=1, random_state=0),
        AlternatingDictionaryLearning(K, n_nonzero_coefs=2, max_iter=3, random_state=0),
    ],
    ids=["missing", "omp", "basis-pursuit", "chosen", "two-stage"],
)
def test_a_model(model):
    with pytest.raises(NotFittedError):
        model.transform(X, sparse=True)
    data = HOLES if getattr(model, "missing_values", None) is not None else X
    model.fit(data)
    for given in (data, data.astype(np.float32), data[:1]):
        dense = model.transform(given)
        found = model.transform(given, sparse=True)
        assert_equal(found, dense)
        np.testing.assert_allclose(model.inverse_transform(found), model.inverse_transform(dense), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=pattern("5 features", "6 features")):
        model.transform(X[:, :5], sparse=True)


def test_zeros_need_no_memory():
    data, atoms = RNG.standard_normal((40_000, 16)), RNG.standard_normal((500, 16))
    coder = SparseCoder(atoms / np.linalg.norm(atoms, axis=1, keepdims=True), algorithm="lasso", alpha=2.5, n_jobs=2)
    coder.transform(data[:100], sparse=True)  # compiles
    tracemalloc.start()
    codes = coder.transform(data, sparse=True)
    samples = coder.inverse_transform(codes[:100])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = 8 * codes.shape[0] * codes.shape[1]
    assert peak < dense / 5, f"{peak / dense:.2f} of a dense array"
    np.testing.assert_allclose(samples, coder.transform(data[:100]) @ coder.dictionary)


def test_tensors_have_arrays_as_sparse_codes():
    torch = pytest.importorskip("torch")
    coder, model = SparseCoder(ATOMS), ROAD(K, max_iter=5, n_init=1, random_state=0).fit(torch.from_numpy(X))
    for estimator in (coder, model):
        assert_equal(estimator.transform(torch.from_numpy(X), sparse=True), estimator.transform(X))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_data_frames_are_refused_before_the_work(container, monkeypatch):
    pytest.importorskip(container)
    coder = SparseCoder(ATOMS).set_output(transform=container).fit(X)
    model = ROAD(K, max_iter=5, n_init=1, random_state=0).fit(X).set_output(transform=container)
    monkeypatch.setattr(SparseCoder, "_encode", None)
    message = pattern("sparse=True", container, 'set_output(transform="default")')
    for estimator in (coder, model):
        with pytest.raises(ValueError, match=message):
            estimator.transform(X, sparse=True)
    with config_context(transform_output=container), pytest.raises(ValueError, match=message):
        SparseCoder(ATOMS).transform(X, sparse=True)


# ---- inverse_transform ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_sparse_codes_back_to_samples(form, kind, dtype):
    coder, codes = SparseCoder(ATOMS), np.round(CODES).astype(dtype)
    samples = coder.inverse_transform(getattr(scipy.sparse, f"{form}_{kind}")(codes))
    assert type(samples) is np.ndarray
    assert samples.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(samples, codes @ ATOMS, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.ones((2, K + 1)), f"codes have {K + 1} columns, but the model has {K} atoms"),
        (changed((1, 1), np.nan, CODES), "codes contains NaN"),
        (changed((1, 1), -np.inf, CODES), "codes contains infinity"),
        (CODES[:0], "0 sample(s)"),
        (CODES + 1j, "Complex"),
    ],
)
def test_errors_for_sparse_codes_are_those_for_dense_ones(codes, message):
    for form in (np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        with pytest.raises(ValueError, match=pattern(message)):
            SparseCoder(ATOMS).inverse_transform(form(codes))


@pytest.mark.parametrize("place", ["indices", "indptr"])
@pytest.mark.parametrize("value", [10**9, -1])
def test_sparse_codes_with_indices_out_of_range(place, value):
    codes = scipy.sparse.csr_array(CODES)
    getattr(codes, place)[1] = value
    with pytest.raises(ValueError, match="codes are not a valid sparse array"):
        SparseCoder(ATOMS).inverse_transform(codes)


def test_sparse_codes_of_one_dimension():
    pytest.importorskip("scipy", "1.13")  # has such arrays
    with pytest.raises(ValueError, match=pattern("codes have shape (8,)", "one row per sample")):
        SparseCoder(ATOMS).inverse_transform(scipy.sparse.coo_array(CODES[0]))


def test_pointers_that_decrease_to_zero():
    codes = scipy.sparse.csr_array(CODES)
    codes.indptr[1:] = [10**6, -(10**6), 5, 0, 0]
    with pytest.raises(ValueError, match="codes are not a valid sparse array"):
        SparseCoder(ATOMS).inverse_transform(codes)


# ---- codes_ of a model ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return ROAD(K, max_iter=20, n_init=1, random_state=0).fit(X)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models_with_sparse_codes_are_saved_and_loaded(fitted, tmp_path, kind, dtype):
    model = copy(fitted)
    model.codes_ = kind(fitted.codes_.astype(dtype))
    model.save(tmp_path / "model.npz")
    assert_equal(load(tmp_path / "model.npz").codes_, fitted.codes_.astype(dtype))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert {f"codes_csr_{name}" for name in ("data", "indices", "indptr", "shape")} <= {*file}
        assert "codes_" not in file


def test_models_without_codes_are_saved_and_loaded(fitted, tmp_path):
    model = copy(fitted)
    model.codes_ = None
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.codes_ is None
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(again.atom_usage_, fitted.atom_usage_)
    again.save(tmp_path / "model.npz")


def decreasing(indptr):
    indptr[1:-1] = np.linspace(2**62, -(2**62), len(indptr) - 2)
    return indptr


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda values: np.where(values == 3, K, values)),
        ("indices", lambda values: np.where(values == 3, 10**9, values)),
        ("indices", lambda values: np.where(values == 3, -1, values)),
        ("indices", lambda values: values[:-1]),
        ("indices", lambda values: values.astype(float)),
        ("indices", lambda values: values.astype(np.uint64)),
        ("indices", lambda values: values[None]),
        ("indptr", lambda values: values + 1),
        ("indptr", lambda values: values[::-1]),
        ("indptr", lambda values: values[:-1]),
        ("indptr", lambda values: values[:0]),
        ("indptr", lambda values: np.append(values[:-1], 10**12)),
        ("indptr", lambda values: np.append(values[:-1], values[-1] - 1)),
        ("indptr", lambda values: decreasing(values.astype(np.int64))),
        ("data", lambda values: np.full_like(values, np.nan)),
        ("data", lambda values: values[:-1]),
        ("data", lambda values: values[:, None]),
        ("data", lambda values: values.astype(np.float16)),
        ("data", lambda values: values.astype(str)),
        ("shape", lambda values: values + 1),
        ("shape", lambda values: values * 2**40),
        ("shape", lambda values: -values),
        ("shape", lambda values: values[:1]),
        ("shape", lambda values: np.array(3)),
        ("shape", lambda values: values.astype(float)),
        ("shape", None),
        ("data", None),
    ],
)
def test_damaged_sparse_codes_are_refused(fitted, tmp_path, name, change):
    model, path = copy(fitted), tmp_path / "model.npz"
    model.codes_ = scipy.sparse.csr_array(fitted.codes_)
    model.save(path)
    kind, parameters, arrays = read_model(path)
    values = arrays.pop(f"codes_csr_{name}")
    write_model(path, kind, parameters, arrays | ({f"codes_csr_{name}": change(values)} if change else {}))
    with pytest.raises(ModelFileError, match=pattern("model.npz is not a complete ROAD model", "codes_")):
        load(path)


def test_no_samples_on_this_rank(fitted, tmp_path):
    model = copy(fitted)
    model.codes_ = scipy.sparse.csr_array((0, K))
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").codes_.shape == (0, K)


def test_sparse_codes_stay_as_they_are_beside_tensors(fitted):
    torch = pytest.importorskip("torch")
    for codes in (scipy.sparse.csr_array(fitted.codes_), None):
        model = copy(fitted)
        model.codes_ = codes
        model._convert_outputs_like(torch.ones(1))
        assert model.codes_ is codes
        assert isinstance(model.components_, torch.Tensor)
