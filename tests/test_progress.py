"""What the progress line says of compilation."""

import re

import numba
import pytest

from roadict import progress


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock that advances by a second whenever it is looked at, so that every compilation is worth telling."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: float(next(ticks)))


def test_compiling_is_told_and_leaves_the_time_left_alone(slow_clock):
    left = progress.TimeLeft()
    assert left(1, 100) == "time left unknown"
    numba.njit(lambda x: x + 1)(1)
    said = left(2, 100)
    compiled = re.search(r"compiled once, in (\S+) s", said)
    assert float(compiled[1]) >= 1
    # Of the ticks between steps 1 and 2 those of the compiler are not counted.
    assert said.startswith("0.5/s"), said
    assert "compiled" not in progress.TimeLeft()(1, 100)


def test_a_short_compilation_is_not_told():
    left = progress.TimeLeft()
    left(1, 100)
    assert "compiled" not in left(2, 100)
