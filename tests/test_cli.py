"""The command line as people meet it: results, words, exit codes, and what it leaves in the folder."""

import importlib.metadata
import os
import pickle
import re
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from roadict import ROAD, SparseCoder, __version__, cli, load
from roadict.synthetic import planted

PROGRAM = (sys.executable, "-m", "roadict")
GUARD = 120  # seconds after which a process that hangs is given up
DATA = planted(120, 6, 8, sparsity=2, random_state=0).data
SHORT = ("--max-iter", "500", "--tol", "1e-2", "--seed", "0")  # converges: no warning
ENDLESS = ("-k", "8", "--tol", "0", "--max-iter", "100000000", "--rho", "10")


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def command(*arguments, cwd=None):
    """Run the program as a process, with pipes for its output."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=GUARD, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def roadict(monkeypatch, capsys):
    """Run the program inside this process, which spares the start."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["roadict", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    ROAD(8, max_iter=500, tol=1e-2, random_state=0).fit(DATA).save(path)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch, model_bytes):
    """Work in a folder with data and a model."""
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", DATA)
    np.savez("data.npz", signals=DATA)
    np.savetxt("data.csv", DATA, delimiter=",", header="a,b,c,d,e,f", comments="")
    Path("model.npz").write_bytes(model_bytes)
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def arrays(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: values for name, values in archive.items() if name != "history_seconds"}


def assert_same_model(first, second):
    first, second = arrays(first), arrays(second)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


def assert_plain(text):
    """No colours, no rewriting of lines, no other control characters."""
    assert re.findall(r"[^\n\x20-\x7e\u00a0-\uffff]", text) == []


