"""Intervals, against known distributions and closed forms."""

import numpy as np
import pytest

from roadict.experiments.intervals import crossing, fewer, found_more, mean_interval, needed, share_interval


def test_an_interval_of_a_mean_holds_the_truth_in_about_95_percent_of_draws():
    rng = np.random.default_rng(0)
    drawn = [mean_interval(rng.normal(0.3, 2.0, 20)) for _ in range(1000)]
    held = np.mean([interval.low <= 0.3 <= interval.high for interval in drawn])
    assert 0.91 < held < 0.97
    assert mean_interval([0.2]).sign == 1  # a single value has no spread: verdicts from so few are tentative
    assert mean_interval([0.0, 0.0]).sign == 0


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_an_interval_of_a_share_holds_the_truth_in_about_95_percent_of_draws(share):
    counts = np.random.default_rng(0).binomial(20, share, 1000)
    drawn = [share_interval(int(count), 20) for count in counts]
    assert np.mean([interval.low <= share <= interval.high for interval in drawn]) > 0.9
    assert max(interval.high - interval.low for interval in drawn) < 0.45  # twice two standard errors of a half
    assert all(0 <= interval.low <= interval.value <= interval.high <= 1 for interval in drawn)


def test_a_crossing_is_where_the_line_of_the_figure_crosses_the_bound():
    assert crossing([100, 200], [0.1, 0.001], 0.01) == pytest.approx(150)
    assert crossing([300, 500], [0.011, 0.0037], 0.01) == pytest.approx(317.5, abs=0.1)
    # Below, above and below again: it counts from the last crossing on.
    assert crossing([100, 200, 300], [0.001, 0.1, 0.001], 0.01) == pytest.approx(250)
    assert crossing([100, 200, 300], [0.001, 0.02, 0.05], 0.01) == np.inf
    assert crossing([100, 200], [0.0, 0.0], 0.01) == 100
    assert np.isfinite(crossing([100, 200], [0.5, 0.0], 0.01))  # an error of 0 has no logarithm


def bimodal(rng, found, number):
    """Runs that end at 1e-5, or in a wrong minimum near 0.03, by their shares of success at each number of samples."""
    succeeded = rng.random((number, len(found))) < found
    return np.where(succeeded, 1e-5, 0.03) * rng.lognormal(0, 0.1, (number, len(found)))


def test_samples_needed_have_an_interval_that_shrinks_with_the_trials():
    rng = np.random.default_rng(0)
    widths = []
    for number in (10, 1000):
        found = needed([100, 200, 300], bimodal(rng, [0.2, 0.6, 0.95], number), 0.01)
        assert found.interval.low <= found.interval.value <= found.interval.high
        widths.append(found.interval.high - found.interval.low)
    # The mean error is 0.01 where two thirds of the runs succeed, a little after 200 samples.
    assert 200 < found.interval.value < 230
    assert widths[1] < 30 < widths[0]


def test_samples_needed_in_words():
    numbers = [100, 1000]
    assert str(needed(numbers, [[0.5, 0.5]] * 5, 0.01)) == "more than 1,000"
    assert str(needed(numbers, [[0.001, 0.001]] * 5, 0.01)) == "at most 100"
    assert str(needed(numbers, [[1.0, 0.0001]] * 5, 0.01)) == "550"
    mixed = [[1.0, 0.0001]] * 4 + [[1.0, 0.045]]
    assert str(needed(numbers, mixed, 0.01)).endswith(" to > 1,000)")


def test_fewer_samples_are_told_from_chance():
    numbers, rng = [100, 200, 300, 400], np.random.default_rng(0)
    same = [[bimodal(rng, [0.1, 0.5, 0.8, 0.9], 20) for _ in range(2)] for _ in range(200)]
    signs = [fewer(numbers, one, two, 0.01) for one, two in same]
    assert np.mean(np.array(signs) != 0) < 0.1  # 5 % by the bounds
    early, late = bimodal(rng, [0.1, 0.9, 1, 1], 20), bimodal(rng, [0, 0.1, 0.6, 1], 20)
    assert fewer(numbers, early, late, 0.01) == 1
    assert fewer(numbers, late, early, 0.01) == -1
    never = np.full((20, 4), 0.5)
    assert fewer(numbers, late, never, 0.01) == 1
    assert fewer(numbers, never, never, 0.01) == 0


def test_what_is_common_to_a_seed_does_not_hide_who_needs_fewer():
    """The levels of the seeds differ by a factor of a thousand, but at every one the first is a little earlier."""
    levels = np.geomspace(0.03, 30, 8)[:, None]
    first = levels * [1.0, 0.1, 0.01, 1e-4, 1e-6]
    numbers, second = [100, 200, 300, 400, 500], 1.05 * first
    assert (fewer(numbers, first, second, 0.01), fewer(numbers, second, first, 0.01)) == (1, -1)


def test_only_who_finds_more_finds_more():
    """A difference beyond chance in favour of the second is none."""
    assert not found_more([0] * 6, [1] * 6)
    assert not found_more([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    assert found_more([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
