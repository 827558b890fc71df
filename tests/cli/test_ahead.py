"""Kernels of two-stage methods and of the choice of a number of atoms: compiled ahead, once input has been checked."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from program import GUARD, assert_refused
from roadict import precompile, two_stage
from roadict.estimators import road_cv
from roadict.road import learning
from roadict.synthetic import planted

PROGRAM = """
import sys
from numba.core import event
from roadict import precompile
from roadict.cli import app

ahead, late = [False], []

class Recorder(event.Listener):
    def on_start(self, event):
        if not ahead[0]:
            late.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

def prepare(names, dtype, own=precompile.prepare):
    ahead[0] = True
    own(names, dtype)
    ahead[0] = False

event.register("numba:compile", Recorder())
precompile.prepare = prepare
try:
    app.main()
finally:
    print("late:", *late)
"""


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, planted(60, 6, 8, sparsity=2, snr_db=20, random_state=0).data)
    return path


@pytest.mark.parametrize("options", [("-k", "8", "--method", "mod", "--max-iter", "30", "--tol", "0"), ("-k", "4:6")])
def test_one_line_tells_what_is_left_to_compile_and_nothing_is_left(tmp_path, samples, options):
    arguments = ["learn", str(samples), "-o", str(tmp_path / "model.npz"), "--seed", "0", *options]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * GUARD,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "compiling" in line]
    assert len(lines) == 1
    assert re.fullmatch(r"compiling kernels \(first run only\), about \d+ s", lines[0])
    late = set(done.stdout.split("late:")[1].split())
    assert late <= {"_try_all", "scatter"}, "small ones, of a tenth of a second"


def test_every_coder_and_update_has_a_kernel_that_exists():
    from importlib import import_module

    from roadict.coders.registry import CODER_PARAMETERS
    from roadict.updates.registry import UPDATES

    assert {*CODER_PARAMETERS, *UPDATES} - {*precompile.KERNELS} == {"simco", "blotless"}, "they refit codes alone"
    for kernel in precompile.KERNELS.values():
        assert hasattr(getattr(import_module(kernel.module), kernel.name), "py_func")


@pytest.fixture
def prepared(monkeypatch):
    """The kernels that a command would compile ahead in an empty cache; none is compiled."""
    names = []
    for module in (two_stage, road_cv, learning):
        monkeypatch.setattr(module, "prepare", lambda of_fit, dtype: names.append((*of_fit, str(dtype))))
    return names


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_two_stage_methods_compute_in_float64(tmp_path, roadict, prepared, quiet):
    np.save(tmp_path / "x.npy", planted(60, 6, 8, sparsity=2, random_state=0).data.astype(np.float32))
    options = ("-k", 8, "--method", "ksvd", "--positive", "codes", "--max-iter", 1, "--tol", 0, *quiet)
    roadict("learn", tmp_path / "x.npy", "-o", tmp_path / "m.npz", *options)
    assert prepared == [("ksvd", "refit", "nonnegative-omp", "alternation", "float64")]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (1.0, ("-k", "8", "--method", "ksvd", "--coder", "nonsense"), "nonsense"),
        (1.0, ("-k", "8", "--method", "ksvd", "--alpha", "1"), "--alpha"),
        (1.0, ("-k", "8", "--method", "blotless", "--positive", "codes"), "blotless"),
        (-1.0, ("-k", "8", "--method", "ksvd", "--positive", "both"), "negative"),
        (np.nan, ("-k", "8", "--method", "mod"), "NaN"),
        (1e308, ("-k", "8", "--method", "mod"), "1e+308"),
        (1.0, ("-k", "4:8"), "vary"),
        (np.nan, ("-k", "4:8"), "NaN"),
        (1.0, ("-k", "4:80"), "80"),
        (1.0, ("-k", "4:8", "--engine", "nonsense"), "nonsense"),
    ],
)
def test_nothing_is_compiled_for_input_that_is_refused(tmp_path, roadict, prepared, values, options, message):
    np.save(tmp_path / "x.npy", np.full((60, 6), values))
    assert_refused(roadict("learn", tmp_path / "x.npy", "-o", tmp_path / "m.npz", *options), message)
    assert prepared == []


def test_nothing_is_compiled_for_a_folder_with_checkpoints_of_another_fit(tmp_path, samples, roadict, prepared):
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "checkpoint-000001.json").write_text("{}")
    options = ("-k", 8, "--method", "ksvd", "--checkpoint", folder)
    assert_refused(roadict("learn", samples, "-o", tmp_path / "m.npz", *options), "--resume")
    assert prepared == []
