"""Checkpoints that are damaged, of other runs, or cannot be written: a clear message, and never a wrong model."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from checkpointed_runs import CUTS, DATA, assert_same, road, stopping
from roadict.checkpoints import lock, storage
from roadict.checkpoints.schedule import Checkpoint, RunStoppedError
from roadict.checkpoints.storage import CheckpointError, DamagedError
from roadict.ranks.comm import SERIAL

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(RunStoppedError):
        road(rho=10.0, checkpoint=stopping(folder, 31, every=0)).fit(DATA)
    assert storage.numbers(folder) == [30, 31]
    return folder, road(rho=10.0).fit(DATA)


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A folder with two checkpoints of a run, and the model that the run ends with."""
    folder, uninterrupted = stopped_once
    shutil.copytree(folder, tmp_path / "checkpoints")
    return tmp_path / "checkpoints", uninterrupted


def files(folder, number):
    return sorted(folder.glob(f"checkpoint-{number:06d}.*"))


def contents(folder):
    return {path: path.read_bytes() for path in folder.glob("checkpoint-*")}


def flip(path, position):
    raw = bytearray(path.read_bytes())
    raw[int(position * (len(raw) - 1))] ^= 0x10
    path.write_bytes(raw)


DAMAGE = {
    "flipped at the start": lambda path: flip(path, 0.0),
    "flipped within": lambda path: flip(path, 0.61),
    "flipped at the end": lambda path: flip(path, 1.0),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "of another checkpoint": lambda path: shutil.copy(str(path).replace("000031", "000030"), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_damaged_checkpoint_is_reported_and_the_previous_one_is_used(stopped, damage, which):
    folder, uninterrupted = stopped
    path = files(folder, 31)[which]
    DAMAGE[damage](path)
    resumed = road(rho=10.0, checkpoint=folder)
    if path.suffix == ".json" and damage in ("removed", "of another checkpoint"):
        # A checkpoint without its manifest was never finished, and the older one under this name is intact.
        assert_same(resumed.fit(DATA), uninterrupted)
        return
    with pytest.warns(UserWarning, match=rf"{path.name}.*resuming from .*checkpoint-000030.json"):
        resumed.fit(DATA)
    assert_same(resumed, uninterrupted)


def test_after_a_fallback_the_damaged_checkpoint_is_removed_and_the_intact_one_is_retained(stopped):
    folder, uninterrupted = stopped
    intact = {path: path.read_bytes() for path in files(folder, 30)}
    flip(files(folder, 31)[1], 0.5)
    with pytest.warns(UserWarning, match="resuming from"), pytest.raises(RunStoppedError):
        road(rho=10.0, checkpoint=stopping(folder, 1)).fit(DATA)
    assert storage.numbers(folder) == [30, 32]
    assert {path: path.read_bytes() for path in files(folder, 30)} == intact
    assert not files(folder, 31)
    flip(files(folder, 32)[1], 0.5)  # so that the intact one is needed again
    with pytest.warns(UserWarning, match="resuming from .*000030"):
        assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), uninterrupted)


def test_every_byte_of_a_manifest_counts(stopped):
    folder, _ = stopped
    path = folder / "checkpoint-000031.json"
    raw = path.read_bytes()
    problem = json.loads(raw)["content"]["problem"]
    for position in range(0, len(raw), 7):
        flipped = bytearray(raw)
        flipped[position] ^= 0x01
        path.write_bytes(flipped)
        assert is_same_json(raw, flipped) or is_refused(folder, problem), position


def is_same_json(raw, flipped):
    """White space may differ."""
    try:
        return json.loads(raw) == json.loads(flipped)
    except ValueError:
        return False


def is_refused(folder, problem):
    try:
        storage.read(folder, 31, problem, len(DATA), SERIAL)
    except CheckpointError:
        return True
    return False


