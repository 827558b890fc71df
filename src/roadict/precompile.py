"""Compile the kernels that a fit will need before it starts, in two processes that share the cache on disk.

Numba compiles one kernel at a time in a process. A second process takes kernels from the same list, and this one loads
what it has compiled; with one core, all are compiled here. Without a writable cache, and under torchrun if there are
several, kernels are compiled on first use.
"""

import contextlib
import math
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
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


def _encode(algorithm: str, dtype: np.dtype[Any], positive: bool = False) -> None:
    from roadict.coders.registry import encode

    data, atoms, _ = _problem(dtype)
    encode(data, None, atoms, algorithm=algorithm, positive=positive, n_jobs=1, warn=False)


def _polish(dtype: np.dtype[Any], positive: bool = False) -> None:
    from roadict.coders.polish import polish_codes

    data, atoms, codes = _problem(dtype)
    polish_codes(data, None, atoms, codes, positive=positive, n_jobs=1)


def _update(name: str, dtype: np.dtype[Any]) -> None:
    from roadict.updates.registry import UPDATES

    update = UPDATES[name]
    update.step(np.ones((1, 2)), np.eye(2), np.ones((1, 2)), **dict.fromkeys(update.parameters, 0.1))


def _alternate(dtype: np.dtype[Any]) -> None:
    """What every two-stage method calls between its coder and its update."""
    from roadict.updates.replace import replace_atoms
    from roadict.updates.sparse import atom_usage, energies, relative_change, residual

    data, atoms, codes = np.ones((1, 2)), np.eye(2), np.ones((1, 2))
    energies(residual(data, atoms, codes))
    atom_usage(codes)
    relative_change(codes, codes)
    replace_atoms(data, atoms, codes)


def _refit(dtype: np.dtype[Any]) -> None:
    """What SimCO and BLOTLESS call, and the others where atoms are rarely used."""
    from roadict.updates.sparse import refit

    refit(np.ones((1, 2)), np.eye(2), np.ones((1, 2)), 0.0, False)


def _coder(algorithm: str, module: str, name: str, seconds: float, positive: bool = False) -> Kernel:
    compile_it = partial(_encode, algorithm, positive=positive)
    always_double = algorithm not in ("lasso", "omp")
    return Kernel(f"roadict.coders.{module}", name, compile_it, seconds, always_double)


def _updating(name: str, module: str, kernel: str, seconds: float) -> Kernel:
    return Kernel(f"roadict.updates.{module}", kernel, partial(_update, name), seconds, always_double=True)


KERNELS = {
    "engine": Kernel("roadict.engines.cpu.passes", "exact_chunk", _iterate, 4.5),
    "polish": Kernel("roadict.coders.polish", "_polish_chunk", _polish, 2.0, always_double=True),
    "nonnegative-polish": Kernel(
        "roadict.coders.polish", "_nonnegative_chunk", partial(_polish, positive=True), 5.0, always_double=True
    ),
    "basis-pursuit": _coder("basis-pursuit", "basis_pursuit", "_basis_pursuit_chunk", 4.0),
    "lasso": _coder("lasso", "lasso", "_lasso_chunk", 4.5),
    "omp": _coder("omp", "omp", "_omp_chunk", 3.5),
    "nonnegative-omp": _coder("omp", "omp", "_nonnegative_chunk", 4.0, positive=True),
    "mp": _coder("mp", "mp", "_mp_chunk", 5.0),
    "sp": _coder("sp", "exchange", "exchange_chunk", 9.0),
    "cosamp": _coder("cosamp", "exchange", "exchange_chunk", 9.0),
    "half": _coder("half", "half", "_half_chunk", 12.0),
    "threshold": _coder("threshold", "threshold", "_threshold_chunk", 4.0),
    "alternation": Kernel("roadict.updates.sparse", "relative_change", _alternate, 1.5, always_double=True),
    "mod": _updating("mod", "sparse", "products", 1.0),
    "ksvd": _updating("ksvd", "ksvd", "_sweep", 10.5),
    "approximate-ksvd": _updating("approximate-ksvd", "ksvd", "_sweep", 10.5),
    "refit": Kernel("roadict.updates.sparse", "refit", _refit, 7.0, always_double=True),
    "sequential": _updating("sequential", "sequential", "_sweep", 4.0),
    "consistent-sequential": _updating("consistent-sequential", "sequential", "_sweep", 4.0),
}


def kernel_of_coder(coder: str, positive: bool) -> str:
    """Name of the kernel of a coder; one for nonnegative codes may have its own.

    Examples
    --------
    >>> kernel_of_coder("omp", True), kernel_of_coder("lasso", True)
    ('nonnegative-omp', 'lasso')
    """
    signed = f"nonnegative-{coder}"
    return signed if positive and signed in KERNELS else coder


