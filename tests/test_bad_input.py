"""What ROAD refuses, with which words, and the odd but honest data that it must take."""

import contextlib
import errno
import os
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from roadict import ROAD, load
from roadict.model_io import FORMAT_VERSION, ModelFileError
from roadict.synthetic import planted

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)

N, M, K = 40, 6, 8
X = planted(N, M, K, sparsity=2, random_state=0).data
ATOMS = np.random.default_rng(1).standard_normal((K, M))
MISSING = np.where(np.random.default_rng(2).random((N, M)) < 0.2, np.nan, X)
MISSING[0, 0] = np.nan


def road(n_components=K, **parameters):
    return ROAD(n_components, **({"max_iter": 30, "random_state": 0} | parameters))


def changed(place, value, data=X):
    copy = data.copy()
    copy[place] = value
    return copy


def says(*pieces):
    """Return a pattern for a message that holds these pieces in this order."""
    return "(?s)" + ".*".join(map(re.escape, pieces))


def relative_error(data, model):
    residual = np.where(np.isnan(data), 0, data - model.codes_ @ model.components_)
    return np.linalg.norm(residual) / np.linalg.norm(np.nan_to_num(data))


def assert_sound(model, data):
    """Unit atoms with a positive largest entry, finite codes, and an error that is the error."""
    data = np.asarray(data)
    atoms = model.components_
    assert model.codes_.shape == (len(data), len(atoms))
    assert atoms.shape[1] == data.shape[1] == model.n_features_in_
    assert np.isfinite(model.codes_).all()
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-5)
    assert (atoms[np.arange(len(atoms)), np.abs(atoms).argmax(axis=1)] > 0).all()
    assert model.error_ == pytest.approx(relative_error(data.astype(np.float64), model), rel=1e-3, abs=1e-6)
    assert model.stop_reason_ in ("converged", "max_iter")


# ---- data ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (MISSING, says("NaN")),
        (changed((3, 2), np.inf), says("infinity")),
        (changed((3, 2), -np.inf), says("infinity")),
        (np.zeros((0, M)), says("0 sample(s)")),
        (np.zeros((N, 0)), says("0 feature(s)")),
        (X[:1], says("1 sample(s)", "2")),
        (np.zeros((N, M)), says("all entries of X are zero")),
        (np.zeros((N, M), np.int64), says("all entries of X are zero")),
        (np.array([["a", "b"], ["c", "d"]], dtype=object), says("convert", "'a'")),
        (np.array([["1", "b"], ["2", "3"]]), says("convert", "b")),
        (np.array([[1.0, None], [2.0, 3.0]], dtype=object), says("NaN")),
        (X + 1j, says("Complex")),
        (X[0], says("2D")),
        (X.reshape(N, 3, 2), says("dim 3")),
        (3.0, says("2D")),
        (None, says("2D")),
        ([[1.0, 2.0], [3.0]], says("inhomogeneous")),
    ],
)
def test_data_that_is_no_matrix_of_finite_numbers(data, message):
    with pytest.raises(ValueError, match=message):
        road().fit(data)


def test_objects_that_are_no_numbers():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):  # the class scikit-learn asks for
        road().fit(np.array([[1.0, {}], [2.0, 3.0]], dtype=object))


def test_nan_is_refused_with_the_remedy_that_fits():
    with pytest.raises(ValueError, match="missing_values"):
        road().fit(MISSING)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(7, np.nan, MISSING), says("no observed entry", "row 7")),
        (np.full((N, M), np.nan), says(f"{N} samples", "no observed entry", "row 0")),
        (changed((3, 2), np.inf, MISSING), says("infinity")),
        (np.where(np.isnan(MISSING), np.nan, 0), says("all entries of X are zero")),
    ],
)
def test_data_with_missing_entries(data, message):
    with pytest.raises(ValueError, match=message):
        road(missing_values=np.nan).fit(data)


# ---- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n_components", value) for value in (0, -3, 8.0, True, "8", np.nan)),
        *(("max_iter", value) for value in (0, -1, 10.0, True, None)),
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
    with pytest.raises(ValueError, match=says(shown or f"{name}={value!r}")):
        road(**{name: value}).fit(X)


def test_unknown_words_are_answered_with_the_known_ones():
    for name, known in {
        "engine": ("auto", "reference", "numba"),
        "formulation": ("constrained", "lasso", "inexact"),
        "transform_algorithm": ("omp", "mp", "sp", "cosamp", "lasso", "basis-pursuit", "half", "threshold"),
        "epsilon": ("auto", "a number"),
        "rho": ("auto", "a number"),
    }.items():
        with pytest.raises(ValueError, match=says(f"{name}='nope'", *known)):
            road(**{name: "nope"}).fit(X)


