"""Output that is closed, full or lost: the work is done all the same, and the exit code tells of lost results."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from skimage.data import camera

from program import GUARD, PROGRAM
from roadict import SparseCoder, pictures
from roadict.cli import learn
from roadict.files.atomic import RescuedError, write_or_rescue
from roadict.pictures import files

from .small import SHORT, assert_same_model

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full and POSIX descriptors")


def run_shell(redirections, *arguments):
    """Run the program with redirections of a shell; returns its exit code and what arrives on standard output."""
    line = f'exec "$@" {redirections}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *PROGRAM, *arguments], capture_output=True, text=True, timeout=GUARD, check=False
    )
    return done.returncode, done.stdout


LEARN = ("learn", "data.npy", "-k", "8", "-o", "out.npz")


@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full", "2> >(true)", "<&- 2>&-"])
def test_a_lost_standard_error_changes_nothing_else(folder, lost):
    code, out = run_shell(lost, *LEARN, *SHORT)
    assert code == 0
    assert out.endswith("model: out.npz\n")
    assert_same_model("out.npz", "model.npz")


def test_a_lost_terminal_changes_nothing_else(folder):
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*PROGRAM, *LEARN, "--tol", "0", "--max-iter", "3000"], stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        os.read(ours, 1)  # it has begun to show progress
        os.close(ours)
        out, _ = process.communicate(timeout=GUARD)
    assert process.returncode == 0
    assert out.endswith("model: out.npz\n")
    assert Path("out.npz").exists()


def test_a_warning_that_cannot_be_shown_costs_no_model(folder):
    assert run_shell("2>/dev/full", *LEARN, "-q", "--max-iter", "3") == (0, "")
    assert Path("out.npz").exists()


def test_codes_are_written_without_a_standard_error(folder):
    code, out = run_shell("2>&-", "encode", "model.npz", "data.npy", "-o", "codes.npz")
    assert (code, out.splitlines()[-1]) == (0, "codes: codes.npz")


@pytest.mark.parametrize("lost", [">/dev/full", ">&-", "<&- >&- 2>&-"])
def test_results_that_cannot_be_printed_show_in_the_exit_code_alone(folder, lost):
    assert run_shell(f"{lost}", *LEARN, *SHORT)[0] == 1
    assert_same_model("out.npz", "model.npz")


def test_nothing_to_print_is_nothing_lost(folder):
    assert run_shell(">/dev/full", *LEARN, *SHORT, "--quiet") == (0, "")


@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full"])
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(folder, lost):
    assert run_shell(lost, "learn", "none.npy", "-o", "out.npz") == (2, "")


@pytest.fixture
def lost_disk(folder, monkeypatch):
    """A folder for output that disappears while signals are learned or coded, and one for temporary files."""
    Path("disk").mkdir()
    Path("temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", "temporary")

    def losing(work):
        def worked(*args, **options):
            Path("disk").rmdir()
            return work(*args, **options)

        return worked

    for name in ("denoise", "upscale"):
        monkeypatch.setattr(pictures, name, losing(getattr(pictures, name)))
    monkeypatch.setattr(learn, "fit_with_progress", losing(learn.fit_with_progress))
    monkeypatch.setattr(SparseCoder, "_transform", losing(SparseCoder._transform))


def rescued(result, output):
    """Return the file that a message names instead of the output."""
    assert (result.code, result.out) == (2, "")
    message = result.err.splitlines()[-1]
    found = re.fullmatch(
        rf"roadict: error: {output} cannot be written \(.+\); the result is in (\S+), move it", message
    )
    assert found, result.err
    return found[1]


def test_a_model_whose_disk_is_lost_is_saved_elsewhere(roadict, lost_disk):
    result = roadict("learn", "data.npy", "-k", "8", "-o", "disk/out.npz", *SHORT)
    path = rescued(result, "disk/out.npz")
    assert path.startswith("temporary/")
    assert path.endswith("-out.npz")
    assert_same_model(path, "model.npz")


def test_codes_whose_disk_is_lost_are_saved_elsewhere(roadict, lost_disk):
    path = rescued(roadict("encode", "model.npz", "data.npy", "-o", "disk/codes.npy"), "disk/codes.npy")
    assert np.load(path).shape == (120, 8)


def test_pictures_whose_disk_is_lost_are_saved_elsewhere(roadict, lost_disk):
    grey = np.random.default_rng(0).integers(100, 140, (16, 16), np.uint8)
    files.write_picture("grey.png", grey)
    pictures.SuperResolution(2, n_components=4, max_iter=1, random_state=0).fit([camera()[:64, :64]]).save("up.npz")
    commands = {(16, 16): ("denoise", "--sigma", "10"), (32, 32): ("upscale", "--scale", "2", "--model", "up.npz")}
    for size, (name, *options) in commands.items():
        Path("disk").mkdir(exist_ok=True)
        path = rescued(roadict(name, "grey.png", "-o", "disk/out.png", *options, "-q"), "disk/out.png")
        assert path.startswith("temporary/")
        assert files.read_picture(path).shape == size


def test_checkpoints_stay_if_the_model_could_not_be_saved_in_its_place(roadict, lost_disk):
    checkpoints = ("--checkpoint", "checkpoints", "--every", "0s")
    rescued(roadict("learn", "data.npy", "-k", "8", "-o", "disk/out.npz", *SHORT, *checkpoints), "disk/out.npz")
    assert list(Path("checkpoints").glob("*.json"))


def test_the_first_error_is_reported_if_no_disk_is_left(tmp_path):
    def write(path):
        raise OSError(28, "No space left on device", str(path))

    with pytest.raises(OSError, match=r"No space left on device: .*out\.npz"):
        write_or_rescue(write, tmp_path / "out.npz")


def test_the_result_goes_home_if_there_is_no_temporary_folder(tmp_path, monkeypatch):
    """As on a full disk, where ``tempfile`` finds none that it can write to."""

    def lost(*args):
        raise FileNotFoundError(2, "No usable temporary directory found")

    def write(path):
        if path.parent != tmp_path:
            raise OSError(28, "No space left on device", str(path))
        path.touch()

    monkeypatch.setattr(tempfile, "gettempdir", lost)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(RescuedError, match=re.escape(str(tmp_path))):
        write_or_rescue(write, Path("disk/out.npz"))


def test_the_result_stays_here_if_there_is_no_home_either(tmp_path, monkeypatch):
    def lost():
        raise RuntimeError("Could not determine home directory.")

    def write(path):
        if path.parent not in (tmp_path, Path("disk")):
            raise AssertionError(path)
        if path.parent == Path("disk"):
            raise OSError(28, "No space left on device", str(path))
        path.touch()

    monkeypatch.setattr(tempfile, "gettempdir", lost)
    monkeypatch.setattr(Path, "home", lost)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RescuedError, match="out"):
        write_or_rescue(write, Path("disk/out.npz"))
