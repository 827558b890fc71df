"""What an engine is, and engines by name."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.road.formulation import Measures, Problem

Array = NDArray[np.floating]

ENGINES = ("auto", "reference", "numba")


class Engine(Protocol):
    """A run in progress: the arrays, and how to carry out an iteration on them."""

    problem: Problem

    def step(self) -> Measures:
        """Carry out one iteration."""

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""

    def codes(self) -> Array:
        """Return the codes of the sparse blocks, shape (n_samples, n_components)."""

    def close(self) -> None:
        """Release threads and the like; the results stay readable."""


def make_engine(name: str, problem: Problem, dictionary: Array, codes: Array, n_jobs: int | None) -> Engine:
    """Start a run. "auto" is the Numba engine; engines are imported when they are asked for."""
    if name == "reference":
        from roadict.road.engines.reference import ReferenceEngine

        return ReferenceEngine(problem, dictionary, codes)
    from roadict.road.engines.fused import FusedEngine

    return FusedEngine(problem, dictionary, codes, n_jobs)
