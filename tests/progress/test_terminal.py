"""What progress says of compilation."""

import re

import numba
import pytest

from roadict.cli.console import progress_bar
from roadict.progress import json_lines, terminal


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock that advances by a second whenever it is looked at, so that every compilation is worth telling."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(terminal.time, "perf_counter", lambda: float(next(ticks)))


def test_compiling_is_told_and_leaves_the_time_left_alone(slow_clock):
    left = terminal.TimeLeft()
    assert left(1, 100) == "time left unknown"
    numba.njit(lambda x: x + 1)(1)
    said = left(2, 100)
    compiled = re.search(r"compiled once, in (\S+) s", said)
    assert float(compiled[1]) >= 1
    # Of the ticks between steps 1 and 2 those of the compiler are not counted.
    assert said.startswith("0.5/s"), said
    assert "compiled" not in terminal.TimeLeft()(1, 100)


def test_the_clock_starts_after_the_first_step_and_not_before_it(slow_clock):
    left = terminal.TimeLeft()
    assert left(0, 100) == "time left unknown"
    for _ in range(50):
        terminal.time.perf_counter()  # what comes before the first step
    assert left(1, 100) == "time left unknown"
    assert left(2, 100).startswith("1/s")


def test_a_short_compilation_is_not_told():
    left = terminal.TimeLeft()
    left(1, 100)
    assert "compiled" not in left(2, 100)


@pytest.mark.parametrize("way", ["plain", "events"])
def test_compiling_is_told_while_it_lasts(slow_clock, capsys, monkeypatch, way):
    if way == "events":
        monkeypatch.setenv(json_lines.VARIABLE, "json")
    with progress_bar(quiet=False, verb="learning") as advance:
        advance(3, 100, "steps")
        capsys.readouterr()
        numba.njit(lambda x: x + 1)(1)
        lines = capsys.readouterr().err.splitlines()
    assert lines
    if way == "plain":
        assert re.fullmatch(r"learning waits for compilation, once: \d\.0 s so far", lines[0])
    else:
        told = json_lines.read(lines[0])["progress"]
        assert re.fullmatch(r"\d\.0 s so far", told.pop("left"))
        assert told == {"verb": "learning", "done": 3, "total": 100, "text": "compiling, once"}
    numba.njit(lambda x: x + 2)(1)
    assert capsys.readouterr().err == "", "nobody watches any more"


def test_the_compiling_of_all_kernels_is_counted(slow_clock):
    told = []
    with terminal.watching_compilation(told.append):
        for i in range(3):
            numba.njit(lambda x, i=i: x + i)(1)
    assert len(told) >= 3
    assert told == sorted(set(told)), "it goes on where the last one ended"


def test_quiet_commands_do_not_tell_of_compiling(slow_clock, capsys):
    with progress_bar(quiet=True, verb="learning"):
        numba.njit(lambda x: x + 3)(1)
    assert capsys.readouterr().err == ""
