"""Jobs of several stages: the share of the whole, and the time left for all of it."""

import time
from types import SimpleNamespace

import pytest

from roadict.progress.remaining import TimeLeft
from roadict.progress.stages import STEPS, ResumedShare, Stages, likely_part


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


def seconds_of(text):
    """The time that a text such as "about 3 min 10 s left" names."""
    words = text.removeprefix("about ").removesuffix(" left").split()
    units = {"s": 1, "min": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))


def test_stages_that_end_early_or_never_begin_complete_their_share():
    job = Stages({"a": 2, "b": 3, "c": 5})
    assert [job.share("a", part) for part in (0, 0.5)] == [0, 0.1]
    assert job.share("c", 0) == 0.5
    assert job.share("c", 1) == 1


def test_the_share_never_falls():
    job = Stages({"a": 1, "b": 1})
    assert job.share("b", 0.5) == 0.75
    assert job.share("a", 0.1) == 0.75
    assert job.share("b", 0.2) == 0.75


def test_parts_report_steps_of_the_whole_also_of_jobs_within_jobs():
    calls = []
    whole = Stages({"training": 3, "enlarging": 1})
    inner = Stages({"x": 1, "y": 2})
    inner.part("y", whole.part("training", lambda *call: calls.append(call)))(1, 2, "half of y")
    whole.part("enlarging", lambda *call: calls.append(call))(1, 4, "tiles")
    assert calls == [
        (round(STEPS * 0.75 * 2 / 3), STEPS, "half of y"),
        (round(STEPS * (0.75 + 0.25 / 4)), STEPS, "tiles"),
    ]


def test_a_stage_that_takes_longer_than_expected_still_moves_and_does_not_end():
    parts = [likely_part(done, 40) for done in range(1, 4000)]
    assert parts == sorted(set(parts))
    assert parts[-1] < 1


def test_the_time_left_is_that_of_the_whole_job(clock):
    """Three stages of 10, 30 and 160 s that cost as much as expected: what is foretold is true from the start."""
    job, left = Stages({"learning": 1, "refining": 3, "coding": 16}), TimeLeft()
    ends = {"learning": 10.0, "refining": 40.0, "coding": 200.0}
    began, start, foretold = clock.now, 0.0, []
    left(0, STEPS)
    for stage, end in ends.items():
        for step in range(1, 101):
            clock.now = began + start + (end - start) * step / 100
            text = left(job.share(stage, step / 100), 1)
            if clock.now - began >= 5 and step < 100:
                foretold.append(clock.now - began + seconds_of(text))
        start = end
    assert min(foretold) > 185
    assert max(foretold) < 215


def test_a_job_that_stands_still_lets_the_time_left_rise_without_jumps(clock):
    left = TimeLeft()
    left(1, 100)
    clock.now += 50
    assert left(51, 100) == "about 50 s left"
    before = 49.0
    for _ in range(20):
        clock.now += 1
        now = seconds_of(left(51, 100))
        assert before <= now <= before + 10  # as it is rounded
        before = now


def test_the_clock_starts_with_the_first_step_and_needs_a_while(clock):
    left = TimeLeft()
    assert left(0, 1000) == "time left unknown"
    clock.now += 50
    assert left(1, 1000) == "time left unknown"
    clock.now += 0.5
    assert left(100, 1000) == "time left unknown", "half a second is too short to judge by"
    clock.now += 0.5
    assert left(101, 1000) == "about 9 s left"
    assert left(1000, 1000) == "nearly done"


def test_a_job_that_resumes_is_timed_from_where_it_resumes(clock):
    left = TimeLeft()
    left(800, 1000)
    clock.now += 10
    assert left(900, 1000) == "about 10 s left"


@pytest.mark.parametrize("stood", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("reported", [(0.0, 0.5, 1.0), (0.3, 0.3, 0.9, 1.0), (1.0,)])
def test_a_job_that_resumes_goes_from_where_it_stood_to_the_end(stood, reported):
    job = ResumedShare(stood)
    shares = [job.follow(share) for share in reported]
    assert shares[0] == pytest.approx(max(stood, reported[0])), "or where it is, if that is further"
    assert shares == sorted(shares)
    assert shares[-1] == job.done == 1.0