def test_two_damaged_checkpoints_are_an_error_that_names_them(stopped):
    folder, _ = stopped
    for number in (30, 31):
        flip(files(folder, number)[1], 0.5)
    with pytest.raises(CheckpointError, match=r"checkpoint-000031.*checkpoint-000030.*remove the folder"):
        road(rho=10.0, checkpoint=folder).fit(DATA)


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"rho": 11.0}, DATA, "rho: 10.0 there, 11.0 here"),
        ({"rho": 10.0, "max_iter": 61}, DATA, "max_iter: 60 there, 61 here"),
        ({"rho": 10.0, "random_state": 1}, DATA, "random_state: 0 there, 1 here"),
        ({"rho": 10.0, "dict_init": np.eye(9, 6) + 0.1}, DATA, "dict_init: None there"),
        ({"rho": 10.0}, DATA[::-1], "data: "),
        ({"rho": 10.0}, DATA * (1 + 1e-15), "data: "),
        ({"rho": 10.0}, DATA.astype(np.float32), "dtype: 'float64' there, 'float32' here"),
        ({"rho": 10.0}, DATA[:-1], "n_samples: 90 there, 89 here"),
        ({"rho": 10.0, "engine": "reference"}, DATA, "engine: 'numba' there, 'reference' here"),
    ],
)
def test_a_checkpoint_of_another_problem_is_refused(stopped, parameters, data, message):
    folder, _ = stopped
    before = sorted(folder.iterdir())
    with pytest.raises(CheckpointError, match=f"checkpoint-000031.json belongs to another problem.*{message}"):
        road(**parameters, checkpoint=folder).fit(data)
    assert sorted(folder.iterdir()) == before


def test_parameters_that_do_not_change_the_model_may_differ(stopped):
    folder, uninterrupted = stopped
    other = road(rho=10.0, n_jobs=1, callback=lambda snapshot: None, transform_algorithm="omp", checkpoint=folder)
    assert_same(other.fit(DATA), uninterrupted)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (99, "written by a later roadict, as version 99; install that one"),
        (1, "written by an earlier roadict, as version 1; resume it with that one, or start again in an empty folder"),
    ],
)
def test_another_format_is_refused_with_the_remedy(stopped, version, message):
    folder, _ = stopped
    path = folder / "checkpoint-000031.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version}))
    with pytest.raises(CheckpointError, match=message):
        road(rho=10.0, checkpoint=folder).fit(DATA)


def test_a_folder_with_checkpoints_is_not_overwritten_by_default(stopped):
    folder, _ = stopped
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        road(rho=10.0, checkpoint=Checkpoint(folder, resume=False)).fit(DATA)


def test_a_second_run_in_the_folder_is_refused_during_the_first(tmp_path):
    messages = []

    def start_another(snapshot):
        with pytest.raises(ValueError, match=rf"{tmp_path} is in use by process {os.getpid()} on ") as refusal:
            road(rho=10.0, checkpoint=tmp_path).fit(DATA)
        messages.append(str(refusal.value))
        return snapshot.iteration == 2

    road(rho=10.0, callback=start_another, checkpoint=Checkpoint(tmp_path, every=0)).fit(DATA)
    assert len(messages) == 2
    assert "processes outlive a torchrun that was killed" in messages[0]
    assert road(rho=10.0, checkpoint=tmp_path).fit(DATA).n_iter_ > 2
    assert not list(tmp_path.glob(f"{lock.OWNER_FILE}*"))


def test_a_run_that_torchrun_restarts_resumes_only_its_own_checkpoints(stopped, monkeypatch):
    folder, uninterrupted = stopped
    owner_file = folder / lock.OWNER_FILE

    def restarted():
        return road(rho=10.0, checkpoint=Checkpoint(folder, resume=False)).fit(DATA)

    own = owner_file.read_bytes()
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        restarted()  # not a restart at all
    assert owner_file.read_bytes() == own, "a refused run owns nothing"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    owner = json.loads(own)
    for other in (
        json.dumps(owner | {"starters": [["elsewhere", *owner["starters"][0][1:]]]}).encode(),
        json.dumps(owner | {"starters": [[*owner["starters"][0][:2], "long ago"]]}).encode(),
        b"",
        own[:-9],
        b"[]",
    ):
        owner_file.write_bytes(other)
        with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
            restarted()
    owner_file.write_bytes(own)
    assert_same(restarted(), uninterrupted)


def test_the_layout_of_another_machine_is_refused(stopped, monkeypatch):
    folder, _ = stopped
    monkeypatch.setattr("roadict.engines.cpu.fused.width_of", lambda dtype: 2)
    with pytest.raises(CheckpointError, match="another layout"):
        road(rho=10.0, checkpoint=folder).fit(DATA)