def test_zero_dimensional_arrays_are_numbers_or_refused():
    with contextlib.suppress(ValueError):
        model = road(rho=np.array(10.0)).fit(X)
        np.testing.assert_array_equal(model.components_, road(rho=10.0).fit(X).components_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_components", [1, 3, 5])
def test_an_epsilon_that_cannot_be_reached_is_answered_with_the_floor(dtype, n_components):
    sizes = np.linalg.svd(X.astype(dtype).astype(np.float64), compute_uv=False)
    floor = np.sqrt((sizes[n_components:] ** 2).sum() / (sizes**2).sum())
    for epsilon in (0, 0.9 * floor):
        with pytest.raises(ValueError, match=says("epsilon=", "is below", "smallest relative error")) as caught:
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
        (ATOMS.T, says("dict_init", "(6, 8)", "(8, 6)")),
        (ATOMS[:-1], says("dict_init", "(7, 6)", "(8, 6)")),
        (ATOMS[0], says("dict_init", "(6,)", "(8, 6)")),
        (changed([2, 5], 0, ATOMS), says("dict_init", "2 zero rows", "2")),
        (changed((1, 1), np.nan, ATOMS), says("dict_init", "NaN")),
        (changed((1, 1), np.inf, ATOMS), says("dict_init", "infinity")),
        (ATOMS + 1j, says("dict_init", "complex128", "real numbers")),
        ([["a"] * M] * K, says("dict_init", "real numbers")),
        ([[1.0, 2.0], [3.0]], says("dict_init")),
        ("kmeans", says("dict_init")),
    ],
)
def test_dictionaries_to_start_from(value, message):
    with pytest.raises(ValueError, match=message):
        road(dict_init=value).fit(X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((K, N)), says("code_init", "(8, 40)", "(40, 8)")),
        (np.ones((N - 1, K)), says("code_init", "(39, 8)", "(40, 8)")),
        (np.full((N, K), np.nan), says("code_init", "NaN")),
        ([["a"] * K] * N, says("code_init", "real numbers")),
        ([[1.0, 2.0], [3.0]], says("code_init")),
    ],
)
def test_codes_to_start_from(value, message):
    with pytest.raises(ValueError, match=message):
        road(code_init=value).fit(X)


@pytest.mark.parametrize(
    ("beta", "rho", "message"),
    [
        (200, 100, says("rho1=100", "must exceed", "beta1=200", "auto")),
        (200, 200, says("rho1=200", "must exceed", "beta1=200")),
        ((200, 300, 250), (210, 300, 260), says("rho2=300", "must exceed", "beta2=300")),
        ((200, 300, 250), (210, 310, 240), says("rho3=240", "must exceed", "beta3=250")),
        ((200, 300, 250), 260, says("rho2=260", "must exceed", "beta2=300")),
        (None, 1e-3, says("rho1=0.001", "must exceed", "beta1=")),
        (0, "auto", says("beta=0", "above 0")),
        (-1, "auto", says("beta=-1", "above 0")),
        (np.nan, "auto", says("beta=nan", "above 0")),
        ((1, 2), "auto", says("beta=(1, 2)", "one number or three")),
        ((1, 2, 0), "auto", says("beta[2]=0", "above 0")),
        ("auto", "auto", says("beta='auto'")),
    ],
)
def test_inexact_penalties_below_the_bound(beta, rho, message):
    with pytest.raises(ValueError, match=message):
        road(formulation="inexact", beta=beta, rho=rho).fit(X)


def test_inexact_penalties_between_the_two_bounds_warn():
    with pytest.warns(UserWarning, match=says("rho3=251", "beta3=250", "beta3 + 2")):
        road(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 251)).fit(X)
    road(formulation="inexact", beta=(200, 300, 250), rho=(210, 310, 260)).fit(X)  # no warning, which would be an error


def test_inexact_takes_no_missing_values():
    with pytest.raises(ValueError, match=says("inexact", "missing values")):
        road(formulation="inexact", missing_values=np.nan).fit(MISSING)
    assert_sound(road(formulation="inexact", missing_values=np.nan).fit(X), X)  # none is missing


@pytest.mark.parametrize("alpha", [0, -1, np.nan, "x", True])
def test_lasso_weights(alpha):
    with pytest.raises(ValueError, match=says(f"alpha={alpha!r}", "above 0")):
        road(formulation="lasso", alpha=alpha).fit(X)


# ---- fitted models and their files ---------------------------------------------------------------------------------


