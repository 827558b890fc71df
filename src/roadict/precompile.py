"""Compile the kernels that a fit will need before it starts, in two processes that share the cache on disk.

Numba compiles one kernel at a time in a process. A second process takes kernels from the same list, and this one loads
what it has compiled. Without a writable cache, with one core, or under torchrun, kernels are compiled on first use.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import DTypeLike, NDArray

from roadict.kernel_cache import is_compiled
from roadict.progress import compiling

PACKAGE = Path(__file__).parent


class Recipe(NamedTuple):
    """How to compile a kernel, and what its callers have compiled too.

    Attributes
    ----------
    module, kernel : str
    compile : callable
        Calls it on a small problem of a dtype.
    seconds : float
        What it takes, to tell how much is left; as ``python benchmarks/compile.py`` finds it.
    """

    module: str
    kernel: str
    compile: Callable[[np.dtype[Any]], object]
    seconds: float


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


RECIPES = {
    "engine": Recipe("roadict.engines.cpu.passes", "exact_chunk", _iterate, 4.5),
    "polish": Recipe("roadict.coders.polish", "_polish_chunk", _polish, 1.5),
    "basis-pursuit": Recipe(
        "roadict.coders.basis_pursuit", "_basis_pursuit_chunk", partial(_encode, "basis-pursuit"), 4.0
    ),
    "lasso": Recipe("roadict.coders.lasso", "_lasso_chunk", partial(_encode, "lasso"), 4.5),
}
ALWAYS_DOUBLE = ("polish", "basis-pursuit")


def prepare(names: Iterable[str], dtype: DTypeLike) -> None:
    """Compile the kernels named, for data of a dtype, if at least two of them are not in the cache.

    This process takes the first, the other one the last, until none is left.
    """
    waiting = deque(name for name in names if not _is_compiled(name, np.dtype(dtype)))
    total = len(waiting)
    if total < 2 or joblib.cpu_count() < 2 or int(os.environ.get("WORLD_SIZE", "1")) > 1 or not _is_python():
        return
    compiling.report(0, total, _seconds(waiting))
    with subprocess.Popen(
        [sys.executable, "-m", "roadict.precompile", np.dtype(dtype).name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C is for this process
    ) as helper:
        try:
            _share(waiting, helper, np.dtype(dtype), total)
        except BaseException:
            helper.kill()
            raise
        finally:
            compiling.report(total, total)


def _share(waiting: "deque[str]", helper: "subprocess.Popen[str]", dtype: np.dtype[Any], total: int) -> None:
    """Compile what is waiting, here and in the helper, which is given one name at a time."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    names, done = tuple(waiting), list[str]()

    def feed() -> None:
        assert helper.stdin is not None
        assert helper.stdout is not None
        try:
            while waiting:
                name = waiting.pop()
                print(name, file=helper.stdin, flush=True)
                if not helper.stdout.readline():
                    return
                done.append(name)
        except (IndexError, OSError):  # the other thread took the last; the helper has ended: compile on first use
            pass

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    while waiting:
        try:
            name = waiting.popleft()
        except IndexError:
            break
        RECIPES[name].compile(dtype)
        done.append(name)
        compiling.report(min(len(done), total - 1), total, _seconds(set(names) - set(done)))
    feeder.join()
    helper.stdin.close()


def _seconds(names: Iterable[str]) -> float:
    """Seconds that two processes need for these, if the machine is idle."""
    return sum(RECIPES[name].seconds for name in names) / 2


def _is_compiled(name: str, dtype: np.dtype[Any]) -> bool:
    recipe = RECIPES[name]
    kernel = getattr(import_module(recipe.module), recipe.kernel)
    return is_compiled(kernel, np.dtype(np.float64) if name in ALWAYS_DOUBLE else dtype)


def _is_python() -> bool:
    """Whether this is a Python that can start another one, not a program that has one inside."""
    return Path(sys.executable or "").stem.startswith("python") and not getattr(sys, "frozen", False)


def main() -> None:
    """Compile what standard input names, line by line, and print every name when it is done."""
    dtype = np.dtype(sys.argv[1])
    for line in sys.stdin:
        RECIPES[line.strip()].compile(dtype)
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