def test_leftovers_of_a_killed_run_are_removed(stopped):
    folder, uninterrupted = stopped
    (folder / ".roadict-0123456789abcdef.tmp").write_bytes(b"half")
    (folder / "checkpoint-000032.rank-0.bin").write_bytes(b"half")
    (folder / "notes.txt").write_text("mine")
    assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), uninterrupted)
    names = {path.name.split(".")[0] for path in folder.iterdir() if path.name != storage.FINISHED_FILE}
    assert names == {"checkpoint-000030", "checkpoint-000031", "notes"}


def test_files_of_other_programs_are_not_removed(stopped):
    folder, uninterrupted = stopped
    theirs = [
        folder / name
        for name in ("checkpoint-best.bin", "checkpoint-500.bin", "checkpoint-500.json", "checkpoint-².json")
    ]
    for path in theirs:
        path.write_text("mine")
    assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), uninterrupted)
    storage.clear(folder)
    assert sorted(folder.iterdir()) == sorted(theirs)


def test_a_full_disk_leaves_earlier_checkpoints_and_the_run_continues(stopped, monkeypatch):
    folder, uninterrupted = stopped
    before = contents(folder)
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.warns(UserWarning, match="No space left on device"):
        model = road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA)
    assert_same(model, uninterrupted)
    assert contents(folder) == before
    with pytest.raises(RunStoppedError, match=r"No space left on device.*earlier checkpoints are unchanged"):
        road(rho=10.0, checkpoint=stopping(folder, 3)).fit(DATA)
    monkeypatch.setattr(os, "fsync", real)
    assert contents(folder) == before


def test_a_disk_that_becomes_read_only_does_not_stop_the_run(stopped, monkeypatch):
    folder, uninterrupted = stopped

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.warns(UserWarning, match="Read-only file system"):
        model = road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA)
    assert_same(model, uninterrupted)


def test_old_checkpoints_that_cannot_be_removed_do_not_stop_the_run(stopped, monkeypatch):
    folder, uninterrupted = stopped
    real = Path.unlink

    def refuse(path, missing_ok=False):
        if path.parent == folder and path.name.startswith("checkpoint-"):
            raise OSError(errno.EPERM, "Operation not permitted")
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert_same(road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA), uninterrupted)


def test_a_disk_that_is_full_for_the_manifest_only(stopped, monkeypatch):
    folder, uninterrupted = stopped
    before = contents(folder)
    real = os.replace

    def replace(source, target):
        if str(target).endswith(".json"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.warns(UserWarning, match="No space left"):
        assert_same(road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA), uninterrupted)
    assert contents(folder) == before


def test_all_ranks_learn_that_the_disk_of_one_is_full(tmp_path, on_ranks, monkeypatch):
    real = storage._write_arrays

    def write(path, arrays):
        if path.name.endswith("rank-1.bin"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, arrays)

    monkeypatch.setattr(storage, "_write_arrays", write)
    parts = np.split(DATA, CUTS[2])

    def fit(comm):
        return road(rho=10.0, max_iter=5, checkpoint=Checkpoint(tmp_path, every=0)).fit(parts[comm.rank])

    with pytest.warns(UserWarning, match="No space left"):
        assert [model.n_iter_ for model in on_ranks(2, fit)] == [5, 5]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"file is a file, not a folder; choose another"):
        road(rho=10.0, checkpoint=tmp_path / "file").fit(DATA)


def test_files_hold_plain_numbers_and_nothing_else(stopped):
    folder, _ = stopped
    content = json.loads(Path(folder / "checkpoint-000031.json").read_text())["content"]
    for file in [content["shared"], *content["ranks"]]:
        size = sum(int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize for entry in file["arrays"])
        assert (folder / file["file"]).stat().st_size == size == file["bytes"]
    with pytest.raises(DamagedError):
        storage.read(folder, 29, content["problem"], len(DATA), SERIAL)


@pytest.mark.parametrize("text", ["", "{}", '{"content": {"facts": {"share": null}}}', "[1]"])
def test_a_checkpoint_that_does_not_tell_its_share_begins_at_0(tmp_path, text):
    assert storage.saved_share(tmp_path / "missing") == 0
    (tmp_path / "checkpoint-000001.json").write_text(text)
    assert storage.saved_share(tmp_path) == 0
