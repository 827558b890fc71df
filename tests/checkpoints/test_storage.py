"""Checkpoints that are damaged, of other runs, or cannot be written: a clear word, and never a wrong model."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from kept_runs import CUTS, DATA, assert_same, road, stopping
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
    """A folder with two checkpoints of a run, and the model that it leads to."""
    folder, unbroken = stopped_once
    shutil.copytree(folder, tmp_path / "kept")
    return tmp_path / "kept", unbroken


def files(folder, number):
    return sorted(folder.glob(f"checkpoint-{number:06d}.*"))


def sets(folder):
    return {path: path.read_bytes() for path in folder.glob("checkpoint-*")}


def flip(path, place):
    raw = bytearray(path.read_bytes())
    raw[int(place * (len(raw) - 1))] ^= 0x10
    path.write_bytes(raw)


DAMAGE = {
    "flipped at the start": lambda path: flip(path, 0.0),
    "flipped within": lambda path: flip(path, 0.61),
    "flipped at the end": lambda path: flip(path, 1.0),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "of another set": lambda path: shutil.copy(str(path).replace("000031", "000030"), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_damaged_set_is_named_and_the_one_before_is_used(stopped, damage, which):
    folder, unbroken = stopped
    path = files(folder, 31)[which]
    DAMAGE[damage](path)
    resumed = road(rho=10.0, checkpoint=folder)
    if path.suffix == ".json" and damage in ("removed", "of another set"):
        # A set without its manifest was never finished, and the older one under this name is whole.
        assert_same(resumed.fit(DATA), unbroken)
        return
    with pytest.warns(UserWarning, match=rf"{path.name}.*resuming from .*checkpoint-000030.json"):
        resumed.fit(DATA)
    assert_same(resumed, unbroken)


def test_after_a_fall_back_the_damaged_set_goes_and_the_good_one_stays(stopped):
    folder, unbroken = stopped
    good = {path: path.read_bytes() for path in files(folder, 30)}
    flip(files(folder, 31)[1], 0.5)
    with pytest.warns(UserWarning, match="resuming from"), pytest.raises(RunStoppedError):
        road(rho=10.0, checkpoint=stopping(folder, 1)).fit(DATA)
    assert storage.numbers(folder) == [30, 32]
    assert {path: path.read_bytes() for path in files(folder, 30)} == good
    assert not files(folder, 31)
    flip(files(folder, 32)[1], 0.5)  # so that the good one is needed again
    with pytest.warns(UserWarning, match="resuming from .*000030"):
        assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), unbroken)


def test_every_byte_of_a_manifest_counts(stopped):
    folder, _ = stopped
    path = folder / "checkpoint-000031.json"
    raw = path.read_bytes()
    problem = json.loads(raw)["content"]["problem"]
    for place in range(0, len(raw), 7):
        flipped = bytearray(raw)
        flipped[place] ^= 0x01
        path.write_bytes(flipped)
        assert says_the_same(raw, flipped) or is_refused(folder, problem), place


def says_the_same(raw, flipped):
    """White space may change."""
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


def test_two_damaged_sets_are_an_error_that_names_them(stopped):
    folder, _ = stopped
    for number in (30, 31):
        flip(files(folder, number)[1], 0.5)
    with pytest.raises(CheckpointError, match=r"checkpoint-000031.*checkpoint-000030.*remove the folder"):
        road(rho=10.0, checkpoint=folder).fit(DATA)


@pytest.mark.parametrize(
    ("parameters", "data", "said"),
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
def test_a_checkpoint_of_another_problem_is_refused(stopped, parameters, data, said):
    folder, _ = stopped
    before = sorted(folder.iterdir())
    with pytest.raises(CheckpointError, match=f"checkpoint-000031.json is of another problem.*{said}"):
        road(**parameters, checkpoint=folder).fit(data)
    assert sorted(folder.iterdir()) == before


def test_what_does_not_matter_may_differ(stopped):
    folder, unbroken = stopped
    other = road(rho=10.0, n_jobs=1, callback=lambda snapshot: None, transform_algorithm="omp", checkpoint=folder)
    assert_same(other.fit(DATA), unbroken)


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


def test_a_folder_with_checkpoints_is_not_overwritten_unasked(stopped):
    folder, _ = stopped
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        road(rho=10.0, checkpoint=Checkpoint(folder, resume=False)).fit(DATA)


def test_a_second_run_in_the_folder_is_refused_while_the_first_lasts(tmp_path):
    said = []

    def start_another(snapshot):
        with pytest.raises(ValueError, match=rf"{tmp_path} is in use by process {os.getpid()} on ") as refusal:
            road(rho=10.0, checkpoint=tmp_path).fit(DATA)
        said.append(str(refusal.value))
        return snapshot.iteration == 2

    road(rho=10.0, callback=start_another, checkpoint=Checkpoint(tmp_path, every=0)).fit(DATA)
    assert len(said) == 2
    assert "processes outlive a torchrun that was killed" in said[0]
    assert road(rho=10.0, checkpoint=tmp_path).fit(DATA).n_iter_ > 2
    assert not list(tmp_path.glob(f"{lock.NAME}*"))


def test_a_run_that_torchrun_starts_again_resumes_what_is_its_own_and_nothing_else(stopped, monkeypatch):
    folder, unbroken = stopped
    mark = folder / lock.NAME

    def restarted():
        return road(rho=10.0, checkpoint=Checkpoint(folder, resume=False)).fit(DATA)

    own = mark.read_bytes()
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        restarted()  # not a restart at all
    assert mark.read_bytes() == own, "who is refused owns nothing"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    facts = json.loads(own)
    for other in (
        json.dumps(facts | {"starters": [["elsewhere", *facts["starters"][0][1:]]]}).encode(),
        json.dumps(facts | {"starters": [[*facts["starters"][0][:2], "long ago"]]}).encode(),
        b"",
        own[:-9],
        b"[]",
    ):
        mark.write_bytes(other)
        with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
            restarted()
    mark.write_bytes(own)
    assert_same(restarted(), unbroken)


def test_the_layout_of_another_machine_is_refused(stopped, monkeypatch):
    folder, _ = stopped
    monkeypatch.setattr("roadict.engines.cpu.fused.width_of", lambda dtype: 2)
    with pytest.raises(CheckpointError, match="another layout"):
        road(rho=10.0, checkpoint=folder).fit(DATA)


def test_leftovers_of_a_killed_run_are_swept_away(stopped):
    folder, unbroken = stopped
    (folder / ".roadict-0123456789abcdef.tmp").write_bytes(b"half")
    (folder / "checkpoint-000032.rank-0.bin").write_bytes(b"half")
    (folder / "notes.txt").write_text("mine")
    assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), unbroken)
    assert {path.name.split(".")[0] for path in folder.iterdir()} == {"checkpoint-000030", "checkpoint-000031", "notes"}


def test_files_of_other_programs_stay(stopped):
    folder, unbroken = stopped
    theirs = [
        folder / name
        for name in ("checkpoint-best.bin", "checkpoint-500.bin", "checkpoint-500.json", "checkpoint-².json")
    ]
    for path in theirs:
        path.write_text("mine")
    assert_same(road(rho=10.0, checkpoint=folder).fit(DATA), unbroken)
    storage.clear(folder)
    assert sorted(folder.iterdir()) == sorted(theirs)


def test_a_full_disk_leaves_the_checkpoint_before_and_the_run_goes_on(stopped, monkeypatch):
    folder, unbroken = stopped
    before = sets(folder)
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.warns(UserWarning, match="No space left on device"):
        model = road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA)
    assert_same(model, unbroken)
    assert sets(folder) == before
    with pytest.raises(RunStoppedError, match=r"No space left on device.*earlier one is as it was"):
        road(rho=10.0, checkpoint=stopping(folder, 3)).fit(DATA)
    monkeypatch.setattr(os, "fsync", real)
    assert sets(folder) == before


def test_a_disk_that_turns_read_only_does_not_end_the_run(stopped, monkeypatch):
    folder, unbroken = stopped

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.warns(UserWarning, match="Read-only file system"):
        model = road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA)
    assert_same(model, unbroken)


def test_old_sets_that_cannot_be_removed_do_not_end_the_run(stopped, monkeypatch):
    folder, unbroken = stopped
    real = Path.unlink

    def refuse(path, missing_ok=False):
        if path.parent == folder and path.name.startswith("checkpoint-"):
            raise OSError(errno.EPERM, "Operation not permitted")
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert_same(road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA), unbroken)


def test_a_disk_that_is_full_for_the_manifest_alone(stopped, monkeypatch):
    folder, unbroken = stopped
    before = sets(folder)
    real = os.replace

    def replace(source, target):
        if str(target).endswith(".json"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.warns(UserWarning, match="No space left"):
        assert_same(road(rho=10.0, checkpoint=Checkpoint(folder, every=0)).fit(DATA), unbroken)
    assert sets(folder) == before


def test_a_rank_whose_disk_is_full_is_heard_by_all(tmp_path, on_ranks, monkeypatch):
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


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"checkpoint folder .*file.* cannot be used"):
        road(rho=10.0, checkpoint=tmp_path / "file").fit(DATA)


def test_files_hold_plain_numbers_and_nothing_else(stopped):
    folder, _ = stopped
    content = json.loads(Path(folder / "checkpoint-000031.json").read_text())["content"]
    for file in [content["shared"], *content["ranks"]]:
        size = sum(int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize for entry in file["arrays"])
        assert (folder / file["file"]).stat().st_size == size == file["bytes"]
    with pytest.raises(DamagedError):
        storage.read(folder, 29, content["problem"], len(DATA), SERIAL)