def test_models_that_are_not_fitted(tmp_path):
    for call in ("transform", "score", "inverse_transform"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(road(), call)(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        road().save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def fitted():
    return road(max_iter=200).fit(X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[:, :-1], says("5 features", "6 features")),
        (np.hstack([X, X]), says("12 features", "6 features")),
        (X[0], says("2D")),
        (X[:0], says("0 sample(s)")),
        (MISSING, says("NaN")),
        (changed((0, 0), np.inf), says("infinity")),
        (X + 1j, says("Complex")),
    ],
)
def test_data_to_transform(fitted, data, message):
    for call in (fitted.transform, fitted.score):
        with pytest.raises(ValueError, match=message):
            call(data)


def test_transform_with_missing_entries_needs_one_per_sample():
    model = road(missing_values=np.nan).fit(MISSING)
    assert np.isfinite(model.transform(MISSING)).all()
    with pytest.raises(ValueError, match=says("no observed entry", "row 3")):
        model.transform(changed(3, np.nan, MISSING))


def test_codes_to_turn_back(fitted):
    with pytest.raises(ValueError, match=says("7 columns", "8 atoms")):
        fitted.inverse_transform(np.ones((3, K - 1)))
    with pytest.raises(ValueError, match="NaN"):
        fitted.inverse_transform(np.full((3, K), np.nan))


def test_one_sample_can_be_transformed(fitted):
    np.testing.assert_allclose(fitted.transform(X[:1]), fitted.transform(X)[:1], atol=1e-9)


@pytest.fixture
def model_file(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    return path


def rewrite(path, **entries):
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays |= entries
    np.savez_compressed(path, **{name: value for name, value in arrays.items() if value is not None})


def test_saved_models_come_back(fitted, model_file):
    again = load(model_file)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.get_params() == fitted.get_params()
    assert [path.name for path in model_file.parent.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_model_files(model_file, share):
    raw = model_file.read_bytes()
    model_file.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ModelFileError, match=says("model.npz", "is damaged or cut short" if share else "is empty")):
        load(model_file)


def test_foreign_files_are_no_models(tmp_path):
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, data=X)
    with pytest.raises(ModelFileError, match=says("foreign.npz", "not a roadict model", "data")):
        load(foreign)
    np.save(tmp_path / "foreign.npy", X)
    with pytest.raises(ModelFileError, match=says("foreign.npy", "not a roadict model")):
        load(tmp_path / "foreign.npy")
    foreign.write_text("hello\n")
    with pytest.raises(ModelFileError, match=says("foreign.npz", "not a roadict model")):
        load(foreign)
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("note.txt", "hello")
    with pytest.raises(ModelFileError, match=says("foreign.npz")):
        load(foreign)


class Tripwire:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_are_refused_and_never_run(fitted, model_file, tmp_path):
    trap = tmp_path / "ran"
    pickled = tmp_path / "pickled.npz"
    pickled.write_bytes(pickle.dumps(Tripwire(trap)))
    with pytest.raises(ModelFileError, match=says("pickled.npz", "not a roadict model")):
        load(pickled)
    pickled.write_bytes(pickle.dumps(fitted))
    with pytest.raises(ModelFileError, match=says("pickled.npz", "not a roadict model")):
        load(pickled)
    rewrite(model_file, components_=np.array([Tripwire(trap)], dtype=object))
    with pytest.raises(ModelFileError, match=says("pickled objects", "components_", "never opens")):
        load(model_file)
    assert not trap.exists()


def test_newer_and_other_models(model_file):
    rewrite(model_file, format_version=np.array(FORMAT_VERSION + 1), written_by=np.array("roadict 99.1"))
    with pytest.raises(ModelFileError, match=says(f"format {FORMAT_VERSION + 1}", "install roadict 99.1")):
        load(model_file)
    rewrite(model_file, format_version=np.array(FORMAT_VERSION), kind=np.array("Forest"))
    with pytest.raises(ModelFileError, match=says("Forest", "cannot read")):
        load(model_file)


@pytest.mark.parametrize(
    "entries",
    [
        {"components_": np.ones((K, M + 1))},
        {"components_": np.full((K, M), np.nan)},
        {"components_": np.ones(K)},
        {"components_": np.array(["a"])},
        {"codes_": np.ones((N, K + 1))},
        {"atom_usage_": np.ones(K + 1)},
        {"n_iter_": np.array([1, 2])},
        {"rho_": np.array("x")},
        {"stop_reason_": None},
        {"history_primal": None},
        {"parameters": np.array('{"bogus": 1}')},
        {"parameters": np.array("[1]")},
    ],
)
def test_models_whose_parts_do_not_fit(model_file, entries):
    rewrite(model_file, **entries)
    with pytest.raises(ModelFileError, match=says("model.npz")):
        load(model_file)


