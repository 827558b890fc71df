"""What an engine is."""

from typing import Protocol

from roadict.formulation import Problem, Triple
from roadict.runs.measures import Measures
from roadict.runs.state import Restorable, Run


class Engine(Run, Restorable, Protocol):
    """A run of ROAD: the arrays, and how to carry out an iteration on them.

    With several ranks every one has an engine, for its own samples (which may be none). ``step`` sums over ranks what
    is summed over samples, the Gram matrices and the norms, and nothing else: atoms, measures and ρ are then the same
    on all of them (atoms of unlike machines up to rounding).
    """

    problem: Problem
    rhos: Triple

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def close(self) -> None:
        """Release threads and the like; the results stay readable."""
