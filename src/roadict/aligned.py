"""Arrays that start at a cache line, so that no vector of a kernel lies in two.

Where NumPy's own arrays start depends on what else has been allocated, and with it up to a tenth of a kernel's time.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

LINE_BYTES = 64


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros in C order."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def aligned(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return a copy in C order."""
    copy = aligned_zeros(np.shape(values), dtype)
    copy[...] = values
    return copy
