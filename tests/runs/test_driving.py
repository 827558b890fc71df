"""Fits as generators, driven alone or concurrently."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from roadict.runs.driving import drive, drive_all, tapped


def test_fits_take_turns_when_they_wait_for_the_batch():
    order = []

    def fitting(name, n_steps):
        for step in range(n_steps):
            order.append((name, step))
            yield None

    drive_all([fitting("a", 3), fitting("b", 2)])
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]


def test_other_fits_continue_while_one_waits_for_another_process():
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


def test_an_error_does_not_stop_other_fits_and_is_raised_at_the_end():
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


def test_an_interrupted_fit_releases_its_resources():
    released = []

    def fitting():
        try:
            yield None
        finally:
            released.append(True)

    def interrupts(event):
        raise KeyboardInterrupt

    fit = fitting()  # named here, so that only drive closes it
    with pytest.raises(KeyboardInterrupt):
        drive(tapped(fit, interrupts))
    assert released
