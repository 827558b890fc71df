"""The solver that kernels share, and their threads; the cache is in test_kernel_cache.py."""

import threading

import numpy as np
import pytest

from roadict.kernels import Workers, solve_positive


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-9), (np.float32, 1e-2)])
@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_positive_definite_systems_are_solved(size, dtype, close):
    rng = np.random.default_rng(size)
    factor = rng.standard_normal((size, 2 * size + 5))
    matrix, solution = factor @ factor.T, rng.standard_normal(size)
    target = (matrix @ solution).astype(dtype)
    solve_positive(matrix.astype(dtype), size, target)
    np.testing.assert_allclose(target, solution, atol=close)


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_dependent_directions_get_zero_and_the_system_is_solved_all_the_same(rank):
    """As for the Gram matrix of atoms of which some are multiples of others."""
    rng = np.random.default_rng(rank)
    factor = np.repeat(rng.standard_normal((rank, 9)), 2, axis=0) if rank else np.zeros((2, 9))
    matrix = factor @ factor.T
    target = matrix @ rng.standard_normal(len(matrix))
    solution = target.copy()
    solve_positive(matrix.copy(), len(solution), solution)
    np.testing.assert_allclose(matrix @ solution, target, atol=1e-9)
    assert not solution[1::2].any()


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_after_a_failure_of_the_caller_the_other_threads_take_no_more_tasks(failure):
    started, failed = [], threading.Event()
    caller = threading.current_thread()

    def task(index):
        started.append(index)
        if threading.current_thread() is caller:
            failed.set()
            raise failure
        failed.wait(10)

    with Workers(2) as workers, pytest.raises(failure):
        workers.run(task, 1000)
    assert len(started) < 10
