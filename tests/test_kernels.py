"""The solver that kernels share; threads are in tests/engines/test_engines.py, the cache in test_kernel_cache.py."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from roadict.kernels import one_blas_thread, solve_positive


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-9), (np.float32, 1e-2)])
@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_positive_definite_systems_are_solved(size, dtype, close):
    rng = np.random.default_rng(size)
    factor = rng.standard_normal((size, 2 * size + 5))
    matrix, solution = factor @ factor.T, rng.standard_normal(size)
    target = (matrix @ solution).astype(dtype)
    solve_positive(matrix.astype(dtype), target)
    np.testing.assert_allclose(target, solution, atol=close)


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_dependent_directions_get_zero_and_the_system_is_solved_all_the_same(rank):
    """As for the Gram matrix of atoms of which some are multiples of others."""
    rng = np.random.default_rng(rank)
    factor = np.repeat(rng.standard_normal((rank, 9)), 2, axis=0) if rank else np.zeros((2, 9))
    matrix = factor @ factor.T
    target = matrix @ rng.standard_normal(len(matrix))
    solution = target.copy()
    solve_positive(matrix.copy(), solution)
    np.testing.assert_allclose(matrix @ solution, target, atol=1e-9)
    assert not solution[1::2].any()


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_of_blocks_and_its_own_number_after_the_last():
    seen, entered, left = [], threading.Event(), threading.Event()

    def overlap():
        with one_blas_thread():
            seen.append(blas_threads())
            entered.set()
            left.wait(60)

    other = threading.Thread(target=overlap)
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            other.start()
            assert entered.wait(60)
            with one_blas_thread():
                seen.append(blas_threads())
            seen.append(blas_threads())
        left.set()
        other.join()
        assert blas_threads() == {2}
        with pytest.raises(ValueError, match="inside"), one_blas_thread():
            raise ValueError("inside")
        assert blas_threads() == {2}
    assert seen == [{1}] * 3
