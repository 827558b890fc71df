"""Time left for a whole job."""

import math
import time
from bisect import bisect

from roadict.progress import compiling
from roadict.progress.words import roughly

MIN_SHARE, MIN_SECONDS = 0.01, 1.0
"""Share of a job that must have been done since the first report, and for how long, before its time is extrapolated."""
PATIENCE = 5.0
"""Seconds after which it is extrapolated from any share."""
UNKNOWN = "time left unknown"
DONE = "nearly done"
RECENT = 0.1
"""Share of the time so far by whose pace a fit is extrapolated: what it expects changes, and its pace with it."""
SPACING = 0.02
"""Share of the time so far between two readings that are held."""


class TimeLeft:
    """Time left for a job, extrapolated from the share of it that is done.

    The clock starts with the first report of a share above 0, and stands while kernels are compiled. As the share
    never falls and the clock does not jump, the time left rises only as fast as a job that slows down makes it.

    Parameters
    ----------
    recent : float
        Share of the time so far, at its end, by whose pace it is extrapolated.
    """

    def __init__(self, recent: float = 1.0) -> None:
        self._recent = recent
        self._readings: list[tuple[float, float]] = []
        self._share = 0.0

    def __call__(self, done: float, total: float) -> str:
        """Return the text after ``done`` of ``total`` steps; 0 marks that they are about to begin."""
        if done >= total:
            return DONE
        now = time.perf_counter() - compiling.seconds()
        self._share = max(self._share, done / total)
        if not self._readings or self._readings[0][1] == 0:
            self._readings = [(now, self._share)]
        began, first = self._readings[0]
        share, seconds = self._share - first, now - began
        early = seconds < PATIENCE and (share < MIN_SHARE or seconds < MIN_SECONDS)
        if early or share == 0:
            return UNKNOWN
        number = bisect(self._readings, (now - self._recent * seconds, math.inf))
        earlier = [each for each in self._readings[:number] if each[1] < self._share]
        since, before = earlier[-1] if earlier else self._readings[0]  # none: the first one, rounded
        if now - self._readings[-1][0] >= SPACING * seconds:
            self._readings.append((now, self._share))
        return f"about {roughly((now - since) * (1 - self._share) / (self._share - before))} left"