def picture_size(raw):
    """Width and height of a PNG."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert raw[-8:-4] == b"IEND"
    return struct.unpack(">II", raw[16:24])


# ---- learn ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "data.csv"])
def test_learn_writes_the_model_that_the_library_would(roadict, folder, name):
    result = roadict("learn", name, "-k", 8, "-o", "out.npz", *SHORT)
    assert result.code == 0, result.err
    assert "120 samples of 6 features, float64" in result.err
    assert "converged after" in result.out
    assert result.out.splitlines()[-1] == "model: out.npz"
    model = load("out.npz")
    expected = ROAD(8, max_iter=500, tol=1e-2, random_state=0).fit(DATA)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    np.testing.assert_allclose(model.codes_, expected.codes_, atol=1e-9)
    assert model.get_params() == expected.get_params()


def test_the_same_seed_gives_the_same_file(roadict, folder):
    for output, more in (("a.npz", ()), ("b.npz", ()), ("c.npz", ("--jobs", "1")), ("other.npz", ("--seed", "1"))):
        assert roadict("learn", "data.npy", "-k", 8, "-o", output, *SHORT, *more).code == 0
    assert_same_model("a.npz", "b.npz")
    np.testing.assert_array_equal(load("a.npz").components_, load("c.npz").components_)
    assert not np.allclose(load("a.npz").components_, load("other.npz").components_)


def test_float32_stays_and_the_number_of_atoms_has_a_default(roadict, folder):
    np.save("single.npy", DATA.astype(np.float32))
    result = roadict("learn", "single.npy", "-o", "out.npz", *SHORT)
    assert "float32" in result.err
    assert load("out.npz").components_.dtype == np.float32
    assert load("out.npz").components_.shape == (12, 6)


def test_options_reach_the_model(roadict, folder):
    roadict("learn", "data.npy", "-k", 8, "-o", "a.npz", "--rho", "7.5", "--epsilon", "0.2", "--max-iter", 9)
    model = load("a.npz")
    assert (model.rho_, model.epsilon_, model.n_iter_) == (7.5, 0.2, 9)
    roadict("learn", "data.npy", "-k", 8, "-o", "b.npz", "--formulation", "lasso", "--alpha", "0.3", "--n-init", "2")
    model = load("b.npz")
    assert (model.formulation, model.alpha, model.n_init) == ("lasso", 0.3, 2)
    assert model.transform_alpha_ == pytest.approx(0.3)
    inexact = ("--formulation", "inexact", "--beta", "200,300,250", "--rho", "210,310,260", "--max-iter", "5")
    roadict("learn", "data.npy", "-k", 8, "-o", "c.npz", *inexact, "--engine", "reference")
    model = load("c.npz")
    assert (model.rho_, model.beta, model.engine) == ((210, 310, 260), (200, 300, 250), "reference")
    roadict("learn", "data.npy", "-k", 8, "-o", "d.npz", "--formulation", "inexact", "--beta", "200", "--max-iter", "5")
    assert load("d.npz").beta == 200


@pytest.fixture
def holes(folder):
    """A table with empty cells."""
    lines = Path("data.csv").read_text().splitlines()
    for row in range(1, 120, 3):
        cells = lines[row].split(",")
        cells[row % 6] = ""
        lines[row] = ",".join(cells)
    Path("holes.csv").write_text("\n".join(lines))
    return "holes.csv"


def test_empty_cells_are_missing_entries_if_so_told(roadict, holes):
    result = roadict("learn", holes, "-k", 8, "-o", "out.npz", "--missing", *SHORT)
    assert result.code == 0, result.err
    assert np.isnan(load("out.npz").missing_values)
    result = roadict("encode", "out.npz", holes, "-o", "codes.npy")
    assert result.code == 0, result.err
    assert np.isfinite(np.load("codes.npy")).all()
    assert float(re.search(r"relative error (\S+)", result.out)[1]) < 0.2


def test_empty_cells_are_refused_with_the_option_that_allows_them(roadict, holes, folder):
    before = contents(folder)
    assert_refused(roadict("learn", holes, "-k", 8, "-o", "out.npz", *SHORT), "--missing")
    assert contents(folder) == before


def test_one_of_several_arrays_is_named_by_its_key(roadict, folder):
    np.savez("two.npz", first=DATA, second=DATA[:50])
    assert roadict("learn", "two.npz", "--key", "second", "-k", 8, "-o", "out.npz", *SHORT).code == 0
    assert load("out.npz").codes_.shape == (50, 8)
    result = roadict("learn", "two.npz", "-k", 8, "-o", "none.npz", *SHORT)
    assert_refused(result, "first, second")


def test_a_run_that_did_not_converge_warns_in_one_line_and_is_kept(roadict, folder):
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", "--max-iter", "5")
    assert result.code == 0
    [warning] = [line for line in result.err.splitlines() if "warning" in line]
    assert warning.startswith("roadict: warning: ROAD has not converged in max_iter=5")
    assert load("out.npz").stop_reason_ == "max_iter"


# ---- encode and show -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["codes.npz", "codes.npy"])
def test_encode_equals_transform(roadict, folder, output):
    result = roadict("encode", "model.npz", "data.csv", "-o", output)
    assert result.code == 0, result.err
    loaded = np.load(output)
    codes = loaded["codes"] if output.endswith(".npz") else loaded
    expected = load("model.npz").transform(DATA)
    np.testing.assert_allclose(codes, expected, atol=1e-9)
    error = np.linalg.norm(DATA - expected @ load("model.npz").components_) / np.linalg.norm(DATA)
    assert f"relative error {error:.3g}" in result.out
    assert f"{(expected != 0).sum(axis=1).mean():.2f} coefficients per sample" in result.out


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--algorithm", "omp"), {"algorithm": "omp"}),
        (("--algorithm", "omp", "--n-nonzero-coefs", "2"), {"algorithm": "omp", "n_nonzero_coefs": 2}),
        (("-a", "sp", "-s", "2"), {"algorithm": "sp", "n_nonzero_coefs": 2}),
        (("--algorithm", "mp", "--epsilon", "0.1"), {"algorithm": "mp", "epsilon": 0.1}),
        (("--algorithm", "basis-pursuit", "--jobs", "1"), {"algorithm": "basis-pursuit"}),
        (("--alpha", "0.3"), {"algorithm": "lasso", "alpha": 0.3}),
        (("--algorithm", "half"), {"algorithm": "half"}),
    ],
)
def test_encode_by_other_coders(roadict, folder, options, settings):
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npy", *options)
    assert result.code == 0, result.err
    expected = SparseCoder(load("model.npz").components_, **settings).transform(DATA)
    np.testing.assert_array_equal(np.load("codes.npy"), expected)


def test_encode_takes_the_weight_of_the_fit_where_none_is_given(roadict, folder):
    assert roadict("encode", "model.npz", "data.npy", "-o", "codes.npy", "-a", "threshold").code == 0
    model = load("model.npz")
    expected = SparseCoder(model.components_, algorithm="threshold", alpha=model.transform_alpha_).transform(DATA)
    np.testing.assert_array_equal(np.load("codes.npy"), expected)


def test_encode_with_entries_missing(roadict, folder):
    holes = DATA.copy()
    holes[3, 2] = np.nan
    np.save("holes.npy", holes)
    assert roadict("encode", "model.npz", "holes.npy", "-o", "codes.npy", "--missing", "-q") == (0, "", "")
    codes, whole = np.load("codes.npy"), load("model.npz").transform(DATA)
    others = np.arange(len(DATA)) != 3
    np.testing.assert_allclose(codes[others], whole[others], atol=1e-9)
    assert np.abs(codes[3] - whole[3]).max() > 1e-3


def test_encode_works_through_more_samples_than_it_takes_at_once(roadict, folder, monkeypatch):
    monkeypatch.setattr(cli, "ENCODE_ROWS", 50)
    assert roadict("encode", "model.npz", "data.npy", "-o", "codes.npy").code == 0
    np.testing.assert_allclose(np.load("codes.npy"), load("model.npz").transform(DATA), atol=1e-6)


def test_encoding_float32_does_not_warn_for_every_sample(roadict, folder):
    np.save("single.npy", DATA.astype(np.float32))
    roadict("learn", "single.npy", "-k", 12, "-o", "out.npz", *SHORT)
    result = roadict("encode", "out.npz", "single.npy", "-o", "codes.npy")
    assert result.code == 0
    assert result.err.count("warning") <= 1
    assert np.load("codes.npy").dtype == np.float32


def test_show_draws_the_atoms(roadict, folder):
    result = roadict("show", "model.npz", "-o", "atoms.png")
    assert (result.code, result.out, result.err) == (0, "atoms: atoms.png\n", "")
    raw = Path("atoms.png").read_bytes()
    assert len(raw) > 5000
    width, height = picture_size(raw)
    assert 400 <= width <= 3000
    assert 200 <= height <= 3000
    from matplotlib.image import imread

    assert len(np.unique(imread("atoms.png").reshape(-1, 4), axis=0)) > 10  # something was drawn
    assert roadict("show", "model.npz", "-o", "atoms.SVG").code == 0
    assert b"<svg" in Path("atoms.SVG").read_bytes()


# ---- errors --------------------------------------------------------------------------------------------------------


def assert_refused(result, message):
    assert result.code == 2
    assert result.out == ""
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("roadict: error: ")
    assert message in lines[0]
    assert "Traceback" not in result.err
    assert_plain(result.err)


@pytest.fixture
def pitfalls(folder):
    """Add everything that can be wrong with files."""
    Path("text.csv").write_text("1,2\n3,red\n4,5\n")
    Path("ragged.csv").write_text("1,2,3\n4,5\n6,7,8\n")
    Path("empty.csv").write_text("")
    Path("words.csv").write_text("just a header\n")
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
    return folder


LEARN = ("-k", "8", "-o", "out.npz", "--max-iter", "5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "none.npy", *LEARN), "none.npy"),
        (("learn", "folder.npz", *LEARN), "folder.npz"),
        (("learn", "text.csv", *LEARN), "text.csv has 'red' in row 2, column 2"),
        (("learn", "ragged.csv", *LEARN), "ragged.csv has 2 cells in row 2"),
        (("learn", "empty.csv", *LEARN), "empty.csv is empty"),
        (("learn", "words.csv", *LEARN), "words.csv holds no numbers"),
        (("learn", "nan.npy", *LEARN), "NaN"),
        (("learn", "inf.npy", *LEARN), "infinity"),
        (("learn", "one.npy", *LEARN), "1 sample"),
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
        (("learn", "data.npy", *LEARN, "--epsilon", "-1"), "epsilon=-1"),
        (("learn", "data.npy", *LEARN, "--epsilon", "nan"), "epsilon=nan"),
        (("learn", "data.npy", *LEARN, "--epsilon", "1.5"), "epsilon=1.5 must be below 1"),
        (("learn", "data.npy", "-k", "2", "-o", "out.npz", "--epsilon", "0"), "the smallest relative error"),
        (("learn", "data.npy", *LEARN, "--rho", "big"), "--rho big must be one number, or three"),
        (("learn", "data.npy", *LEARN, "--rho", "1,2"), "--rho 1,2 must be one number, or three"),
        (("learn", "data.npy", *LEARN, "--rho", ""), "--rho"),
        (("learn", "data.npy", *LEARN, "--rho", "0"), "rho=0"),
        (("learn", "data.npy", *LEARN, "--rho", "1,2,3"), "inexact"),
        (("learn", "data.npy", *LEARN, "--beta", "x", "--formulation", "inexact"), "--beta x must be one number"),
        (("learn", "data.npy", *LEARN, "--beta", "9", "--rho", "5", "--formulation", "inexact"), "rho1=5 must exceed"),
        (("learn", "data.npy", *LEARN, "--alpha", "-1", "--formulation", "lasso"), "alpha=-1"),
        (("learn", "data.npy", "-k", "0", "-o", "out.npz"), "n_components=0 must be a whole number of at least 1"),
        (("learn", "data.npy", *LEARN, "--max-iter", "0"), "max_iter=0"),
        (("learn", "data.npy", *LEARN, "--tol", "-1"), "tol=-1"),
        (("learn", "data.npy", *LEARN, "--n-init", "0"), "n_init=0"),
        (("learn", "data.npy", *LEARN, "--jobs", "0"), "n_jobs=0"),
        (("learn", "data.npy", *LEARN, "--seed", "-1"), "random_state=-1"),
        (("learn", "data.npy", *LEARN, "--engine", "gpu"), "engine='gpu'"),
        (("learn", "data.npy", *LEARN, "--formulation", "ridge"), "formulation='ridge'"),
        (("learn", "nan.npy", *LEARN, "--missing", "--formulation", "inexact"), "missing values"),
        (("encode", "none.npz", "data.npy", "-o", "codes.npz"), "none.npz"),
        (("encode", "cut.npz", "data.npy", "-o", "codes.npz"), "cut.npz is damaged or cut short"),
        (("encode", "pickled.npz", "data.npy", "-o", "codes.npz"), "pickled.npz is not a roadict model"),
        (("encode", "objects.npz", "data.npy", "-o", "codes.npz"), "pickled objects"),
        (("encode", "data.npz", "data.npy", "-o", "codes.npz"), "not a roadict model"),
        (("encode", "model.npz", "narrow.npy", "-o", "codes.npz"), "5 features"),
        (("encode", "model.npz", "nan.npy", "-o", "codes.npz"), "NaN"),
        (("encode", "model.npz", "data.npy", "-o", "model.npz"), "output model.npz is also an input"),
        (("encode", "model.npz", "data.npy", "-o", "data.npy"), "output data.npy is also an input"),
        (("encode", "model.npz", "data.npy", "-o", "codes.csv"), "must end in .npz or .npy"),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "lars"), "algorithm='lars' must be one of 'omp'"),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "--alpha", "1"), "not used by algorithm"),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-s", "2"), 'not used by algorithm="lasso"'),
        (("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "-s", "0"), "n_nonzero_coefs=0 must be"),
        (
            ("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "--epsilon", "2"),
            "epsilon=2 must be below",
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
    ],
)
def test_wrong_usage_is_one_line_with_the_name_that_was_meant(roadict, folder, arguments, message):
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


def test_too_little_memory_is_said_in_one_line(roadict, folder, monkeypatch):
    def exhausted(self, X):
        raise MemoryError("Unable to allocate 9.9 PiB")

    monkeypatch.setattr(ROAD, "fit", exhausted)
    before = contents(folder)
    assert_refused(roadict("learn", "data.npy", *LEARN), "not enough memory: Unable to allocate 9.9 PiB")
    assert contents(folder) == before


def test_an_existing_model_survives_a_failed_learn(roadict, pitfalls):
    before = contents(pitfalls)
    for arguments in (("learn", "nan.npy"), ("learn", "text.csv"), ("learn", "data.npy", "--rho", "-1")):
        assert_refused(roadict(*arguments, "-k", "8", "-o", "model.npz"), "")
        assert contents(pitfalls) == before


def test_a_model_is_replaced_by_a_good_learn(roadict, folder, model_bytes):
    assert roadict("learn", "data.npy", "-k", "5", "-o", "model.npz", *SHORT).code == 0
    assert load("model.npz").components_.shape == (5, 6)
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "data.npy", "data.npz", "model.npz"]


# ---- as a process --------------------------------------------------------------------------------------------------


def test_the_demo_recovers_the_planted_atoms(tmp_path):
    result = command("demo", cwd=tmp_path)
    assert result.code == 0, result.err
    out = tmp_path / "roadict-demo"
    assert sorted(path.name for path in out.iterdir()) == ["atoms.png", "convergence.png", "demo.html", "model.npz"]
    assert float(re.search(r"recovery error (\S+)", result.out)[1]) < 1e-2
    for name in ("model.npz", "atoms.png", "convergence.png", "demo.html"):
        assert str(Path("roadict-demo") / name) in result.out
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert "32 of 32" in page
    assert page.count('class="slider"') == 1
    for name in ("atoms.png", "convergence.png"):
        width, height = picture_size((out / name).read_bytes())
        assert 400 <= width <= 4000
        assert 300 <= height <= 4000
    assert load(out / "model.npz").components_.shape == (32, 16)
    assert re.search(r"objective \d", result.out)
    assert re.search(r"time \d", result.out)
    assert_plain(result.out)
    assert_plain(result.err)


def test_a_process_learns_refuses_and_keeps_quiet(folder):
    result = command("learn", "data.csv", "-k", 8, "-o", "out.npz", *SHORT)
    assert result.code == 0
    assert_plain(result.out)
    assert_plain(result.err)
    assert_same_model("out.npz", "model.npz")
    assert result.out.endswith("model: out.npz\n")
    assert_refused(command("learn", "none.npy", *LEARN), "none.npy")
    assert command("encode", "model.npz", "data.npy", "-o", "codes.npz", "--quiet") == (0, "", "")


def test_quiet_prints_nothing_on_success(roadict, folder):
    assert roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", "--quiet", *SHORT) == (0, "", "")
    assert roadict("encode", "out.npz", "data.npy", "-o", "codes.npz", "-q") == (0, "", "")
    assert roadict("show", "out.npz", "-o", "atoms.png", "--quiet") == (0, "", "")
    assert roadict("demo", "--out", "demo", "--quiet") == (0, "", "")
    assert Path("demo/model.npz").exists()
    assert_refused(roadict("learn", "none.npy", "-o", "x.npz", "--quiet"), "none.npy")


def test_quiet_means_errors_and_warnings_only(roadict, folder):
    done = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", "--quiet", "--max-iter", 3)
    assert (done[0], done[1]) == (0, "")
    assert len(done[2].splitlines()) == 1
    assert done[2].startswith("roadict: warning: ROAD has not converged")


def test_the_module_equals_the_script(folder):
    [script] = importlib.metadata.entry_points(group="console_scripts", name="roadict")
    assert callable(script.load())
    program = shutil.which("roadict", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("the script is not installed beside this Python")
    for arguments in (["--version"], ["learn", "--help"]):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=GUARD, check=True)
        assert command(*arguments) == (0, done.stdout, done.stderr)


def test_version_and_help(roadict):
    assert roadict("--version") == (0, f"roadict {__version__}\n", "")
    overview = roadict("--help").out
    names = re.findall(r"^  (\w+) ", overview.split("Commands:")[1], re.MULTILINE)
    assert {"learn", "encode", "show", "demo", "upscale", "reproduce", "report"} <= set(names)
    for name in names:
        result = roadict(name, "--help")
        assert result.code == 0
        assert re.search(rf"Examples?: roadict {name} ?", " ".join(result.out.split())), result.out
        assert_plain(result.out)
    assert "learn" in "".join(roadict()[1:])  # no command: the overview


@pytest.fixture
def interruptible():
    """Let children take SIGINT even where this process was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stop_in_the_middle(number, *arguments):
    """Start the program, send a signal once it reports iterations, and return what it says from then on."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*PROGRAM, *arguments], **pipes) as process:
        try:
            for line in process.stderr:
                if re.match(r"learning \d+/100000000 ", line):
                    break
            process.send_signal(number)
            out, err = process.communicate(timeout=GUARD)
        finally:
            process.kill()
    return Result(process.returncode, out, err)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_ends_in_one_line_and_writes_nothing(interruptible, folder):
    before = contents(folder)
    result = stop_in_the_middle(signal.SIGINT, "learn", "data.npy", "-o", "out.npz", *ENDLESS)
    assert contents(folder) == before
    assert result.code == 130
    assert "Traceback" not in result.err
    said = [line for line in result.err.splitlines() if not line.startswith("learning ")]
    assert said == ["roadict: error: interrupted; nothing was written"]
    assert result.out == ""


def test_an_interrupt_while_loading_ends_in_one_line(monkeypatch, capsys):
    from roadict import __main__ as start

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as stop:
        start.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "roadict: error: interrupted; nothing was written\n"


@pytest.mark.parametrize("name", ["upscale", "denoise", "inpaint"])
def test_an_interrupt_of_a_picture_ends_in_one_line(roadict, folder, monkeypatch, name):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("roadict.cli_pictures._check_files", interrupted)
    result = roadict(name, "in.png", "-o", "out.png")
    assert result == (130, "", "roadict: error: interrupted; nothing was written\n")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_termination_leaves_the_old_model_whole(folder):
    before = contents(folder)
    result = stop_in_the_middle(signal.SIGTERM, "learn", "data.npy", "-o", "model.npz", *ENDLESS)
    assert result.code != 0
    assert contents(folder) == before
    assert load("model.npz").components_.shape == (8, 6)
    assert "Traceback" not in result.err


def test_an_interrupt_while_writing_leaves_the_old_model(roadict, folder, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    before = contents(folder)
    monkeypatch.setattr(os, "fsync", interrupted)
    result = roadict("learn", "data.npy", "-k", "8", "-o", "model.npz", *SHORT)
    monkeypatch.undo()
    assert result.code == 130
    assert contents(folder) == before


def on_terminal(*arguments, **settings):
    """Run the program with standard error at a pseudo-terminal; return code, standard output and what was shown."""
    import pty

    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environment.pop(name, None)
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment | settings
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # Linux: the other end is closed
            pass
        finally:
            os.close(ours)
        out = process.stdout.read().decode()
    return Result(process.returncode, out, shown.decode())


LONG_ENOUGH = ("-k", "8", "-o", "out.npz", "--tol", "0", "--max-iter", "3000", "--seed", "0")
COLOUR = r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7])(?:;\d+)*m"


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_shows_iterations_and_a_pipe_stays_plain(folder):
    result = on_terminal("learn", "data.npy", *LONG_ENOUGH)
    assert result.code == 0
    counts = {int(done) for done in re.findall(r"(\d+)/3000", result.err)}
    assert counts
    assert max(counts) == 3000
    assert re.search(COLOUR, result.err)
    assert "\x1b[?25h" in result.err  # the cursor is back
    assert "objective" in result.err
    assert "120 samples of 6 features" in result.err
    assert_plain(result.out)
    assert result.out.endswith("model: out.npz\n")


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_without_colour_or_noise(folder):
    result = on_terminal("learn", "data.npy", *LONG_ENOUGH, NO_COLOR="1")
    assert (result.code, re.findall(COLOUR, result.err)) == (0, [])
    assert "3000/3000" in result.err
    result = on_terminal("learn", "data.npy", "-k", "8", "-o", "out.npz", "--quiet", *SHORT)
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files, even from root")
def test_an_output_that_nobody_can_write_is_refused_before_the_work(roadict, folder, monkeypatch):
    def started(self, X):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(ROAD, "fit", started)
    assert_refused(roadict("learn", "data.npy", "-k", 8, "-o", "/proc/x.npz"), "/proc/x.npz cannot be written")


def test_outputs_that_cannot_become_files_are_refused_before_the_work(roadict, folder):
    os.mkfifo("pipe.npz")
    Path("dangling.npz").symlink_to("nowhere/model.npz")
    for name, reason in (("pipe.npz", "is a pipe"), ("dangling.npz", "does not exist")):
        assert_refused(roadict("learn", "data.npy", "-k", 8, "-o", name), reason)


# ---- two-stage methods ---------------------------------------------------------------------------------------------


def test_learn_by_a_two_stage_method_and_encode_by_its_coder(roadict, folder):
    from roadict import AlternatingDictionaryLearning, load

    rows = planted(60, 8, 12, sparsity=2, random_state=0).data
    np.save(folder / "rows.npy", rows)
    shared = ("-k", "12", "-o", folder / "two.npz", "--seed", "3", "--max-iter", "20", "--tol", "0")
    result = roadict("learn", folder / "rows.npy", *shared, "--method", "mod", "--sparsity", "2")
    assert result.code == 0, result.err
    expected = AlternatingDictionaryLearning(
        12, update="mod", n_nonzero_coefs=2, random_state=3, max_iter=20, tol=0
    ).fit(rows)
    np.testing.assert_array_equal(load(folder / "two.npz").components_, expected.components_)
    assert roadict("encode", folder / "two.npz", folder / "rows.npy", "-o", folder / "codes.npy").code == 0
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), expected.transform(rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "nope"), "--method nope is not known; use road, mod, ksvd"),
        (("--method", "mod", "--rho", "3"), "--rho does not belong to --method mod; leave it out"),
        (("--method", "ksvd", "--missing"), "--missing does not belong to --method ksvd"),
        (("--sparsity", "3"), "--sparsity does not belong to --method road"),
        (("--method", "mod", "--alpha", "3"), 'alpha=3.0 is not used by update="mod"'),
        (("--method", "ksvd", "--coder", "lars"), "coder='lars' must be one of"),
    ],
)
def test_options_of_other_methods_are_refused_in_one_line(roadict, folder, options, message):
    np.save(folder / "rows.npy", planted(30, 8, 12, sparsity=2, random_state=0).data)
    result = roadict("learn", folder / "rows.npy", "-k", "12", "-o", folder / "two.npz", "-q", *options)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (folder / "two.npz").exists()


# ---- checkpoints ---------------------------------------------------------------------------------------------------

KEPT = ("-k", "8", "--rho", "10", "--tol", "0", "--max-iter", "4000", "--seed", "0", "--checkpoint", "kept")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The models of runs that nobody stops, by their options."""
    folder = tmp_path_factory.mktemp("unbroken")
    np.save(folder / "data.npy", DATA)
    made = {}

    def learn(*options):
        if options not in made:
            made[options] = folder / f"{len(made)}.npz"
            result = command("learn", "data.npy", "-o", made[options], *KEPT[:-2], *options, cwd=folder)
            assert result.code == 0, result.err
        return made[options]

    return learn


