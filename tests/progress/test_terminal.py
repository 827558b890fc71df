"""What progress reports of the time left and of compilation, by a clock that the tests set."""

import time
from types import SimpleNamespace

import numba
import pytest
from numba.core import event

from roadict.cli.console import progress_bar
from roadict.progress import json_lines, terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until ``clock.now`` is set."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


class Compilation:
    """What Numba announces when it compiles a kernel; the last test sees that it does."""

    def __enter__(self):
        event.start_event("numba:compile")

    def __exit__(self, *failure):
        event.end_event("numba:compile")


def test_compiling_is_reported_and_not_counted_in_the_time_left(clock):
    left = terminal.TimeLeft()
    assert left(1, 100) == "time left unknown"
    clock.now += 2
    with Compilation():
        clock.now += 4
        with Compilation():  # of a kernel that the first calls: counted once
            clock.now += 3
    assert left(2, 100) == "0.5/s  at most 3 min 16 s left  (compiled in 7.0 s, first run only)"
    assert "compiled" not in terminal.TimeLeft()(1, 100)


def test_the_clock_starts_after_the_first_step_and_not_before_it(clock):
    left = terminal.TimeLeft()
    assert left(0, 100) == "time left unknown"
    clock.now += 50
    assert left(1, 100) == "time left unknown"
    clock.now += 1
    assert left(2, 100) == "1/s  at most 1 min 38 s left"


def test_a_short_compilation_is_not_reported(clock):
    left = terminal.TimeLeft()
    left(1, 100)
    with Compilation():
        clock.now += 0.4
    clock.now += 1
    assert left(2, 100) == "1/s  at most 1 min 38 s left"


@pytest.mark.parametrize("way", ["plain", "events"])
def test_compiling_is_reported_while_it_lasts(clock, capsys, monkeypatch, way):
    if way == "events":
        monkeypatch.setenv(json_lines.VARIABLE, "json")
    with progress_bar(quiet=False, verb="learning") as advance:
        advance(3, 100, "steps")
        with Compilation():
            clock.now += 5
            capsys.readouterr()
            with Compilation():
                said = capsys.readouterr().err
    if way == "plain":
        assert said == "learning waits for compilation (first run only): 5.0 s so far\n"
    else:
        (event,) = json_lines.read(said).values()
        assert event == {
            "verb": "learning",
            "done": 3,
            "total": 100,
            "text": "compiling (first run only)",
            "left": "5.0 s so far",
        }
    capsys.readouterr()
    clock.now += 5
    with Compilation():
        assert capsys.readouterr().err == "", "nobody watches any more"


def test_quiet_commands_do_not_report_compiling(clock, capsys):
    with progress_bar(quiet=True, verb="learning"):
        clock.now += 5
        with Compilation():
            clock.now += 5
            with Compilation():
                pass
    assert capsys.readouterr().err == ""


def test_the_compiling_of_all_kernels_is_counted():
    reports = []
    with terminal.reporting_compilation(reports.append):
        for i in range(3):
            numba.njit(lambda x, i=i: x + i)(1)
    assert len(reports) >= 3
    assert reports == sorted(set(reports)), "it continues where the last one ended"
    assert reports[-1] > 0
