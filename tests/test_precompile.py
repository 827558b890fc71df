"""Kernels compiled ahead, in two processes: a fit then finds all of them in the cache."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from numba.core import event
from roadict import ROAD
from roadict.progress import compiling
from roadict.synthetic import planted

class Recorder(event.Listener):
    names = []
    depth = 0
    def on_start(self, event):
        if Recorder.depth == 0:
            Recorder.names.append(event.data["dispatcher"].py_func.__name__)
        Recorder.depth += 1
    def on_end(self, event):
        Recorder.depth -= 1

event.register("numba:compile", Recorder())
told = []
with compiling.heard_by(lambda state: told.append(state)):
    ROAD(8, random_state=0, n_init=1).fit(planted(60, 4, 8, sparsity=1, random_state=0).data)
print(*Recorder.names)
print(max((state.total for state in told if state is not None), default=0))
"""
CODERS = {"_lasso_chunk", "_basis_pursuit_chunk", "_polish_chunk"}


def compiled(cache, program=PROGRAM, **environment):
    """Names of the kernels that a new process compiles, and how many it told of in advance."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *_, names, total = done.stdout.splitlines()
    return set(names.split()), int(total)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_processes_share_the_kernels_of_a_fit(tmp_path):
    names, total = compiled(tmp_path)
    assert total == 4
    assert "exact_chunk" in names
    assert CODERS - names, "the other process has compiled none"
    assert compiled(tmp_path) == (set(), 0)


KILLED = """
import sys
from roadict import precompile
precompile._start_helper = lambda dtype: precompile.subprocess.Popen(
    [sys.executable, "-c", "raise SystemExit(1)"], stdin=-1, stdout=-1, bufsize=0
)
"""


def test_a_fit_compiles_on_first_use_if_the_other_process_dies(tmp_path):
    names, _ = compiled(tmp_path, KILLED + PROGRAM)
    assert {"exact_chunk", "_lasso_chunk"} <= names
    assert compiled(tmp_path)[0] == set()


def test_under_torchrun_nothing_is_compiled_ahead(tmp_path):
    program = """
from roadict import precompile
precompile._start_helper = None  # any use is an error
precompile.prepare(precompile.KERNELS, "float64")
print()
print(0)
"""
    torchrun = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    assert compiled(tmp_path, program, **torchrun) == (set(), 0)


ONE = """
from numba.core import event
from roadict import precompile
from roadict.progress import compiling

told = []
precompile._start_helper = None  # any use is an error
with compiling.heard_by(told.append):
    precompile.prepare(("NAME",), "float32")
print(precompile._is_compiled("NAME", precompile.np.dtype("float32")))
print(len({state.left for state in told if state is not None}))
"""


@pytest.mark.parametrize("name", ["omp", "threshold", "mod"])
def test_a_single_kernel_is_compiled_here_with_the_time_it_takes(tmp_path, name):
    assert compiled(tmp_path, ONE.replace("NAME", name)) == ({"True"}, 1)


ALONE = """
from roadict import precompile
from roadict.progress import compiling

told, compiled = [], []
precompile._start_helper = lambda dtype: None
precompile._is_compiled = lambda name, dtype: False
precompile._compile = lambda name, dtype: compiled.append(name)
with compiling.heard_by(told.append):
    precompile.prepare(("omp", "lasso"), "float64")
assert [state and state.left for state in told] == [8.0, 4.5, None], told
print(*compiled)
print(0)
"""


def test_without_another_process_all_are_compiled_here(tmp_path):
    assert compiled(tmp_path, ALONE) == ({"omp", "lasso"}, 0)
