"""Jobs whose runs take other times than expected: the share moves with time, and the time left becomes true."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from roadict.progress import forecast, remaining
from roadict.progress.forecast import Forecast, Run
from roadict.progress.remaining import RECENT, TimeLeft

EXPECTED = {"first": Run("search", 1.0, 100), "second": Run("step", 2.0, 50), "third": Run("step", 2.0, 100)}


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0, perf_counter=lambda: clock.now)
    for module in (forecast, remaining):
        monkeypatch.setattr(module, "time", clock)
    return clock


def followed(clock, true, job=None):
    """Seconds, share and text of the time left after every iteration; ``true``: iterations and seconds of each run."""
    job, left, seen = job or Forecast(EXPECTED), TimeLeft(RECENT), []
    began = clock.now
    for name, (iterations, seconds) in true.items():
        for iteration in range(1, iterations + 1):
            clock.now += seconds
            share = job.step(name, iteration)
            seen.append((clock.now - began, share, left(share, 1.0)))
    assert all(before < after < 1 for (_, before, _), (_, after, _) in pairwise(seen)), "it always moves"
    return seen


def test_a_job_as_expected_moves_with_time(clock):
    seen = followed(clock, {"first": (100, 0.1), "second": (50, 0.2), "third": (100, 0.2)})
    assert seen[-1][0] == pytest.approx(40)
    for seconds, share, text in seen[10:-10]:
        assert share == pytest.approx(seconds / 40, abs=0.04)
        if seconds > 2:
            assert abs(float(text.split()[1]) - (40 - seconds)) <= 3


def test_the_time_of_a_kind_is_measured(clock):
    """Steps take ten times as long as expected: that is foretold from the first of them on, for the others too."""
    seen = followed(clock, {"first": (100, 0.1), "second": (50, 2.0), "third": (100, 2.0)})
    total = seen[-1][0]
    assert total == pytest.approx(310)
    for seconds, share, text in seen[115:220]:
        words = text.removeprefix("about ").removesuffix(" left").split()
        foretold = sum(float(n) * {"min": 60, "s": 1}[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
        assert foretold == pytest.approx(total - seconds, rel=0.15)
        assert share < 0.999


@pytest.mark.parametrize("iterations", [10, 100, 1000])
def test_a_run_may_end_early_or_late(clock, iterations):
    seen = followed(clock, {"first": (iterations, 0.1), "second": (50, 0.2), "third": (100, 0.2)})
    assert 0.9 < seen[-1][1] < 1
    begun = seen[iterations + 10]
    pace = (seen[-1][1] - begun[1]) / (seen[-1][0] - begun[0])
    middle = seen[iterations + 80]
    assert middle[1] == pytest.approx(begun[1] + pace * (middle[0] - begun[0]), abs=0.05), "then as expected"


def test_runs_that_may_not_take_place_count_by_their_chance(clock):
    runs = {"first": Run("search", 1.0, 100), "maybe": Run("search", 1.0, 200, chance=0.5)}
    seen = followed(clock, {"first": (100, 1.0)}, Forecast(runs))
    assert seen[49][1] == pytest.approx(0.25, abs=0.01)
    assert seen[-1][1] == pytest.approx(0.5, abs=0.02)


def test_the_clock_stands_while_kernels_are_compiled(clock, monkeypatch):
    compiled = SimpleNamespace(seconds=lambda: clock.now - clock.counted)
    for module in (forecast, remaining):
        monkeypatch.setattr(module, "compiling", compiled)
    clock.counted = clock.now
    job = Forecast(EXPECTED)
    for iteration in range(1, 51):
        clock.now += 1
        clock.counted += 1
        share = job.step("first", iteration)
    clock.now += 1000
    assert job.step("first", 51) == pytest.approx(share, abs=1e-6)


def test_a_clock_that_stands_from_the_first_iteration_on_ends_nothing(clock):
    job = Forecast(EXPECTED)
    shares = [job.step("first", iteration) for iteration in range(1, 50)]
    assert shares == sorted(shares)
    assert shares[-1] < 0.9


def test_a_job_longer_than_the_machine_is_up_has_a_time_left(clock):
    """Numbers whose difference rounds to before the first reading."""
    left, clock.now = TimeLeft(), 16.896926740204055
    left(1, 1000)
    clock.now = 508.2897059062401
    assert left(500, 1000).startswith("about 8 min")
