"""Compile the kernels that a fit will need before it starts, in two processes that share the cache on disk.

Numba compiles one kernel at a time in a process. A second process takes kernels from the same list, and this one loads
what it has compiled. Without a writable cache, with one core, or under torchrun, kernels are compiled on first use.
"""

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import DTypeLike, NDArray

from roadict.kernel_cache import is_compiled
from roadict.progress import compiling
from roadict.ranks.comm import started_by_torchrun

PATIENCE = 20
"""Times the usual seconds after which a helper counts as stuck."""


class Kernel(NamedTuple):
    """Where a kernel is, and how to compile it, with what its callers have compiled too.

    Attributes
    ----------
    module, name : str
    compile : callable
        Calls it on a small problem of a dtype.
    seconds : float
        What it takes, to tell how much is left; as ``python benchmarks/compile.py`` finds it.
    always_double : bool
        Whether it is for float64 alone, whatever the dtype of the data.
    """

    module: str
    name: str
    compile: Callable[[np.dtype[Any]], object]
    seconds: float
    always_double: bool = False


def _problem(dtype: DTypeLike) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
    """Samples, atoms and codes; one sample, so that coders do not start threads."""
    return np.ones((1, 2), dtype), np.eye(3, 2, dtype=dtype), np.ones((1, 3), dtype)


def _iterate(dtype: np.dtype[Any]) -> None:
    from roadict.engines.cpu.fused import FusedEngine
    from roadict.formulation import Problem, constrained

    data, atoms, codes = _problem(dtype)
    engine = FusedEngine(Problem(data, None, constrained(0.0), (1.0, 1.0, 1.0)), atoms, codes, n_jobs=1)
    engine.step()
    engine.step()  # the rank-one step comes with the second
    engine.close()


def _encode(algorithm: str, dtype: np.dtype[Any]) -> None:
    from roadict.coders.registry import encode

    data, atoms, _ = _problem(dtype)
    encode(data, None, atoms, algorithm=algorithm, n_jobs=1, warn=False)


def _polish(dtype: np.dtype[Any]) -> None:
    from roadict.coders.polish import polish_codes

    data, atoms, codes = _problem(dtype)
    polish_codes(data, None, atoms, codes, n_jobs=1)


KERNELS = {
    "engine": Kernel("roadict.engines.cpu.passes", "exact_chunk", _iterate, 4.5),
    "polish": Kernel("roadict.coders.polish", "_polish_chunk", _polish, 2.0, always_double=True),
    "basis-pursuit": Kernel(
        module="roadict.coders.basis_pursuit",
        name="_basis_pursuit_chunk",
        compile=partial(_encode, "basis-pursuit"),
        seconds=4.0,
        always_double=True,
    ),
    "lasso": Kernel("roadict.coders.lasso", "_lasso_chunk", partial(_encode, "lasso"), 4.5),
    "omp": Kernel("roadict.coders.omp", "_omp_chunk", partial(_encode, "omp"), 3.5),
}


def prepare(names: Iterable[str], dtype: DTypeLike) -> None:
    """Compile the kernels named, for data of a dtype, unless they are in the cache: one alone here, several in two.

    This process takes the first, the other one the last, until none is left. What goes wrong in the other is not told:
    such kernels are compiled on first use.
    """
    number = np.dtype(dtype)
    waiting = deque(name for name in names if not _is_compiled(name, number))
    total = len(waiting)
    if total == 1:
        compiling.report(0, 1, KERNELS[waiting[0]].seconds)
        try:
            _compile(waiting[0], number)
        finally:
            compiling.report(1, 1)
    if total < 2 or joblib.cpu_count() < 2 or started_by_torchrun() or not _is_python():
        return
    helper = _start_helper(number)
    if helper is None:
        return
    compiling.report(0, total, _seconds(waiting))
    try:
        _share(waiting, helper, number, total)
    finally:
        waiting.clear()  # ends the thread that feeds the helper
        helper.kill()
        helper.wait()
        compiling.report(total, total)


def _compile(name: str, dtype: np.dtype[Any]) -> None:
    with np.errstate(all="ignore"):
        KERNELS[name].compile(dtype)


def _start_helper(dtype: np.dtype[Any]) -> "subprocess.Popen[bytes] | None":
    """Start the other process, with the modules of this one; None: it cannot be started."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from roadict.precompile import main; main()"
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", program, dtype.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for this process
        )
    except OSError:
        return None


def _share(waiting: "deque[str]", helper: "subprocess.Popen[bytes]", dtype: np.dtype[Any], total: int) -> None:
    """Compile what is waiting, here and in the helper, which is given one name at a time."""
    names, done = tuple(waiting), list[str]()

    def feed() -> None:
        assert helper.stdin is not None
        assert helper.stdout is not None
        with helper.stdin, helper.stdout, suppress(IndexError, OSError):  # the last is taken; the helper has ended
            while waiting:
                name = waiting.pop()
                helper.stdin.write(f"{name}\n".encode())
                if not helper.stdout.readline():
                    return
                done.append(name)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    while (name := _first(waiting)) is not None:
        _compile(name, dtype)
        done.append(name)
        compiling.report(min(len(done), total - 1), total, _seconds(set(names) - set(done)))
    feeder.join(PATIENCE * _seconds(names))


def _first(waiting: "deque[str]") -> str | None:
    """Take the first name; None: the thread that feeds the helper has taken the last."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _seconds(names: Iterable[str]) -> float:
    """Seconds that two processes need for these, if the machine is idle."""
    return sum(KERNELS[name].seconds for name in names) / 2


def _is_compiled(name: str, dtype: np.dtype[Any]) -> bool:
    named = KERNELS[name]
    kernel = getattr(import_module(named.module), named.name)
    return is_compiled(kernel, np.dtype(np.float64) if named.always_double else dtype)


def _is_python() -> bool:
    """Whether this is a Python that can start another one, not a program that has one inside."""
    return Path(sys.executable or "").stem.startswith("python") and not getattr(sys, "frozen", False)


def main() -> None:
    """Compile what standard input names, line by line, and print every name when it is done."""
    dtype = np.dtype(sys.argv[1])
    for line in sys.stdin:
        _compile(line.strip(), dtype)
        print(line.strip(), flush=True)
