"""How progress reports compilation."""

import re

import numba
import pytest

from roadict.cli.console import progress_bar
from roadict.progress import json_lines, terminal


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock that advances by a second at every reading, so that every compilation is long enough to be reported."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(terminal.time, "perf_counter", lambda: float(next(ticks)))


def test_compiling_is_reported_and_not_counted_in_the_time_left(slow_clock):
    left = terminal.TimeLeft()
    assert left(1, 100) == "time left unknown"
    numba.njit(lambda x: x + 1)(1)
    text = left(2, 100)
    compiled = re.search(r"compiled in (\S+) s, first run only", text)
    assert float(compiled[1]) >= 1
    # The ticks of the compiler between steps 1 and 2 are not counted.
    assert text.startswith("0.5/s"), text
    assert "compiled" not in terminal.TimeLeft()(1, 100)


def test_the_clock_starts_after_the_first_step(slow_clock):
    left = terminal.TimeLeft()
    assert left(0, 100) == "time left unknown"
    for _ in range(50):
        terminal.time.perf_counter()  # what comes before the first step
    assert left(1, 100) == "time left unknown"
    assert left(2, 100).startswith("1/s")


def test_a_short_compilation_is_not_reported():
    left = terminal.TimeLeft()
    left(1, 100)
    assert "compiled" not in left(2, 100)


@pytest.mark.parametrize("output", ["plain", "events"])
def test_compiling_is_reported_while_it_lasts(slow_clock, capsys, monkeypatch, output):
    if output == "events":
        monkeypatch.setenv(json_lines.VARIABLE, "json")
    with progress_bar(quiet=False, verb="learning") as advance:
        advance(3, 100, "steps")
        capsys.readouterr()
        numba.njit(lambda x: x + 1)(1)
        lines = capsys.readouterr().err.splitlines()
    assert lines
    if output == "plain":
        assert re.fullmatch(r"learning waits for compilation \(first run only\): \d\.0 s so far", lines[0])
    else:
        event = json_lines.read(lines[0])["progress"]
        assert re.fullmatch(r"\d\.0 s so far", event.pop("left"))
        assert event == {"verb": "learning", "done": 3, "total": 100, "text": "compiling (first run only)"}
    numba.njit(lambda x: x + 2)(1)
    assert capsys.readouterr().err == "", "no listener remains"


def test_the_compilation_of_all_kernels_is_counted(slow_clock):
    reported = []
    with terminal.reporting_compilation(reported.append):
        for i in range(3):
            numba.njit(lambda x, i=i: x + i)(1)
    assert len(reported) >= 3
    assert reported == sorted(set(reported)), "it continues where the last one ended"


def test_quiet_commands_do_not_report_compilation(slow_clock, capsys):
    with progress_bar(quiet=True, verb="learning"):
        numba.njit(lambda x: x + 3)(1)
    assert capsys.readouterr().err == ""