def kill_at(condition, *arguments):
    """Start the program, kill it without warning once the condition holds; True if it was still running."""
    with subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not condition():
            pass
        process.kill()
        return process.wait() < 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "code", "method"),
    [(signal.SIGINT, 130, ()), (signal.SIGTERM, 143, ("--method", "ksvd", "--sparsity", "2"))],
)
def test_the_first_signal_ends_gracefully_with_a_checkpoint(interruptible, folder, number, code, method):
    options = [option for option in KEPT if option not in ("--rho", "10")] if method else KEPT
    arguments = ("learn", "data.npy", "-o", "out.npz", *options, *method, "--max-iter", "100000000", "--every", "1h")
    result = stop_in_the_middle(number, *arguments)
    assert result.code == code
    said = [line for line in result.err.splitlines() if not line.startswith("learning ")]
    assert said == ["roadict: error: stopped; checkpoint in kept; go on with --resume"]
    assert not Path("out.npz").exists()
    assert len(list(Path("kept").glob("*.json"))) == 1
    again = command(*arguments)
    assert_refused(again, "kept holds checkpoints of an earlier run; resume it (--resume)")
    assert_refused(
        command(*arguments, "--resume", "--seed", "1"), "is of another problem (random_state: 0 there, 1 here)"
    )


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_the_second_signal_ends_at_once(interruptible, folder):
    script = (
        "import os, signal, sys\n"
        "from roadict.console import stop_requests\n"
        "with stop_requests(0.0) as stop:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print(stop(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "15\n")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("delay", [0.0, 0.11])
def test_a_killed_run_goes_on_to_the_same_model(folder, unbroken, delay):
    import time

    arguments = ("learn", "data.npy", "-o", "out.npz", *KEPT, "--every", "0.02s")
    kept = Path("kept")

    def far_enough():
        if kept.is_dir() and any(kept.glob("*.json")):
            time.sleep(delay)
            return True
        return False

    assert kill_at(far_enough, *arguments)
    assert not Path("out.npz").exists()
    result = command(*arguments, "--resume")
    assert result.code == 0, result.err
    assert re.search(r"^resumed after iteration [1-9]", result.err, re.MULTILINE)
    assert_same_model("out.npz", unbroken())
    assert not list(kept.iterdir())
    assert_same_parameters("out.npz", unbroken())


def assert_same_parameters(first, second):
    assert load(first).get_params() == load(second).get_params()


def test_resuming_without_a_checkpoint_starts(roadict, folder):
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *SHORT, "--checkpoint", "new/kept", "--resume")
    assert result.code == 0, result.err
    assert "no checkpoint in new/kept yet: starting from the beginning" in result.err
    np.testing.assert_array_equal(load("out.npz").components_, load("model.npz").components_)


