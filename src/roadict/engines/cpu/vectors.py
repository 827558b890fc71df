"""Vectors of atoms as values in kernels: SIMD registers, or single numbers where Numba cannot build those.

``load``, ``store``, ``prefetch``, ``splat``, ``larger`` and ``total`` are described in ``simd``; ``scalars`` is their
plain twin.
"""

import warnings
from functools import partial
from types import ModuleType
from typing import Any

import numba
import numpy as np

import roadict.engines.cpu.scalars as scalars
from roadict.kernels import kernel


def _pick() -> ModuleType:
    try:
        import roadict.engines.cpu.simd as simd

        simd.check()
    except Exception as error:  # whatever another release of Numba or llvmlite makes of its internals
        warnings.warn(
            f"SIMD kernels cannot be built with Numba {numba.__version__} ({type(error).__name__}: {error}); "
            "plain kernels, several times slower, are used instead. Install a version of Numba that roadict requires.",
            RuntimeWarning,
            stacklevel=2,
        )
        return scalars
    return simd


_kind = _pick()
VECTOR_BYTES: int = _kind.VECTOR_BYTES
load, store, prefetch, splat = _kind.load, _kind.store, _kind.prefetch, _kind.splat
larger, total = _kind.larger, _kind.total
# Kernels of either kind are cached apart. With single numbers their loops both write and sum: no sum may be reordered.
vector_kernel = partial(kernel, ordered=_kind is scalars, allocates=False)


def width_of(dtype: np.dtype[Any]) -> int:
    """Numbers per vector."""
    return max(1, VECTOR_BYTES // dtype.itemsize)
