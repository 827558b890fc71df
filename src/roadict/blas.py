"""BLAS on one thread, while kernels run on the others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


class _Limits(threading.local):
    """Limits of BLAS threads: how deep this thread is inside of blocks of one, and what to restore at their end.

    Depending on the library a limit holds for the calling thread or for the process. In the latter case a thread that
    enters a block finds the limit of another one, so what was there before any is remembered too; and threadpoolctl
    lets only one thread set limits, until that gives up control.
    """

    lock = threading.Lock()
    n_threads_inside = 0
    before_any: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.depth = 0
        self.before: tuple[int, ...] = ()

    def enter(self) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        with _Limits.lock:
            found = tuple(library.num_threads for library in _libraries())
            if _Limits.n_threads_inside == 0:
                _Limits.before_any = found
            _Limits.n_threads_inside += 1
            self.before = tuple(map(max, found, _Limits.before_any))
            _set_limits((1,) * len(found))

    def leave(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            with _Limits.lock:
                _Limits.n_threads_inside -= 1
                _set_limits(self.before)
                _give_up_control()


@cache
def _libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries loaded so far; to look for them takes milliseconds."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_limits(limits: tuple[int, ...]) -> None:
    for library, limit in zip(_libraries(), limits, strict=True):
        library.set_num_threads(limit)


def _give_up_control() -> None:
    for library in _libraries():
        if hasattr(library, "clear_controlling_thread"):  # older versions let all threads set limits
            library.clear_controlling_thread()


_LIMITS = _Limits()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to the calling thread: after a product its other threads spin on the cores that kernels need."""
    _LIMITS.enter()
    try:
        yield
    finally:
        _LIMITS.leave()
