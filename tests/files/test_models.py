"""Model files: round trips, atomic writing, and every kind of damage."""

import io
import json
import math
import os
import pickle
import stat
import zipfile
import zlib

import numpy as np
import pytest

from roadict.files import models
from roadict.files.atomic import atomic_write
from roadict.files.models import FORMAT_VERSION, ModelFileError, read_model, write_model

PARAMETERS = {
    "n_components": 32,
    "rho": "auto",
    "tol": 1e-4,
    "third": 1 / 3,
    "alpha": None,
    "warm": True,
    "beta": (200.0, 300, [250.0]),
    "missing_values": math.nan,
    "bound": -math.inf,
    "name": "Gabor ρ\0\n",
    "big": 2**80,
    "numpy": np.float32(0.5),
    "count": np.int64(7),
    "flag": np.bool_(False),
}
ARRAYS = {
    "components": np.random.default_rng(0).standard_normal((4, 3)),
    "codes": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 3)),
    "names": np.array(["a", "bc"]),
    "scalar": np.array(3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.npz"
    write_model(path, "ROAD", PARAMETERS, ARRAYS)
    return path


def entries(path):
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def assert_same_arrays(actual, expected):
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype
        np.testing.assert_array_equal(actual[name], values)


def assert_refused(path, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert "; " in text  # what is wrong; what to do


def test_everything_survives_the_round_trip(model):
    kind, parameters, arrays = read_model(model)
    assert kind == "ROAD"
    assert math.isnan(parameters.pop("missing_values"))
    expected = {name: value for name, value in PARAMETERS.items() if name != "missing_values"}
    expected["beta"] = [200.0, 300, [250.0]]
    assert parameters == expected
    assert {name: type(value) for name, value in parameters.items()} == {
        **{name: type(value) for name, value in expected.items()},
        "numpy": float,
        "count": int,
        "flag": bool,
    }
    assert_same_arrays(arrays, ARRAYS)


def test_the_file_is_a_plain_npz(model):
    found = entries(model)
    assert found["format"] == "roadict-model"
    assert found["format_version"] == FORMAT_VERSION == 1
    assert found["kind"] == "ROAD"
    assert found["parameters"].dtype.kind == "U"
    assert json.loads(str(found["parameters"]))["n_components"] == 32


def test_the_path_is_taken_literally_and_as_text(tmp_path):
    write_model(str(tmp_path / "model"), "ROAD", {}, {})
    assert os.listdir(tmp_path) == ["model"]
    assert read_model(str(tmp_path / "model")) == ("ROAD", {}, {})


@pytest.mark.parametrize(
    ("kind", "parameters", "arrays", "message"),
    [
        ("", {}, {}, "kind=''"),
        ("ROAD", {"callback": print}, {}, "parameter 'callback' has type builtin_function"),
        ("ROAD", {"options": [{}]}, {}, "parameter 'options' has type dict"),
        ("ROAD", {"dict_init": np.eye(2)}, {}, "parameter 'dict_init' has type ndarray"),
        ("ROAD", {"z": np.complex128(1j)}, {}, "parameter 'z' has type complex"),
        ("ROAD", {3: 1}, {}, "parameter name 3"),
        ("ROAD", {}, {"kind": np.eye(2)}, "array name 'kind'"),
        ("ROAD", {}, {"file": np.eye(2)}, "array name 'file'"),
        ("ROAD", {}, {"../x": np.eye(2)}, "array name '../x'"),
        ("ROAD", {}, {"rows": np.array([None])}, "array 'rows' has dtype object"),
        ("ROAD", {}, {"rows": np.zeros(1, [("a", object)])}, "array 'rows' has dtype"),
    ],
)
def test_values_that_cannot_be_stored_are_refused_and_nothing_is_written(tmp_path, kind, parameters, arrays, message):
    with pytest.raises(ValueError, match=message):
        write_model(tmp_path / "model.npz", kind, parameters, arrays)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("existing", [True, False])
def test_a_write_that_fails_halfway_changes_nothing(tmp_path, monkeypatch, existing):
    path = tmp_path / "model.npz"
    if existing:
        write_model(path, "ROAD", {}, ARRAYS)
    before = path.read_bytes() if existing else None

    def fill_the_disk(file, **_):
        file.write(b"PK half a model")
        assert len(os.listdir(tmp_path)) == 1 + existing
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(models.np, "savez_compressed", fill_the_disk)
    with pytest.raises(OSError, match="No space left"):
        write_model(path, "ROAD", {}, {})
    assert os.listdir(tmp_path) == ["model.npz"] * existing
    if existing:
        assert path.read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_after_the_last_byte_changes_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "note"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk gone")

    monkeypatch.setattr(models.os, step, fail)
    with pytest.raises(OSError, match="disk gone"), atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["note"]


def test_an_interrupt_leaves_no_trace(tmp_path):
    def interrupted():
        with atomic_write(tmp_path / "note") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []


def test_the_old_file_is_there_until_the_end(tmp_path):
    path = tmp_path / "note"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["note"]


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o000, 0o666)])
def test_permissions_follow_the_umask_and_an_existing_file_retains_its_own(tmp_path, umask, mode):
    path = tmp_path / "model.npz"
    before = os.umask(umask)
    try:
        write_model(path, "ROAD", {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.chmod(0o604)
        write_model(path, "ROAD", {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_symbolic_links_stay_links(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no /dev/null")
def test_devices_are_written_and_not_replaced():
    write_model("/dev/null", "ROAD", {}, ARRAYS)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_unusable_targets_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.*model\.npz"):
        write_model(tmp_path / "nowhere" / "model.npz", "ROAD", {}, {})
    with pytest.raises(IsADirectoryError):
        write_model(tmp_path, "ROAD", {}, {})
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        write_model(tmp_path / "file" / "model.npz", "ROAD", {}, {})
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_protected_files_are_not_replaced(tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(b"precious")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write_model(path, "ROAD", {}, {})
    assert path.read_bytes() == b"precious"


def test_missing_files_and_folders_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "none.npz")
    with pytest.raises(IsADirectoryError):
        read_model(tmp_path)


def npy_bytes(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "not a roadict model but something else"),
        (npy_bytes(np.eye(2)), "not a roadict model but something else"),
        (pickle.dumps({"components": [1.0]}), "not a roadict model but something else"),
        (b"PK", "damaged or cut short"),
        (b"PK\x03\x04 and then rubbish", "damaged or cut short"),
    ],
)
def test_other_files_are_refused(tmp_path, contents, message):
    path = tmp_path / "model.npz"
    path.write_bytes(contents)
    assert_refused(path, message)


def test_pickles_are_never_run(tmp_path, model):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / "bare").write_bytes(pickle.dumps(Bomb()))
    objects = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "inside.npz", components=objects)
    np.savez(model, **entries(model) | {"components": objects})
    assert_refused(tmp_path / "bare", "not a roadict model")
    assert_refused(tmp_path / "inside.npz", "not a roadict model")
    assert_refused(model, "pickled objects at its entry 'components'")
    assert not (tmp_path / "exploded").exists()


def test_every_truncation_is_refused(model, tmp_path):
    raw = model.read_bytes()
    cut = tmp_path / "cut.npz"
    for length in {*range(0, len(raw), 13), *range(len(raw) - 30, len(raw))}:
        cut.write_bytes(raw[:length])
        assert_refused(cut, "is empty" if length == 0 else "damaged|not a roadict model")


@pytest.mark.parametrize(("flip", "step"), [(0x01, 5), (0x80, 4), (0xFF, 1)])
def test_flipped_bytes_are_refused_or_harmless(tmp_path, flip, step):
    model, bad = tmp_path / "model.npz", tmp_path / "bad.npz"
    write_model(model, "ROAD", {"rho": 1.5}, {"components": ARRAYS["components"]})
    raw = model.read_bytes()
    refused = 0
    for place in range(0, len(raw), step):
        bad.write_bytes(raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :])
        try:
            kind, parameters, arrays = read_model(bad)
        except ModelFileError:
            refused += 1
        else:  # dates and other fields without contents
            assert (kind, parameters) == ("ROAD", {"rho": 1.5})
            assert_same_arrays(arrays, {"components": ARRAYS["components"]})
    assert refused > 0.6 * len(raw) / step


