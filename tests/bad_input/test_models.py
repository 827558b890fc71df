"""Unfitted models, damaged model files, and paths where no model can be saved."""

import errno
import os
import pickle
import re
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from roadict import load
from roadict.files.models import FORMAT_VERSION, ModelFileError, read_model, write_model

from .small import MISSING, K, M, N, X, changed, pattern, road

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"  # the runs here are short on purpose
)


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
        (X[:, :-1], pattern("5 features", "6 features")),
        (np.hstack([X, X]), pattern("12 features", "6 features")),
        (X[0], pattern("2D")),
        (X[:0], pattern("0 sample(s)")),
        (MISSING, pattern("NaN")),
        (changed((0, 0), np.inf), pattern("infinity")),
        (X + 1j, pattern("Complex")),
    ],
)
def test_data_to_transform(fitted, data, message):
    for call in (fitted.transform, fitted.score):
        with pytest.raises(ValueError, match=message):
            call(data)


def test_transform_with_missing_entries_needs_one_per_sample():
    model = road(missing_values=np.nan).fit(MISSING)
    assert np.isfinite(model.transform(MISSING)).all()
    with pytest.raises(ValueError, match=pattern("no observed entry", "row 3, counting from 0")):
        model.transform(changed(3, np.nan, MISSING))


def test_codes_to_turn_back(fitted):
    with pytest.raises(ValueError, match=pattern("7 columns", "8 atoms")):
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


def test_saved_models_can_be_loaded(fitted, model_file):
    again = load(model_file)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.get_params() == fitted.get_params()
    assert [path.name for path in model_file.parent.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_model_files(model_file, share):
    raw = model_file.read_bytes()
    model_file.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ModelFileError, match=pattern("model.npz", "is damaged or cut short" if share else "is empty")):
        load(model_file)


def test_foreign_files_are_refused(tmp_path):
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, data=X)
    with pytest.raises(ModelFileError, match=pattern("foreign.npz", "not a roadict model", "data")):
        load(foreign)
    np.save(tmp_path / "foreign.npy", X)
    with pytest.raises(ModelFileError, match=pattern("foreign.npy", "not a roadict model")):
        load(tmp_path / "foreign.npy")
    foreign.write_text("hello\n")
    with pytest.raises(ModelFileError, match=pattern("foreign.npz", "not a roadict model")):
        load(foreign)
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("note.txt", "hello")
    with pytest.raises(ModelFileError, match=pattern("foreign.npz")):
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
    with pytest.raises(ModelFileError, match=pattern("pickled.npz", "not a roadict model")):
        load(pickled)
    pickled.write_bytes(pickle.dumps(fitted))
    with pytest.raises(ModelFileError, match=pattern("pickled.npz", "not a roadict model")):
        load(pickled)
    rewrite(model_file, components_=np.array([Tripwire(trap)], dtype=object))
    with pytest.raises(ModelFileError, match=pattern("pickled objects", "components_", "never opens")):
        load(model_file)
    assert not trap.exists()


def test_newer_and_other_models(model_file):
    rewrite(model_file, format_version=np.array(FORMAT_VERSION + 1), written_by=np.array("roadict 99.1"))
    with pytest.raises(ModelFileError, match=pattern(f"format {FORMAT_VERSION + 1}", "install roadict 99.1")):
        load(model_file)
    rewrite(model_file, format_version=np.array(FORMAT_VERSION), kind=np.array("Forest"))
    with pytest.raises(ModelFileError, match=pattern("Forest", "cannot read")):
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
def test_models_whose_parts_do_not_match(model_file, entries):
    rewrite(model_file, **entries)
    with pytest.raises(ModelFileError, match=pattern("model.npz")):
        load(model_file)


def test_a_model_of_pictures_is_refused_with_the_function_that_reads_it(tmp_path):
    write_model(tmp_path / "model.npz", "SuperResolution", {"scale": 2}, {})
    with pytest.raises(ModelFileError, match=r"read it with roadict\.pictures\.SuperResolution\.load"):
        load(tmp_path / "model.npz")


def test_what_version_0_1_did_not_save_is_none(fitted, model_file):
    kind, parameters, arrays = read_model(model_file)
    starts = {name: arrays.pop(name) for name in ("exact_", "n_starts_", "n_starts_agreed_")}
    assert load(model_file).history_.finished.exact == starts["exact_"]
    write_model(model_file, kind, parameters, arrays)
    old = load(model_file)
    assert (old.exact_, old.n_starts_, old.history_.finished.exact) == (None, None, None)


def test_paths_without_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=pattern("nothing.npz")):
        load(tmp_path / "nothing.npz")
    with pytest.raises(OSError, match=re.escape(tmp_path.name)):
        load(tmp_path)


def test_saving_to_an_unusable_path_leaves_nothing(fitted, tmp_path):
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
        with pytest.raises(PermissionError, match=pattern("model.npz")):
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
def test_parameters_that_fit_accepts_can_be_saved(tmp_path, kind):
    beta, rho = kind((200.0, 300.0, 250.0)), kind((210.0, 310.0, 260.0))
    model = road(np.int64(K), formulation="inexact", beta=beta, rho=rho, random_state=np.random.default_rng(0))
    model.fit(X).save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.rho_ == model.rho_ == (210.0, 310.0, 260.0)
    np.testing.assert_array_equal(again.rho, (210.0, 310.0, 260.0))
    again.set_params(random_state=0).fit(X)  # its parameters are valid


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
    with pytest.raises(ValueError, match="not a complete ROAD model"):
        load(tmp_path / "edited.npz")
