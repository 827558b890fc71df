"""What is reported of kernels being compiled: once, with what is left, and not as part of the job's time."""

import re
import time
from types import SimpleNamespace

import numba
import pytest
from numba.core import event
from rich.console import Console

from roadict.cli.console import progress_bar
from roadict.progress import compiling, json_lines
from roadict.progress.bar import Line
from roadict.progress.remaining import TimeLeft
from roadict.progress.terminal import ProgressLine
from roadict.runs.driving import drive, observe

from .line import Reading, Terminal


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As in a new process: nothing has been compiled or said."""
    monkeypatch.setattr(compiling, "_clock", compiling._Clock())
    monkeypatch.setattr(compiling.OneLine, "written", False)


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


def compile_ahead(clock, total=7, seconds=2.0):
    compiling.report(0, total, seconds * total)
    for done in range(1, total + 1):
        clock.now += seconds
        compiling.report(done, total, seconds * (total - done))


def test_nobody_need_watch(clock, capsys):
    before = compiling.seconds()
    compile_ahead(clock)
    assert compiling.seconds() - before == 14
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("ahead", [True, False])
def test_compiling_is_not_counted_in_the_time_left(clock, ahead):
    left = TimeLeft()
    left(1, 100)
    clock.now += 2
    if ahead:
        compile_ahead(clock)
    else:
        with Compilation():
            clock.now += 4
            with Compilation():  # of a kernel that the first calls: counted once
                clock.now += 3
    assert left(2, 100) == "about 3 min 20 s left", "98 steps of 2 s"


def test_without_a_terminal_there_is_one_line_per_process(clock, capsys):
    for _ in range(2):
        with progress_bar(quiet=False, verb="learning") as advance:
            advance(3, 100, "steps")
            compile_ahead(clock)
            clock.now += 5
            with Compilation(), Compilation():
                clock.now += 5
    assert capsys.readouterr().err == "compiling kernels (first run only), about 14 s\n"


def test_the_line_names_the_time_that_the_compiler_expects(clock, capsys):
    with progress_bar(quiet=False, verb="learning"):
        compiling.report(0, 7, 14.2)
        compiling.report(7, 7)
    assert capsys.readouterr().err == "compiling kernels (first run only), about 14 s\n"


def test_what_is_left_counts_down_within_a_kernel_by_what_it_takes_at_most(clock):
    told = []
    with compiling.heard_by(told.append):
        compiling.report(0, 2, 10.0, 4.0)
        seen = []
        for _ in range(7):
            seen.append(told[-1].time_left)
            clock.now += 1
        assert seen == [f"about {left} s left to compile" for left in (10, 9, 8, 7, 6, 6, 6)]
        compiling.report(1, 2, 9.0, 9.0)
        assert told[-1].left_now == 6.0, "it never rises"
        clock.now += 60
        assert told[-1].left_now == 0.0
        compiling.report(2, 2)
        assert told.pop() is None
        compiling.report(0, 1, 5.0, 5.0)
        assert told[-1].left_now == 5.0, "another time"
        compiling.report(1, 1)


def test_events_tell_it_within_a_kernel(clock, capsys, monkeypatch):
    monkeypatch.setenv(json_lines.VARIABLE, "json")
    with progress_bar(quiet=False, verb="learning"):
        compiling.report(0, 1, 9.0, 9.0)
        for _ in range(3):
            clock.now += 2
            with Compilation():  # of what the kernel calls
                pass
        compiling.report(1, 1)
    events = [json_lines.read(line)["progress"] for line in capsys.readouterr().err.splitlines()]
    assert [event["left"] for event in events] == [f"about {left} s left to compile" for left in (9, 7, 5, 3)]


def test_the_bar_counts_down_by_itself(clock):
    line = Line("learning", 0.0)
    console = Console(file=Terminal(), width=120, force_terminal=True)
    compiling.seconds()
    with compiling.heard_by(lambda state: setattr(line, "compiling", state)):
        compiling.report(0, 1, 9.0, 9.0)
        for left in (9, 7, 5):
            console.print(line, end="")
            assert f"about {left} s left to compile" in console.file.getvalue()
            clock.now += 2
        compiling.report(1, 1)


def test_kernels_that_numba_compiles_by_itself_are_announced_once(clock, capsys):
    with progress_bar(quiet=False, verb="learning"):
        for _ in range(5):
            with Compilation():
                clock.now += 0.3
                with Compilation():
                    clock.now += 0.3
    assert capsys.readouterr().err == "compiling kernels (first run only)\n"


def test_events_tell_how_many_kernels_are_done_and_what_is_left(clock, capsys, monkeypatch):
    monkeypatch.setenv(json_lines.VARIABLE, "json")
    with progress_bar(quiet=False, verb="learning") as advance:
        advance(30, 100, "steps  more")
        capsys.readouterr()
        compile_ahead(clock)
    events = [json_lines.read(line)["progress"] for line in capsys.readouterr().err.splitlines()]
    assert len(events) == 6, "the first comes too soon after the step"
    assert events[2] == {
        "verb": "learning",
        "stage": "compiling kernels, first run only: 3 of 7",
        "share": 0.3,
        "text": "compiling kernels, first run only: 3 of 7",
        "left": "about 8 s left to compile",
    }


def test_the_line_of_a_fit_tells_it_in_place_and_how_long_it_took_once(clock):
    stream = Terminal()
    line = ProgressLine(stream=stream)
    with compiling.heard_by(line.compiling):
        clock.now += 1
        compile_ahead(clock)
    assert stream.getvalue().count("\n") == 0
    assert "\rcompiling kernels, first run only: 3 of 7  about 8 s left to compile\x1b[K" in stream.getvalue()
    line(Reading(1))
    line.say("one")
    line.say("two")
    assert stream.getvalue().endswith("one  (compiled in 14 s, first run only)\ntwo\n")


def test_a_verbose_fit_tells_it_before_its_first_iteration(clock, capsys):
    def fitting():
        compiling.report(0, 3, 9.0)
        compiling.report(3, 3)
        yield None
        return "fit"

    assert drive(observe(fitting(), verbose=1)) == "fit"
    assert capsys.readouterr().err == "compiling kernels (first run only), about 9 s\n"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_bar_tells_it_in_place_of_its_text_and_stays(width):
    line = Line("learning", 0.3)
    line.time_left, line.text = "about 9 s left", "search 1 of 4"

    def drawn():
        console = Console(file=Terminal(), width=width, force_terminal=True, color_system="256")
        console.print(line, end="")
        return re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue())

    bar = rf". learning ━{{{min(30, width // 4)}}}  30 %  "
    assert re.fullmatch(rf"{bar}about 9 .*", drawn())
    line.compiling = compiling.Compiling(3, 7, 6.0, 8.0)
    text = drawn()
    assert re.fullmatch(rf"{bar}about 8 .*", text)
    assert len(text) <= width - 2, "room for the echo of Ctrl-C"
    assert width < 120 or text.endswith("about 8 s left to compile  compiling kernels, first run only: 3 of 7")
    line.compiling = compiling.Compiling(0, 0, 12.0, None)
    assert width < 80 or drawn().endswith("%  compiling kernels, first run only: 12 s")


def test_a_short_compilation_is_not_reported(clock, capsys):
    stream = Terminal()
    line = ProgressLine(stream=stream)
    with progress_bar(quiet=False, verb="learning"), compiling.heard_by(line.compiling), Compilation():
        clock.now += 0.4
        with Compilation():
            pass
    line.say("done")
    assert stream.getvalue() == "done\n"
    assert capsys.readouterr().err == ""


def test_quiet_commands_do_not_report_compiling(clock, capsys):
    with progress_bar(quiet=True, verb="learning"):
        compile_ahead(clock)
    assert capsys.readouterr().err == ""


def test_the_compiling_of_all_kernels_is_counted():
    reports = []
    compiling.seconds()
    compiling._clock._past = compiling.MIN_SECONDS
    with compiling.heard_by(reports.append):
        for i in range(3):
            numba.njit(lambda x, i=i: x + i)(1)
    spent = [state.seconds for state in reports if state is not None]
    assert len(spent) >= 3
    assert spent == sorted(set(spent)), "it continues where the last one ended"
    assert reports[-1] is None
    assert compiling.seconds() > spent[-1]


def test_without_colours_the_rest_of_the_bar_is_empty(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=Terminal(), width=80, force_terminal=True, color_system="256")
    console.print(Line("learning", 0.5), end="")
    assert "━" * 10 + " " * 10 in re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue())