def test_an_engine_without_a_gpu_is_refused_in_one_line(roadict, folder, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert_refused(roadict("learn", "data.npy", *LEARN, "--engine", "cuda"), 'engine="cuda"')


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_full_disk_is_told_and_does_no_harm(folder, unbroken):
    """Files of the checkpoint are larger than the limit, the model is not."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    arguments = ("learn", "data.npy", "-o", "out.npz", *KEPT, "--max-iter", "500", "--every", "0.05s")
    done = subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, timeout=GUARD, check=False, preexec_fn=limit
    )
    assert done.returncode == 0, done.stderr
    assert "no checkpoint could be written to kept (File too large); the run goes on" in done.stderr
    assert_same_model("out.npz", unbroken("--max-iter", "500"))
    assert not list(Path("kept").iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--resume",), "--resume needs --checkpoint DIR"),
        (("--every", "5s"), "--every needs --checkpoint DIR"),
        (("--checkpoint", "kept", "--every", "soon"), "--every soon must be a time such as 60s, 5min or 2h"),
        (("--checkpoint", "data.npy"), "checkpoint folder data.npy cannot be used"),
        (("--codes", "all"), "--codes all must be parts or gather"),
        (("--timeout", "-1"), "--timeout -1 must be a time"),
    ],
)
def test_options_of_checkpoints_are_checked(roadict, folder, options, message):
    before = contents(folder)
    assert_refused(roadict("learn", "data.npy", *LEARN, *options), message)
    assert contents(folder) == before


def test_parts_are_read_as_one(roadict, folder):
    Path("parts").mkdir()
    for index, part in enumerate(np.split(DATA, [30, 31])):
        np.save(f"parts/part-{index}.npy", part)
    for name, output in (("parts", "a.npz"), ("parts/part-*.npy", "b.npz")):
        assert roadict("learn", name, "-k", 8, "-o", output, *SHORT).code == 0
        assert_same_model(output, "model.npz")
    np.save("parts/part-2.npy", DATA[31:].astype(np.float32))
    assert_refused(roadict("learn", "parts", *LEARN), "part-2.npy has 6 columns of float32, but parts/part-0.npy has")
    assert_refused(roadict("learn", "parts/none-*.npy", *LEARN), "names no files none-*.npy")


def test_torchrun_without_torch_names_the_extra(roadict, folder, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert_refused(
        roadict("learn", "data.npy", *LEARN), "several processes need torch: pip install 'roadict[distributed]'"
    )
    assert_refused(roadict("learn", "data.npy", *LEARN, "--method", "mod"), "--method mod runs in one process")