def test_paths_without_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=says("nothing.npz")):
        load(tmp_path / "nothing.npz")
    with pytest.raises(OSError, match=re.escape(tmp_path.name)):
        load(tmp_path)


def test_saving_where_it_cannot_be_leaves_nothing(fitted, tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_bytes(b"mine")
    for path, kind in (
        (tmp_path / "missing" / "model.npz", FileNotFoundError),
        (folder, IsADirectoryError),
        (file / "model.npz", NotADirectoryError),
    ):
        with pytest.raises(kind, match=re.escape(path.name)):
            fitted.save(path)
    assert sorted(tmp_path.rglob("*")) == [file, folder]
    assert file.read_bytes() == b"mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere")
def test_saving_to_a_protected_folder_leaves_nothing(fitted, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=says("model.npz")):
            fitted.save(tmp_path / "model.npz")
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_model(fitted, model_file, monkeypatch, step):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = model_file.read_bytes()
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        fitted.save(model_file)
    monkeypatch.undo()
    assert list(model_file.parent.iterdir()) == [model_file]
    assert model_file.read_bytes() == before


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_what_fit_takes_save_keeps(tmp_path, kind):
    beta, rho = kind((200.0, 300.0, 250.0)), kind((210.0, 310.0, 260.0))
    model = road(np.int64(K), formulation="inexact", beta=beta, rho=rho, random_state=np.random.default_rng(0))
    model.fit(X).save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.rho_ == model.rho_ == (210.0, 310.0, 260.0)
    np.testing.assert_array_equal(again.rho, (210.0, 310.0, 260.0))
    again.set_params(random_state=0).fit(X)  # its parameters are good ones


# ---- odd data that must work ---------------------------------------------------------------------------------------


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
    np.testing.assert_allclose(scaled.codes_ / dtype(scale), plain.codes_, atol=10 * tolerance)
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
    np.testing.assert_allclose(codes / dtype(scale), plain.transform(data), atol=1e-2)


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
    """Finite results, or an error that says what is wrong with X: never silent NaN."""
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


def test_data_and_starts_are_left_alone():
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
    whole = np.abs(20 * X).astype(dtype)
    model = road().fit(whole)
    assert model.components_.dtype == model.codes_.dtype == model.transform(whole).dtype == np.float64
    np.testing.assert_array_equal(model.components_, road().fit(whole.astype(np.float64)).components_)


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


def test_names_of_data_frames_are_kept(tmp_path):
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
        assert_sound(road(n_components, missing_values=np.nan).fit(data), data)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = road().fit(X)
    atoms = model.components_.copy()
    with pytest.raises(ValueError, match="rho"):
        model.set_params(rho=-1.0).fit(2 * X)
    np.testing.assert_array_equal(model.components_, atoms)
    assert np.isfinite(model.transform(X)).all()


# ------------------------------------------------------------------ found by a newcomer


def test_masked_arrays_are_missing_entries_or_refused():
    masked = np.ma.array(X, mask=np.random.default_rng(0).random(X.shape) < 0.1)
    with pytest.raises(ValueError, match=r"masked array.*missing_values=np.nan"):
        road().fit(masked)
    marked = road(missing_values=np.nan).fit(masked)
    assert np.array_equal(marked.components_, road(missing_values=np.nan).fit(masked.filled(np.nan)).components_)


def test_all_zero_codes_are_no_start():
    with pytest.raises(ValueError, match="code_init is all zero"):
        road(code_init=np.zeros((len(X), K))).fit(X)


def test_doubtful_bound_with_missing_entries_warns():
    with pytest.warns(UserWarning, match=r"epsilon=0.01 is below .* estimate"):
        road(2, epsilon=0.01, missing_values=np.nan).fit(MISSING)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history_primal", np.zeros(3)),
        ("history_objective", np.float64(1.0)),
        ("transform_alpha_", np.float64(np.nan)),
        ("stop_reason_", np.array("tired")),
        ("codes_", np.zeros((5, 3))),
        ("components_", np.zeros(4)),
        ("n_features_in_", np.int64(99)),
    ],
)
def test_models_edited_by_hand_are_refused(tmp_path, name, value):
    road().fit(X).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "edited.npz", **(arrays | {name: value}))
    with pytest.raises(ValueError, match="not a whole ROAD model"):
        load(tmp_path / "edited.npz")


def test_wide_data_takes_the_engine_that_suits_it():
    wide = np.random.default_rng(0).standard_normal((3, 200))
    auto, reference = (road(4, engine=engine).fit(wide) for engine in ("auto", "reference"))
    assert np.array_equal(auto.components_, reference.components_)
