"""Jobs of several runs whose lengths and times show only as they go: how much of the whole is done."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from roadict.progress import compiling

LONGER = 0.3
"""Iterations that a run is expected to take still, relative to those that it has taken, once these are as expected."""


class Run(NamedTuple):
    """What a run is expected to take.

    Attributes
    ----------
    kind : str
        Runs of a kind take the same time per unit of cost.
    cost : float
        Of an iteration, in any unit.
    iterations : float
    chance : float
        That the run takes place.
    """

    kind: str
    cost: float
    iterations: float
    chance: float = 1.0


class Forecast:
    """Share of a job that is done, by the time so far and the time that is still expected.

    Time per cost is measured, of each kind of run once there was one. What follows may be expected anew at any time:
    the share never falls, but goes on from where it is at such a pace that its rest takes the time that is left.

    Parameters
    ----------
    runs : mapping of str to Run
        In their order, by name. A run that begins ends those before it.
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self.runs = dict(runs)
        self.share = 0.0
        self._at, self._last = "", (_now(), 0)
        self._seconds: dict[str, float] = {}
        self._costs: dict[str, float] = {}

    def step(self, name: str, iteration: int) -> float:
        """Return the share that is done after so many iterations of a run."""
        now, (before, last) = _now(), self._last
        taken = max(now - before, 1e-9)  # the clock may stand
        if name != self._at or iteration <= last:
            self._at = name
        else:
            kind, cost = self.runs[name].kind, self.runs[name].cost
            self._seconds[kind] = self._seconds.get(kind, 0.0) + taken
            self._costs[kind] = self._costs.get(kind, 0.0) + cost * (iteration - last)
        self._last = now, iteration
        self.share += (1 - self.share) * taken / (taken + self._left(iteration, taken))
        return self.share

    def _left(self, iteration: int, taken: float) -> float:
        """Return the seconds that are left; ``taken``: those of the last iteration, if no other was measured."""
        present = self.runs[self._at]
        costs = sum(self._costs.values())
        common = sum(self._seconds.values()) / costs if costs else taken / present.cost
        left = 0.0
        names = list(self.runs)
        for name in names[names.index(self._at) :]:
            kind, cost, iterations, chance = self.runs[name]
            rate = self._seconds[kind] / self._costs[kind] if self._costs.get(kind) else common
            if name == self._at:
                iterations, chance = max(iterations - iteration, LONGER * iteration, 1.0), 1.0
            left += chance * rate * cost * iterations
        return left


def _now() -> float:
    """Seconds on a clock that stands while kernels are compiled."""
    return time.perf_counter() - compiling.seconds()
