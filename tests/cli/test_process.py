"""The program as users run it: demo, output, quiet, help, signals and terminals."""

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from program import GUARD, assert_plain, assert_refused, command, contents, on_terminal, stop_in_the_middle
from roadict import __version__, load
from roadict.cli import app as cli
from roadict.cli.console import error_text

from .small import LEARN, SHORT, assert_same_model, picture_size


def test_the_demo_recovers_the_planted_atoms(tmp_path):
    result = command("demo", cwd=tmp_path)
    assert result.code == 0, result.err
    out = tmp_path / "roadict-demo"
    assert sorted(path.name for path in out.iterdir()) == ["atoms.png", "convergence.png", "demo.html", "model.npz"]
    assert re.match(r"32 of 32 atoms found in [\d.]+ s", result.out)
    assert re.search(r"^all 32 atoms found, largest error \de-(?:0[89]|1\d)$", result.out, re.MULTILINE)
    for name in ("model.npz", "atoms.png", "convergence.png", "demo.html"):
        assert str(Path("roadict-demo") / name) in result.out
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert "32 of 32 atoms found in " in page
    compiled = re.search(r"plus ([\d.]+ s) to compile, first run only", result.out)
    assert ("to compile, first run only" in page) == (compiled is not None)
    assert page.count('class="slider"') == 1
    for name in ("atoms.png", "convergence.png"):
        width, height = picture_size((out / name).read_bytes())
        assert 400 <= width <= 4000
        assert 300 <= height <= 4000
    assert load(out / "model.npz").components_.shape == (32, 16)
    assert re.search(r"objective \d", result.out)
    assert_plain(result.out)
    assert_plain(result.err)


def test_a_process_learns_refuses_and_is_quiet(folder):
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
        pytest.skip("the script is not installed next to this Python")
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


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("module", ["roadict.streams", "roadict.cli.app", "roadict.estimators", "lost_package"])
def test_an_interrupt_while_a_module_is_imported_ends_in_one_line(roadict, folder, module):
    """Also in commands, which import what they need when they run, and if an import goes on without the module."""
    script = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
        if name == "scipy":
            try:
                import lost_package
            except BaseException:
                pass
sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["learn", "data.npy", "-k", "8", "-o", "out.npz", "--tol", "0", "--max-iter", "100000", "--rho", "10"]
from roadict.__main__ import main
main()
"""
    # With kernels in the cache: an exception that reaches a callback of the compiler can end the process by a fault.
    assert roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", "--tol", 0, "--max-iter", 2, "--rho", 10).code == 0
    Path("out.npz").unlink()
    before = contents(folder)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 130
    # Sent again only after the first iterations: there is a model to keep.
    if module in ("roadict.estimators", "lost_package") and done.stdout:
        assert done.stdout.startswith("interrupted after ")
        assert {path.name for path in contents(folder).keys() - before.keys()} == {"out.npz"}
        return
    assert done.stdout == ""
    assert done.stderr == "roadict: error: interrupted; nothing was written\n"
    assert contents(folder) == before


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

    monkeypatch.setattr("roadict.cli.pictures._check_files", interrupted)
    result = roadict(name, "in.png", "-o", "out.png")
    assert result == (130, "", "roadict: error: interrupted; nothing was written\n")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_termination_leaves_the_old_model_intact(folder):
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


ENDLESS = ("-k", "8", "--tol", "0", "--max-iter", "100000000", "--rho", "10")
LONG_ENOUGH = ("-k", "8", "-o", "out.npz", "--tol", "0", "--max-iter", "3000", "--seed", "0")
COLOUR = r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7])(?:;\d+)*m"


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_shows_iterations_and_a_pipe_stays_plain(folder):
    result = on_terminal("learn", "data.npy", *LONG_ENOUGH)
    assert result.code == 0
    counts = {int(done) for done in re.findall(r"iteration (\d+)", result.err)}
    assert len(counts) > 3
    assert max(counts) <= 3000
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
    assert re.search(r"━ +\d+ %", result.err)
    result = on_terminal("learn", "data.npy", "-k", "8", "-o", "out.npz", "--quiet", *SHORT)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_compiler_that_is_turned_off_is_one_line(roadict, folder, monkeypatch):
    warning = "roadict: warning: NUMBA_DISABLE_JIT turns the compiler off, and all work is hundreds of times slower; "
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert roadict("show", "model.npz", "-o", "atoms.png", "-q") == (0, "", f"{warning}unset it\n")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert roadict("show", "model.npz", "-o", "atoms.png", "-q") == (0, "", "")


def test_a_process_without_a_compiler_codes(folder, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    result = command("encode", "model.npz", "data.npy", "-o", "codes.npz", "-q")
    assert (result.code, result.out, len(result.err.splitlines())) == (0, "", 1)


def test_singular_and_plural(roadict, folder):
    np.save("two.npy", [[1.0], [2.0]])
    result = roadict("learn", "two.npy", "-k", "1", "-o", "out.npz", "--max-iter", "1", "--n-init", "1", "--tol", "0")
    assert "two.npy: 2 samples of 1 feature, float64" in result.err
    assert re.search(r"after 1 iteration: .* 0 of 1 atom unused", result.out), result.out
    np.save("one.npy", [[1.0]])
    assert "1 sample, 1.00 coefficients" in roadict("encode", "out.npz", "one.npy", "-o", "codes.npz").out


def test_memory_that_is_not_there_is_told_in_our_words():
    with pytest.raises(MemoryError) as caught:
        np.empty(2**59)
    text = "not enough memory for 4.00 EiB more; use fewer samples, fewer atoms or float32 data"
    assert error_text(caught.value) == text
    assert error_text(MemoryError()) == "not enough memory; use fewer samples, fewer atoms or float32 data"
    refused = PermissionError(13, "Permission denied", "a.npy")
    assert error_text(refused).startswith("a.npy may not be used: its permissions")
