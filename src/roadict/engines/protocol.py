"""The protocol of engines."""

from typing import Protocol

from roadict.formulation import Problem, Triple
from roadict.runs.measures import Measures
from roadict.runs.state import Restorable, Run


class Engine(Run, Restorable, Protocol):
    """A run of ROAD: its arrays, and an iteration on them.

    Every rank has an engine for its own samples, possibly none. ``step`` exchanges only sums over samples, the Gram
    matrices and the norms: atoms, measures and ρ are then the same on all ranks (atoms up to rounding, on different
    machines).
    """

    problem: Problem
    rhos: Triple

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def close(self) -> None:
        """Release threads and other resources; read atoms and codes before, as a GPU batch reuses the slot of a run."""