def test_foreign_archives_are_refused_with_a_list_of_their_contents(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, signals=np.eye(2), labels=np.arange(2))
    assert_refused(path, "not a roadict model .it holds labels, signals.")
    np.savez(path, format=np.array(["roadict-model"]))
    assert_refused(path, "not a roadict model")
    np.savez(path)
    assert_refused(path, "not a roadict model .it holds nothing.")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")
    assert_refused(path, "not a roadict model .it holds notes.txt.")


def test_foreign_entries_are_never_inflated(tmp_path, model):
    """Whoever inflates this one notices that it cannot be: it has an invalid block."""
    alone = tmp_path / "bomb.npz"
    np.savez(alone)
    for path, message in ((alone, "it holds bomb"), (model, "entries that are not the model's .'bomb'.")):
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.npy", bytes(10_000))
        raw = path.read_bytes()
        start = raw.rindex(b"bomb.npy", 0, raw.index(b"PK\x01\x02")) + len("bomb.npy")
        path.write_bytes(raw[:start] + b"\xff" * 8 + raw[start + 8 :])
        with zipfile.ZipFile(path) as archive, pytest.raises(zlib.error):
            archive.read("bomb.npy")
        assert_refused(path, message)


def test_entries_that_every_model_has_are_of_moderate_size(model, monkeypatch):
    read_model(model)
    monkeypatch.setattr(models, "MAX_HEAD", 500)
    assert_refused(model, "has an entry 'parameters' of [0-9,]+ bytes")


