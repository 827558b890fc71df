"""Bad input and wrong usage: one line, exit code 2, and nothing is written."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from program import assert_refused, contents
from roadict import ROAD, load
from roadict.drawing.raster import png

from .small import DATA, LEARN, SHORT

ROW, COLUMN = np.argwhere(DATA > 1)[0] + 1
INFINITE = f"inf.npy contains infinity in {(DATA > 1).sum()} places (first: row {ROW}, column {COLUMN}); remove"


@pytest.fixture
def pitfalls(folder):
    """Add files with everything that can be wrong."""
    Path("text.csv").write_text("1,2\n3,red\n4,5\n")
    Path("ragged.csv").write_text("1,2,3\n4,5\n6,7,8\n")
    Path("empty.csv").write_text("")
    Path("number.csv").write_text("3\n")
    Path("header.csv").write_text("just a header\n")
    Path("data.json").write_text("[[1, 2], [3, 4]]")
    np.save("nan.npy", np.where(DATA > 1, np.nan, DATA))
    np.save("inf.npy", np.where(DATA > 1, np.inf, DATA))
    np.save("one.npy", DATA[:1])
    np.save("zero.npy", 0 * DATA)
    np.save("narrow.npy", DATA[:, :5])
    np.save("complex.npy", DATA + 1j)
    np.save("objects.npy", np.array([[1, {}], [2, 3]], dtype=object), allow_pickle=True)
    Path("cut.npy").write_bytes(Path("data.npy").read_bytes()[:1000])
    Path("cut.npz").write_bytes(Path("model.npz").read_bytes()[:1000])
    Path("pickled.npz").write_bytes(pickle.dumps({"components_": DATA}))
    np.savez("objects.npz", components_=np.array([{}], dtype=object))
    Path("folder.npz").mkdir()
    Path("folder.png").mkdir()
    Path("link.npz").symlink_to("data.npz")
    for suffix in ("npy", "npz", "png", "csv"):
        Path(f"broken.{suffix}").symlink_to("nowhere")
        Path(f"loop.{suffix}").symlink_to(f"loop.{suffix}")
    Path("folder.csv").mkdir()
    Path("folder.npy").mkdir()
    Path("small.png").write_bytes(png(np.zeros((32, 32))))
    return folder


FILES = {
    "none": "none.{} does not exist; check its name and folder",
    "broken": "broken.{} is a link to nowhere, which does not exist; check its name and folder",
    "loop": "loop.{} is a link that leads back to itself; choose another",
    "folder": "folder.{} is a folder, not a file; choose another",
    "data.npy/no": "data.npy is a file, not a folder; choose another",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_told_in_words(roadict, pitfalls, name):
    """By every command and for every kind of file that it reads."""
    before = contents(pitfalls)
    for suffix, command in [
        ("csv", "learn {} -o out.npz"),
        ("npy", "learn {} -o out.npz"),
        ("npz", "learn {} -o out.npz"),
        ("csv", "learn data.npy -k 8 -o out.npz --fixed {}"),
        ("npz", "encode {} data.npy -o codes.npz"),
        ("npy", "encode model.npz {} -o codes.npz"),
        ("csv", "encode model.npz {} -o codes.npz"),
        ("npz", "show {} -o atoms.png"),
        ("png", "upscale {} -o out.png"),
        ("npz", "upscale small.png -o out.png --model {}"),
        ("png", "denoise {} -o out.png"),
        ("png", "denoise small.png -o out.png --compare {}"),
        ("png", "inpaint {} -o out.png"),
        ("png", "inpaint small.png -o out.png --mask {}"),
    ]:
        if name == "folder" and command.startswith("learn {}"):
            continue  # learn reads folders of parts
        result = roadict(*command.format(f"{name}.{suffix}").split())
        assert_refused(result, f"roadict: error: {FILES[name].format(suffix)}")
    assert contents(pitfalls) == before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "none does not exist"),
        ("broken.npy", "broken.npy is a link to nowhere, which does not exist"),
        ("data.npy", "data.npy is a file, not a folder"),
    ],
)
def test_a_folder_that_is_none_is_told_in_words(roadict, pitfalls, path, message):
    commands = ["upscale small.png -o out.png --train {}"]
    commands += ["demo --out {}", "learn data.npy -k 8 -o out.npz --checkpoint {}"] if path != "none" else []
    for command in commands:
        assert_refused(roadict(*command.format(path).split()), message)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may read everywhere")
def test_a_file_that_may_not_be_read_is_told_in_words(roadict, folder):
    Path("data.npy").chmod(0)
    assert_refused(roadict("learn", "data.npy", *LEARN), "data.npy may not be used: its permissions")


def test_warnings_of_work_that_fails_are_not_lost(roadict, folder):
    Path("index.csv").write_text(",a,b\n0,1,2\n1,inf,4\n2,5,6\n")
    result = roadict("learn", "index.csv", "-k", "2", "-o", "out.npz")
    assert result.code == 2
    warning, error = result.err.splitlines()
    assert warning.startswith("roadict: warning: index.csv has a first column without a name")
    assert error.startswith("roadict: error: index.csv contains infinity in 1 place (first: line 3, column 2); ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "none.npy", *LEARN), "none.npy"),
        (("learn", "folder.npz", *LEARN), "folder.npz"),
        (("learn", "text.csv", *LEARN), "text.csv has 'red' in line 2, column 2"),
        (("learn", "ragged.csv", *LEARN), "ragged.csv has 2 cells in line 2"),
        (("learn", "empty.csv", *LEARN), "empty.csv is empty"),
        (("learn", "header.csv", *LEARN), "header.csv holds no numbers"),
        (("learn", "none.npy", *LEARN), "none.npy does not exist; check its name and folder"),
        (("learn", "data.npy", "-k", "99999999", "-o", "out.npz"), "--components 99999999 needs at least 74,5"),
        (("learn", "data.npy", "-k", "1" + "0" * 25, "-o", "out.npz", "--method", "mod"), "this machine has"),
        (("learn", "data.npy", *LEARN, "--n-init", "100000000"), "--n-init 100000000 must be at most 10000"),
        (("learn", "nan.npy", *LEARN), "NaN"),
        (("learn", "inf.npy", *LEARN), INFINITE),
        (("learn", "one.npy", *LEARN), "one.npy holds 1 sample, one per row; learning needs at least 2"),
        (("learn", "number.csv", *LEARN, "--method", "ksvd"), "number.csv holds 1 sample, one per row; learning needs"),
        (("learn", "zero.npy", *LEARN), "all entries of X are zero"),
        (("learn", "complex.npy", *LEARN), "complex numbers"),
        (("learn", "objects.npy", *LEARN), "pickled objects"),
        (("learn", "cut.npy", *LEARN), "cut.npy is damaged or cut short"),
        (("learn", "data.json", *LEARN), "data.json has the extension '.json'"),
        (("learn", "data.npz", *LEARN, "--key", "nope"), "has no array 'nope'"),
        (("learn", "data.npy", "-o", "missing/out.npz"), "missing does not exist"),
        (("learn", "data.npz", "-o", "data.npz"), "output data.npz is also an input"),
        (("learn", "data.npz", "-o", "link.npz"), "output link.npz is also an input"),
        (("learn", "data.npy", "-o", "folder.npz"), "output folder.npz is a folder"),
        (("learn", "data.npy", "-o", "out.pkl"), "output out.pkl must end in .npz"),
        (("learn", "data.npy", "-o", "out"), "output out must end in .npz"),
        (("learn", "data.npy", *LEARN, "--epsilon", "much"), "--epsilon much must be a number or auto"),
        (("learn", "data.npy", *LEARN, "--epsilon", "-1"), "--epsilon -1 must be"),
        (("learn", "data.npy", *LEARN, "--epsilon", "nan"), "--epsilon nan must be"),
        (("learn", "data.npy", *LEARN, "--epsilon", "1.5"), "--epsilon 1.5 must be below 1"),
        (("learn", "data.npy", "-k", "2", "-o", "out.npz", "--epsilon", "0"), "the smallest relative error"),
        (("learn", "data.npy", *LEARN, "--rho", "big"), "--rho big must be one number, or three"),
        (("learn", "data.npy", *LEARN, "--rho", "1,2"), "--rho 1,2 must be one number, or three"),
        (("learn", "data.npy", *LEARN, "--rho", ""), "--rho"),
        (("learn", "data.npy", *LEARN, "--rho", "0"), "--rho 0 must"),
        (("learn", "data.npy", *LEARN, "--rho", "1,2,3"), "inexact"),
        (("learn", "data.npy", *LEARN, "--beta", "x", "--formulation", "inexact"), "--beta x must be one number"),
        (
            ("learn", "data.npy", *LEARN, "--beta", "9", "--rho", "5", "--formulation", "inexact"),
            "--rho 5 must exceed --beta 9",
        ),
        (("learn", "data.npy", *LEARN, "--alpha", "-1", "--formulation", "lasso"), "--alpha -1 must"),
        (("learn", "data.npy", "-k", "0", "-o", "out.npz"), "--components 0 must be a whole number of at least 1"),
        (("learn", "data.npy", *LEARN, "--max-iter", "0"), "--max-iter 0 must"),
        (("learn", "data.npy", *LEARN, "--tol", "-1"), "--tol -1 must"),
        (("learn", "data.npy", *LEARN, "--n-init", "0"), "--n-init 0 must"),
        (("learn", "data.npy", *LEARN, "--jobs", "0"), "--jobs 0 must"),
        (("learn", "data.npy", *LEARN, "--seed", "-1"), "--seed -1 must be a whole number of at least 0;"),
        (("learn", "data.npy", *LEARN, "--engine", "gpu"), "--engine gpu must"),
        (("learn", "data.npy", *LEARN, "--formulation", "ridge"), "--formulation ridge must"),
        (("learn", "nan.npy", *LEARN, "--missing", "--formulation", "inexact"), "missing values"),
        (("encode", "none.npz", "data.npy", "-o", "codes.npz"), "none.npz"),
        (("encode", "cut.npz", "data.npy", "-o", "codes.npz"), "cut.npz is damaged or cut short"),
        (("encode", "pickled.npz", "data.npy", "-o", "codes.npz"), "pickled.npz is not a roadict model"),
        (
            ("encode", "objects.npz", "data.npy", "-o", "codes.npz"),
            "objects.npz is an .npz file but not a roadict model",
        ),
        (("encode", "data.npz", "data.npy", "-o", "codes.npz"), "not a roadict model"),
        (("encode", "model.npz", "narrow.npy", "-o", "codes.npz"), "narrow.npy has 5 features per sample, but the"),
        (
            ("encode", "model.npz", "number.csv", "-o", "codes.npz"),
            "number.csv has 1 feature per sample, but the model",
        ),
        (("encode", "model.npz", "nan.npy", "-o", "codes.npz"), "NaN"),
        (("encode", "model.npz", "data.npy", "-o", "model.npz"), "output model.npz is also an input"),
        (("encode", "model.npz", "data.npy", "-o", "data.npy"), "output data.npy is also an input"),
        (("encode", "model.npz", "data.npy", "-o", "codes.csv"), "must end in .npz or .npy"),
        (
            ("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "lars"),
            "--algorithm lars has no equal here; use 'omp'",
        ),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "best"), "--algorithm best must be one of 'omp'"),
        (
            ("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "--alpha", "1"),
            "not used by --algorithm omp",
        ),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-s", "2"), "not used by --algorithm lasso"),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "-s", "0"), "--n-nonzero-coefs 0 must"),
        (
            ("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "--epsilon", "2"),
            "--epsilon 2 must be below",
        ),
        (("show", "cut.npz", "-o", "atoms.png"), "cut.npz is damaged or cut short"),
        (("show", "pickled.npz", "-o", "atoms.png"), "pickled.npz is not a roadict model"),
        (("show", "data.npz", "-o", "atoms.png"), "not a roadict model"),
        (("show", "model.npz", "-o", "atoms.gif"), "must end in .png or .pdf or .svg"),
        (("show", "model.npz", "-o", "folder.png"), "folder.png is a folder"),
        (("show", "model.npz", "-o", "missing/atoms.png"), "missing does not exist"),
        (("demo", "--out", "data.npy"), "data.npy"),
        (("demo", "--out", "demo", "--seed", "-1"), "-1"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(roadict, pitfalls, arguments, message):
    before = contents(pitfalls)
    assert_refused(roadict(*arguments), message)
    assert contents(pitfalls) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "data.npy"), "'--output' / '-o'; see roadict learn --help"),
        (("learn", "-o", "out.npz"), "DATA"),
        (("learn", "data.npy", "-k", "many", "-o", "out.npz"), "--components"),
        (("learn", "data.npy", "-o", "out.npz", "--speed", "9"), "--speed"),
        (("learn", "data.npy", "-o"), "'-o' requires an argument"),
        (("learn", "data.npy", "more.npy", "-o", "out.npz"), "more.npy"),
        (("teach", "data.npy"), "teach"),
        (("lern", "data.npy"), "Did you mean 'learn'? see roadict --help"),
        (("reprodcue", "all"), "Did you mean 'reproduce'?"),
        (("learn", "data.npy", "-o", "out.npz", "--epsilom", "0"), "did you mean --epsilon? see roadict learn --help"),
        (("upscale", "a.png", "-o", "b.png", "--scal", "2"), "did you mean --scale?"),
        (("--verson",), "did you mean --version?"),
        (("learn", "data.npy", "-o", "out.npz", "--seed", "x"), "--seed x must be a whole number; see roadict learn"),
        (("learn", "data.npy", "-o", "out.npz", "--tol=x"), "--tol x must be a number; see roadict learn --help"),
        (("upscale", "a.png", "-o", "b.png", "--seed", "-1"), "--seed -1 must be at least 0; see roadict upscale"),
    ],
)
def test_wrong_usage_is_one_line_that_suggests_the_right_name(roadict, folder, arguments, message):
    before = contents(folder)
    assert_refused(roadict(*arguments), message)
    assert contents(folder) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere")
def test_protected_folders_and_files_are_refused_before_the_work(roadict, folder):
    Path("locked").mkdir(mode=0o500)
    assert_refused(roadict("learn", "data.npy", *LEARN[:2], "-o", "locked/out.npz"), "cannot be written")
    assert not any(Path("locked").iterdir())
    Path("model.npz").chmod(0o400)
    before = contents(folder)
    assert_refused(roadict("learn", "data.npy", *LEARN[:2], "-o", "model.npz"), "cannot be written")
    assert contents(folder) == before


def test_too_little_memory_is_reported_in_one_line(roadict, folder, monkeypatch):
    def exhausted(self, X):
        raise MemoryError("Unable to allocate 9.9 PiB")

    monkeypatch.setattr(ROAD, "iter_fit", exhausted)
    before = contents(folder)
    assert_refused(roadict("learn", "data.npy", *LEARN), "not enough memory for 9.9 PiB more; use fewer samples")
    assert contents(folder) == before


def test_an_existing_model_survives_a_failed_learn(roadict, pitfalls):
    before = contents(pitfalls)
    for arguments in (("learn", "nan.npy"), ("learn", "text.csv"), ("learn", "data.npy", "--rho", "-1")):
        assert_refused(roadict(*arguments, "-k", "8", "-o", "model.npz"), "")
        assert contents(pitfalls) == before


def test_a_model_is_replaced_by_a_successful_learn(roadict, folder, model_bytes):
    assert roadict("learn", "data.npy", "-k", "5", "-o", "model.npz", *SHORT).code == 0
    assert load("model.npz").components_.shape == (5, 6)
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "data.npy", "data.npz", "model.npz"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where not even root can write")
def test_an_output_that_cannot_be_written_is_refused_before_the_work(roadict, folder, monkeypatch):
    def started(self, X):
        raise AssertionError("the work has started")

    monkeypatch.setattr(ROAD, "iter_fit", started)
    assert_refused(roadict("learn", "data.npy", "-k", 8, "-o", "/proc/x.npz"), "/proc/x.npz cannot be written")


def test_outputs_that_cannot_become_files_are_refused_before_the_work(roadict, folder):
    os.mkfifo("pipe.npz")
    Path("dangling.npz").symlink_to("nowhere/model.npz")
    Path("loop.npz").symlink_to("loop.npz")
    reasons = {"pipe.npz": "is a pipe", "dangling.npz": "does not exist", "loop.npz": "leads back to itself"}
    for name, reason in reasons.items():
        assert_refused(roadict("learn", "data.npy", "-k", 8, "-o", name), reason)
