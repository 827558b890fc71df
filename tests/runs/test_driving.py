"""Fits as generators: driven alone or many in turn, and shown to observers."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from roadict.runs.driving import drive, drive_all


def test_fits_take_turns_where_they_wait_for_the_batch():
    order = []

    def fitting(name, n_steps):
        for step in range(n_steps):
            order.append((name, step))
            yield None

    drive_all([fitting("a", 3), fitting("b", 2)])
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]


def test_others_go_on_while_one_waits_for_another_process():
    order, finished = [], threading.Event()

    def waits(pool):
        future = pool.submit(finished.wait, 60)
        yield future
        order.append(("waited", future.result()))

    def works():
        for step in range(3):
            order.append(step)
            yield None
        finished.set()

    with ThreadPoolExecutor(1) as pool:
        drive_all([waits(pool), works()])
    assert order == [0, 1, 2, ("waited", True)]


def test_a_failure_does_not_hold_up_the_others_and_is_raised_in_the_end():
    ended = []

    def fails():
        yield None
        raise ZeroDivisionError("first")

    def works():
        for _ in range(5):
            yield None
        ended.append(True)

    with pytest.raises(ZeroDivisionError, match="first"):
        drive_all([fails(), works()])
    assert ended


def test_a_fit_that_is_left_releases_what_it_holds():
    released = []

    def fitting():
        try:
            yield None
            raise KeyboardInterrupt
        finally:
            released.append(True)

    with pytest.raises(KeyboardInterrupt):
        drive(fitting())
    assert released