@pytest.mark.parametrize("name", ["format", "format_version", "kind", "parameters", "array_names", "codes"])
def test_missing_entries_are_named(model, name):
    found = entries(model)
    del found[name]
    np.savez(model, **found)
    assert_refused(model, "not a roadict model" if name == "format" else f"lacks the entry '{name}'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format_version": 2, "written_by": "roadict 9.1"},
            r"format 2 .* up to 1; install roadict 9\.1 or newer",
        ),
        ({"format_version": 2, "written_by": ""}, "install a newer roadict that reads format 2"),
        ({"format_version": 0}, "'format_version'"),
        ({"format_version": "1"}, "'format_version'"),
        ({"format_version": [1, 1]}, "'format_version'"),
        ({"format": "other-model"}, "not a roadict model"),
        ({"kind": 3}, "'kind' that is not text"),
        ({"array_names": 3}, "lacks the entry 3"),
        ({"parameters": "{rho: 1"}, "parameters that are not JSON"),
        ({"parameters": "[" * 200_000}, "parameters that are not JSON"),
        ({"parameters": 3}, "parameters that are not JSON"),
        ({"parameters": "[1]"}, "not a JSON object"),
    ],
)
def test_wrong_entries_are_refused(model, change, message):
    np.savez(model, **{**entries(model), **{name: np.array(value) for name, value in change.items()}})
    assert_refused(model, message)


def test_headers_that_promise_too_much_are_refused(model):
    header = npy_bytes(np.zeros(2)).replace(b"(2,), }", b"(2" + b"0" * 14 + b",), }"[:7])
    with zipfile.ZipFile(model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(model, "w") as archive:
        for name, content in (members | {"components.npy": header}).items():
            archive.writestr(name, content)
    assert_refused(model, "damaged .* 'components'")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_under_other_compressions_is_refused(tmp_path, method):
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("components.npy", npy_bytes(ARRAYS["components"]))
    raw = path.read_bytes()
    for place in range(46, 120):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0xFF]) + raw[place + 1 :])
        assert_refused(path, "damaged|not a roadict model")  # LZMA has bytes that are never read


def test_files_without_the_name_of_the_writer_are_read(model):
    found = entries(model)
    del found["written_by"]
    np.savez(model, **found)
    assert read_model(model)[0] == "ROAD"
