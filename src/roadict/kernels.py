"""Threads for kernels that release the GIL, and the one way to compile such kernels."""

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import joblib
import numba
import numpy as np

from roadict.kernel_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(
    function: Function, *, ordered: bool = False, allocates: bool = True, inline: bool = True, inner: bool = False
) -> Function:
    """Compile with Numba: no GIL, sums may be reordered at compile time, NaN and infinity keep their meaning.

    The machine code is cached on disk where Numba finds a writable place for it. So that sums repeat to the last bit,
    a loop that sums must not write to arrays: such loops check at run time whether arrays lie apart, conservatively.
    With ``ordered`` sums keep their order, and such loops are allowed. A kernel that allocates no arrays compiles and
    runs faster without reference counts. One that is ``inner``, called by kernels only, compiles faster without an
    entry for Python.
    """
    compiled: Function = numba.njit(
        nogil=True,
        error_model="numpy",
        fastmath={"contract", "nsz", "arcp"} if ordered else {"reassoc", "contract", "nsz", "arcp"},
        # A callee that stays a function has two compiled copies, its own and one in its caller's library; which
        # one runs depends on what was compiled before, and their sums may differ in the last bit.
        forceinline=inline,
        _nrt=allocates,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=inner,
    )(function)
    with contextlib.suppress(RuntimeError):  # no writable place for the cache
        compiled._cache = KernelCache(function, "ordered" if ordered else "")  # type: ignore[attr-defined]
    return compiled


def inlined(function: Function) -> Function:
    """Mark a part of a kernel, called from one place in it: Numba copies it there before types are inferred.

    Compiled as a function of its own, it would be optimised and translated once for itself, once for its caller, once
    for the caller's caller... A part that is called from several places is a kernel that is not inlined.
    """
    part: Function = numba.njit(inline="always", nogil=True, error_model="numpy")(function)
    return part


class Workers:
    """A few threads, the caller's among them.

    Numba's own thread layers abort the process when two threads, or a forked child, use them; plain threads do
    not, and kernels that release the GIL need no more.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = joblib.cpu_count() if n_jobs is None else joblib.effective_n_jobs(n_jobs)
        self._pool = ThreadPoolExecutor(self.n_threads - 1, "roadict") if self.n_threads > 1 else None

    def run(self, task: Callable[[int], Any], count: int, advance: Callable[[int], Any] | None = None) -> None:
        """Call ``task(i)`` for every i below ``count``, in no particular order.

        ``advance`` is called with the number done, always in the caller's thread: it may be a user's function.
        """
        turns, finished, broken = itertools.count(), itertools.count(1), threading.Event()

        def work(report: Callable[[int], Any] | None) -> None:
            while not broken.is_set() and (i := next(turns)) < count:
                task(i)
                done = next(finished)
                if report is not None:
                    report(done)

        others: list[Future[None]] = []
        if self._pool is not None:
            others = [self._pool.submit(work, None) for _ in range(min(self.n_threads, count) - 1)]
        try:
            work(advance)
        except BaseException:  # Ctrl-C too: the other threads take no more
            broken.set()
            raise
        finally:
            for other in others:
                other.result()

    def __enter__(self) -> "Workers":
        """Return the threads; leaving the block ends them."""
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


@inlined
def solve_factor(factor, size, target):
    """Solve factor @ factor.T @ x = target in place; x is zero where the pivot is."""
    for i in range(size):
        value = target[i]
        for j in range(i):
            value -= factor[i, j] * target[j]
        target[i] = value / factor[i, i] if factor[i, i] > 0 else 0.0
    for i in range(size - 1, -1, -1):
        value = target[i]
        for j in range(i + 1, size):
            value -= factor[j, i] * target[j]
        target[i] = value / factor[i, i] if factor[i, i] > 0 else 0.0


@inlined
def solve_positive(matrix, size, target):
    """Solve a symmetric positive semidefinite system in place; directions without a pivot get zero."""
    for i in range(size):
        pivot = matrix[i, i]
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j] if matrix[j, j] > 0 else 0.0
            pivot -= matrix[i, j] * matrix[i, j]
        matrix[i, i] = np.sqrt(pivot) if pivot > 1e-12 * matrix[i, i] else 0.0
    solve_factor(matrix, size, target)


@kernel
def solve_nonnegative(matrix, target, start):
    """Minimise ``x @ matrix @ x / 2 - target @ x`` over x ≥ 0, from a start that is not negative.

    The matrix is symmetric and positive semidefinite. Active sets (Lawson and Hanson 1974): a variable of positive
    slope is freed, and those that would become negative on the way to the minimum over the free ones return to zero.
    """
    size = len(target)
    values, free = start.copy(), start > 0
    rounding = 1e-13 * np.max(np.abs(target)) if size > 0 else 0.0
    for _ in range(3 * size + 1):
        chosen = np.flatnonzero(free)
        while len(chosen) > 0:
            among, solution = np.empty((len(chosen), len(chosen))), target[chosen]
            for i in range(len(chosen)):
                for j in range(len(chosen)):
                    among[i, j] = matrix[chosen[i], chosen[j]]
            solve_positive(among, len(chosen), solution)
            step, first = 1.0, -1
            for i in range(len(chosen)):
                old = values[chosen[i]]
                reach = old / (old - solution[i]) if old > 0 else 0.0
                if solution[i] <= 0 and (first < 0 or reach < step):
                    step, first = reach, i
            for i in range(len(chosen)):
                values[chosen[i]] += step * (solution[i] - values[chosen[i]])
            if first < 0:
                values[chosen] = solution
                break
            values[chosen[first]] = 0.0
            for i in range(len(chosen)):
                free[chosen[i]] = values[chosen[i]] > 0
                values[chosen[i]] = max(values[chosen[i]], 0.0)
            chosen = np.flatnonzero(free)
        best, steepest = -1, rounding
        for k in range(size):
            slope = target[k]
            for j in range(size):
                slope -= matrix[k, j] * values[j]
            if not free[k] and slope > steepest:
                best, steepest = k, slope
        if best < 0:
            break
        free[best] = True
    return values
