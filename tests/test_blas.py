"""BLAS on one thread."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from roadict.blas import one_blas_thread


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


def test_after_a_block_another_thread_can_limit_blas():
    seen = []

    def limited():
        with one_blas_thread():
            seen.append(blas_threads())

    with one_blas_thread():
        pass
    before = blas_threads()
    other = threading.Thread(target=limited)
    other.start()
    other.join()
    assert (seen, blas_threads()) == ([{1}], before)
