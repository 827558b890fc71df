"""What an engine is."""

from contextvars import ContextVar
from typing import Any, Protocol

from roadict.formulation import Problem
from roadict.runs.state import Restorable, Run

PARTY: ContextVar[Any] = ContextVar("PARTY", default=None)
"""The batch on a GPU that new runs join; here, as ``together`` needs what is not always installed."""


class Engine(Run, Restorable, Protocol):
    """A run of ROAD: the arrays, and how to carry out an iteration on them.

    With several ranks every one has an engine, for its own samples (which may be none). ``step`` sums over ranks what
    is summed over samples, the Gram matrices and the norms, and nothing else: atoms, measures and ρ are then the same
    on all of them (atoms of unlike machines up to rounding).
    """

    problem: Problem

    def close(self) -> None:
        """Release threads and the like; the results stay readable."""
