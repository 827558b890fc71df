"""Time left for a whole job."""

import time

from roadict.progress import compiling
from roadict.progress.words import roughly

MIN_SHARE, MIN_SECONDS = 0.01, 1.0
"""Share of a job that must have been done since the first report, and for how long, before its time is extrapolated."""
PATIENCE = 5.0
"""Seconds after which it is extrapolated from any share."""
UNKNOWN = "time left unknown"
DONE = "nearly done"


class TimeLeft:
    """Time left for a job, extrapolated from the share of it that is done.

    The clock starts with the first report of a share above 0, and stands while kernels are compiled. As the share
    never falls and the clock does not jump, the time left rises only as fast as a job that stands still makes it.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self._share = 0.0

    def __call__(self, done: float, total: float) -> str:
        """Return the text after ``done`` of ``total`` steps; 0 marks that they are about to begin."""
        if done >= total:
            return DONE
        now = time.perf_counter() - compiling.seconds()
        self._share = max(self._share, done / total)
        if self._first is None or self._first[0] == 0:
            self._first = self._share, now
        share, seconds = self._share - self._first[0], now - self._first[1]
        early = seconds < PATIENCE and (share < MIN_SHARE or seconds < MIN_SECONDS)
        if early or share == 0:
            return UNKNOWN
        return f"about {roughly(seconds * (1 - self._share) / share)} left"
