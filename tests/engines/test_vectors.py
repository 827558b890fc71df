"""SIMD vectors against their plain twin, operation by operation, and the engine where only the twin can be built."""

import os
import pickle
import subprocess
import sys

import numba
import numpy as np
import pytest

from roadict.engines.cpu import scalars, simd, vectors
from roadict.engines.cpu.fused import FusedEngine

NO_MODULE = "import sys; sys.modules['roadict.engines.cpu.simd'] = None"
NO_CODE = """import llvmlite.ir
def refuse(*arguments): raise TypeError("no such vectors")
llvmlite.ir.VectorType = refuse"""
PICKED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    from roadict.engines.cpu import vectors
    from roadict.engines.cpu import fused
print(vectors.load.__module__, *[str(warning.message) for warning in caught], sep="\\n")
"""
STEPS = """
import pickle
from numba.core.dispatcher import Dispatcher
from roadict.engines.cpu import lanes, passes
for value in [*vars(lanes).values(), *vars(passes).values()]:  # else the kernels of both kinds would share a cache
    assert not isinstance(value, Dispatcher) or "reassoc" not in value.targetoptions.get("fastmath", ()), value
states = []
for problem in pickle.load(open("problems", "rb")):
    engine = fused.FusedEngine(*problem, 2)
    states += [(engine.step(), engine.dictionary(), engine.codes()) for _ in range(3)]
pickle.dump(states, open("states", "wb"))
"""


def run(folder, program, **environment):
    """What a new process prints, in lines."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def compiled(kind, operation):
    load, store, splat, total, prefetch = kind.load, kind.store, kind.splat, kind.total, kind.prefetch

    @numba.njit
    def apply(a, b, result, at):
        prefetch(a, at)
        x, y = load(a, at), load(b, at)
        if operation == "+":
            store(result, at, x + y)
        elif operation == "-":
            store(result, at, x - y)
        elif operation == "*":
            store(result, at, x * y)
        elif operation == "splat":
            store(result, at, splat(b[1, 0]))
        else:
            result[0, 0] += total(x)

    return apply


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("operation", ["+", "-", "*", "splat", "total"])
def test_operations_equal_those_of_their_plain_twin(operation, dtype):
    assert vectors.load is simd.load
    width = vectors.width_of(np.dtype(dtype))
    a, b = np.random.default_rng(0).standard_normal((2, 3, 2 * width)).astype(dtype)
    result, expected = np.zeros_like(a), np.zeros_like(a)
    compiled(simd, operation)(a, b, result, 1)  # past the start, on no boundary
    plain = compiled(scalars, operation)
    for at in range(1, 1 + width):
        plain(a, b, expected, at)
    np.testing.assert_allclose(result, expected, rtol=1e-12 if dtype == np.float64 else 1e-6)
    assert np.count_nonzero(result) == (1 if operation == "total" else width)


def test_a_step_of_the_engine_is_the_same_without_simd(make_problem, tmp_path):
    problems = [make_problem("ball", (7, 21, 100), missing=0.2), make_problem("inexact-three", (7, 21, 100))]
    (tmp_path / "problems").write_bytes(pickle.dumps(problems))
    kind, warning = run(tmp_path, NO_MODULE + PICKED + STEPS)
    assert kind == "roadict.engines.cpu.scalars"
    assert f"cannot be built with Numba {numba.__version__} (ModuleNotFoundError" in warning
    plain = iter(pickle.loads((tmp_path / "states").read_bytes()))
    for problem in problems:
        engine = FusedEngine(*problem, 2)
        for _ in range(3):
            measures, dictionary, codes = next(plain)
            for name, value in vars(engine.step()).items():
                assert vars(measures)[name] == pytest.approx(value, rel=1e-12, abs=1e-12), name
            np.testing.assert_allclose(dictionary, engine.dictionary(), rtol=0, atol=1e-12)
            np.testing.assert_allclose(codes, engine.codes(), rtol=0, atol=1e-12 * np.abs(codes).max())
        engine.close()


def test_vectors_that_do_not_compile_are_replaced(tmp_path):
    kind, warning = run(tmp_path, NO_CODE + PICKED, NUMBA_CACHE_DIR=str(tmp_path / "empty"))
    assert kind == "roadict.engines.cpu.scalars"
    assert "no such vectors" in warning


def test_vectors_that_compute_something_else_are_noticed(monkeypatch):
    monkeypatch.setattr(simd, "_try_all", lambda numbers, result: 0.0)
    with pytest.raises(ArithmeticError, match="wrong result of vectors"):
        simd.check()
