"""Intervals for verdicts: of means over trials, of shares of trials, and of the number of samples that a method needs.

They aim at 95 %: two standard errors, or the middle 95 % of bootstrap samples of the trials. With few trials they cover
less: two standard errors of normal values cover the mean in about 88 % of draws of 5 trials, 94 % of 20, 95 % of 100.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from roadict.drawing.curves import FLOOR

Array = NDArray[np.float64]

STANDARD_ERRORS = 2.0
RESAMPLES = 2000
"""Bootstrap samples; they are drawn from a fixed seed, so that the same rows give the same verdict."""
TAIL = 0.025
"""Share of the bootstrap samples on either side of the interval."""


@dataclass(frozen=True)
class Interval:
    """A value and the interval that it was measured to."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below, 0 if it contains 0: a tie."""
        return int(self.low > 0) - int(self.high < 0)


def mean_interval(values: ArrayLike) -> Interval:
    """Mean plus and minus two standard errors; a single value has no spread and gives itself.

    Of paired differences, the sign says whether one method leads.

    Examples
    --------
    >>> mean_interval([1.0, 2.0, 3.0, 2.0]).sign, mean_interval([1.0, -1.0, 0.5]).sign
    (1, 0)
    """
    array = np.asarray(values, np.float64)
    mean = float(array.mean())
    half = STANDARD_ERRORS * float(array.std(ddof=1)) / np.sqrt(len(array)) if len(array) > 1 else 0.0
    return Interval(mean, mean - half, mean + half)


def share_interval(count: int, number: int) -> Interval:
    """Share of trials with Wilson's interval, which is sensible near 0 and 1 too.

    Examples
    --------
    >>> share = share_interval(12, 20)
    >>> share.value, round(share.low, 2), round(share.high, 2)
    (0.6, 0.38, 0.78)
    """
    share, shrink = count / number, STANDARD_ERRORS**2 / number
    middle = (share + shrink / 2) / (1 + shrink)
    half = np.sqrt(shrink * (share * (1 - share) + shrink / 4)) / (1 + shrink)
    return Interval(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def crossing(numbers: ArrayLike, errors: ArrayLike, bound: float) -> Array:
    """Number of samples from which on an error stays below a bound, its logarithm interpolated between the numbers.

    This is where the line of the figure crosses the bound for the last time: errors below FLOOR count as FLOOR.

    Parameters
    ----------
    numbers : array-like of shape (n_numbers,)
        Numbers of samples, ascending.
    errors : array-like of shape (..., n_numbers)
    bound : float

    Returns
    -------
    ndarray
        The first number if the error is below the bound at all of them; infinite if it is not at the last one.

    Examples
    --------
    >>> crossing([100, 200, 400], [[1.0, 0.1, 0.001], [0.5, 0.2, 0.1], [0.001, 0.001, 0.001]], 0.01)
    array([300.,  inf, 100.])
    """
    at, logs = np.asarray(numbers, np.float64), np.log(np.maximum(np.asarray(errors, np.float64), FLOOR) / bound)
    found = np.full(logs.shape[:-1], at[0])
    for i in range(len(at)):
        above = logs[..., i] >= 0
        if i + 1 == len(at):
            crossed = np.full(found.shape, np.inf)
        else:
            fall = np.where(logs[..., i] > logs[..., i + 1], logs[..., i] - logs[..., i + 1], np.inf)
            crossed = at[i] + (at[i + 1] - at[i]) * logs[..., i] / fall  # of no use, and overwritten, where it rises
        found = np.where(above, crossed, found)
    return found


@dataclass(frozen=True)
class Needed:
    """Samples that a method needs: its interval, and the smallest and largest number that were tried.

    The interval is of the trials only: between two numbers of samples, the line of the figure may be wrong.
    """

    interval: Interval
    fewest: float
    most: float

    def __str__(self) -> str:
        """Text, with the interval in brackets where it has a width."""
        value, low, high = self.interval.value, self.interval.low, self.interval.high
        if value <= self.fewest and high <= self.fewest:
            return f"at most {self.fewest:,g}"
        if np.isinf(low):
            return f"more than {self.most:,g}"
        return self._number(value) if low == high else f"{self._number(value)} ({self._number(low, high)})"

    def _number(self, *values: float) -> str:
        signs = {self.fewest: "≤ ", np.inf: "> "}
        shown = [f"{signs.get(v, '')}{self.most if np.isinf(v) else v:,.0f}" for v in values]
        return " to ".join(dict.fromkeys(shown))


def needed(numbers: ArrayLike, errors: ArrayLike, bound: float) -> Needed:
    """Samples from which on the mean error stays below a bound, with a bootstrap interval over the trials.

    Parameters
    ----------
    numbers : array-like of shape (n_numbers,)
    errors : array-like of shape (n_trials, n_numbers)
        Of the same trials at all numbers of samples.
    bound : float

    Examples
    --------
    >>> str(needed([100, 200], [[1.0, 0.0001]] * 5, 0.01)), str(needed([100, 200], [[1.0, 0.5]], 0.01))
    ('150', 'more than 200')
    """
    at, trials = np.asarray(numbers, np.float64), np.asarray(errors, np.float64)
    value = float(crossing(at, trials.mean(axis=0), bound))
    again = np.sort(crossing(at, resampled(trials), bound))
    low, high = (float(again[round(share * (RESAMPLES - 1))]) for share in (TAIL, 1 - TAIL))
    return Needed(Interval(value, min(low, value), max(high, value)), float(at[0]), float(at[-1]))


def fewer(numbers: ArrayLike, first: ArrayLike, second: ArrayLike, bound: float) -> int:
    """Compare the samples that two methods need, on the same trials.

    Parameters
    ----------
    numbers : array-like of shape (n_numbers,)
    first, second : array-like of shape (n_trials, n_numbers)
        Errors of two methods in the same trials.
    bound : float

    Returns
    -------
    int
        1 if the first needs fewer in at least 97.5 % of the bootstrap samples, -1 if the second does, else 0: a tie.

    Examples
    --------
    >>> fewer([100, 200], [[0.1, 0.001]] * 5, [[0.5, 0.001]] * 5, 0.01)
    1
    """
    one, two = (crossing(numbers, resampled(np.asarray(errors, np.float64)), bound) for errors in (first, second))
    return int(np.mean(one < two) >= 1 - TAIL) - int(np.mean(two < one) >= 1 - TAIL)


def found_more(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether the first succeeds significantly more often: two-sided exact sign test of the trials where only one does.

    Parameters
    ----------
    first, second : array-like of shape (n_trials,)
        1 where the method succeeds, in the same trials.

    Examples
    --------
    >>> found_more([1] * 6, [0] * 6), found_more([1] * 5, [0] * 5), found_more([1] * 6, [1] * 6)
    (True, False, False)
    """
    lead = np.sign(np.asarray(first, np.float64) - np.asarray(second, np.float64))
    more, decided = int(np.sum(lead > 0)), int(np.sum(lead != 0))
    return decided > 0 and 2 * more > decided and bool(binomtest(more, decided).pvalue < 2 * TAIL)


def resampled(trials: Array) -> Array:
    """Means of bootstrap samples of the trials; the same trials are drawn for arrays of the same length."""
    drawn = np.random.default_rng(0).multinomial(len(trials), np.full(len(trials), 1 / len(trials)), RESAMPLES)
    means: Array = drawn @ trials / len(trials)
    return means