def kernels_of_alternation(update: str, coder: str | None, positive_code: bool) -> list[str]:
    """Names of the kernels of a two-stage method; without a coder its first codes are those of the Lasso.

    Examples
    --------
    >>> kernels_of_alternation("ksvd", "omp", True), kernels_of_alternation("sequential", None, False)
    (['ksvd', 'refit', 'nonnegative-omp', 'alternation'], ['sequential', 'lasso', 'alternation'])
    """
    own = [update] if update in KERNELS else []
    refit = [] if coder is None else ["refit"]
    return [*own, *refit, kernel_of_coder(coder or "lasso", positive_code), "alternation"]


def kernels_of_choice(formulation: str, positive_code: bool, engine: str) -> list[str]:
    """Names of the kernels that choose the number of atoms, and those of the fit that follows.

    Examples
    --------
    >>> kernels_of_choice("lasso", False, "numba"), kernels_of_choice("constrained", True, "cuda")
    (['engine', 'polish', 'lasso'], ['nonnegative-polish', 'lasso', 'basis-pursuit'])
    """
    polish = "nonnegative-polish" if positive_code else "polish"
    exact = ["basis-pursuit"] if formulation == "constrained" else []
    return [*(["engine"] if engine == "numba" else []), polish, "lasso", *exact]


def missing(names: Iterable[str], dtype: DTypeLike) -> list[str]:
    """Return those of these kernels that have not been compiled for data of a dtype, here or into the cache."""
    number = np.dtype(dtype)
    return [name for name in names if not _is_compiled(name, number)]


def prepare(names: Iterable[str], dtype: DTypeLike) -> None:
    """Compile the kernels named, for data of a dtype, unless they are in the cache: one alone here, several in two.

    This process takes the first, the other one the last, until none is left. What goes wrong in the other is not told:
    such kernels are compiled on first use.
    """
    number = np.dtype(dtype)
    waiting = deque(missing(names, number))
    total = len(waiting)
    if total == 0 or (total > 1 and started_by_torchrun()):
        return
    helper = _start_helper(number) if total > 1 and joblib.cpu_count() > 1 and _is_python() else None
    try:
        _share(waiting, helper, number)
    finally:
        waiting.clear()  # ends the thread that feeds the helper
        if helper is not None:
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


def _share(waiting: "deque[str]", helper: "subprocess.Popen[bytes] | None", dtype: np.dtype[Any]) -> None:
    """Compile what is waiting, here and in the helper, if there is one, which is given one name at a time."""
    names, done = tuple(waiting), list[str]()
    n_processes = 1 if helper is None else 2
    feeder = None if helper is None else threading.Thread(target=_feed, args=(helper, waiting, done), daemon=True)
    if feeder is not None:
        feeder.start()
    while (name := _first(waiting)) is not None:
        _report(names, done, n_processes, KERNELS[name].seconds)
        _compile(name, dtype)
        done.append(name)
    if feeder is not None:
        _report(names, done, n_processes, math.inf)
        feeder.join(PATIENCE * _seconds(names, n_processes))


def _feed(helper: "subprocess.Popen[bytes]", waiting: "deque[str]", done: list[str]) -> None:
    """Give the helper the last name, wait until it is done, and so on."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    # IndexError: the last is taken; OSError: the helper has ended
    with helper.stdin, helper.stdout, contextlib.suppress(IndexError, OSError):
        while waiting:
            name = waiting.pop()
            helper.stdin.write(f"{name}\n".encode())
            if not helper.stdout.readline():
                return
            done.append(name)


def _report(names: tuple[str, ...], done: list[str], n_processes: int, step: float) -> None:
    """Tell what is left; ``step``: seconds that the kernel takes which is compiled now."""
    left = set(names).difference(done)
    compiling.report(min(len(done), len(names) - 1), len(names), _seconds(left, n_processes), step)


def _first(waiting: "deque[str]") -> str | None:
    """Take the first name; None: the thread that feeds the helper has taken the last."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _seconds(names: Collection[str], n_processes: int) -> float:
    """Seconds that so many processes need for these, if the machine is idle: no fewer than the longest takes.

    Examples
    --------
    >>> _seconds(["omp", "lasso"], 1), _seconds(["omp", "lasso"], 2), _seconds([], 2)
    (8.0, 4.5, 0.0)
    """
    seconds = [KERNELS[name].seconds for name in names]
    return max(sum(seconds) / n_processes, max(seconds, default=0.0))


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
