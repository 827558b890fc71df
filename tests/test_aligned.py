"""Arrays that start at cache lines."""

import numpy as np
import pytest

from roadict.aligned import aligned, aligned_zeros


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (7, 5), (2, 3, 8)])
def test_zeros_start_at_a_cache_line(dtype, shape):
    kept = [aligned_zeros(shape, dtype) for _ in range(8)]  # together, so that they lie in different places
    for array in kept:
        assert array.ctypes.data % 64 == 0
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.flags.c_contiguous
        assert not array.any()
        array[...] = 1
    assert all(array.sum() == array.size for array in kept)


def test_copies_are_in_c_order_and_start_at_a_cache_line():
    values = np.arange(15.0).reshape(3, 5).T
    copies = [aligned(values, np.float32) for _ in range(8)]
    for copy in copies:
        assert copy.ctypes.data % 64 == 0
        assert copy.dtype == np.float32
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, values)
