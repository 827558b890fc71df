"""The line of a fit, and plain lines, by a clock that the tests set."""

import os
import time

import pytest

from roadict.progress.terminal import PlainProgress, ProgressLine, columns

from .line import Reading, Terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_progress_line_is_of_the_whole_fit_and_rewritten_on_a_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    line = ProgressLine(stream=stream)
    clock[0] += 60  # before the first iteration
    line(Reading(1))
    clock[0] += 10
    line(Reading(51))
    line(Reading(51))
    line.say("done")
    line(Reading(52))
    line.close()
    text = stream.getvalue()
    assert text.count("iteration 51 ") == 1, "not more often than people can read"
    for piece in ("time left unknown", "objective 12.5", "primal 1.0e-02", "dual 1.0e-03", "search 2 of 4"):
        assert piece in text
    assert "  5 %  about 3 min 10 s left" in text, "of the whole: 949 steps more at 5 a second"
    assert text.startswith("\r")
    assert "\r\x1b[Kdone\n" in text


def test_progress_line_is_elided_to_the_width_of_the_terminal(clock, monkeypatch):
    for width in (40, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        stream = Terminal()
        line = ProgressLine(stream=stream)
        clock[0] += 1
        line(Reading(1))
        shown = stream.getvalue().removeprefix("\r").removesuffix("\x1b[K")
        assert shown.startswith("  0 %  time left unknown")
        assert len(shown) == min(width - 1, 98)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_the_width_is_that_of_the_terminal_that_is_written_to(monkeypatch):
    """Not of standard output, which may be a file."""
    import fcntl
    import struct
    import termios

    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 133, 0, 0))
    with open(theirs, "w", encoding="utf-8") as stream:
        assert columns(stream) == 133
    os.close(ours)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("given", ["", "0", "-3", "wide"])
def test_a_terminal_of_no_columns_has_an_unknown_width(monkeypatch, given):
    monkeypatch.setenv("COLUMNS", given)
    ours, theirs = os.openpty()  # reports 0 until it is told
    with open(theirs, "w", encoding="utf-8") as stream:
        assert columns(stream) == 80
    os.close(ours)
    assert columns(Terminal()) == 80


def test_plain_progress_has_share_and_remaining_time_and_no_control_characters(clock, capsys):
    progress = PlainProgress("encoding")
    progress(1, 101, "samples")
    assert capsys.readouterr().err == "", "nothing within the first two seconds"
    clock[0] += 10
    progress(51, 101, "samples")
    assert capsys.readouterr().err == "encoding  50 %  about 10 s left  samples\n"
    clock[0] += 10
    progress(11, 101, "never back")
    assert capsys.readouterr().err == "encoding  50 %  about 20 s left  never back\n"
