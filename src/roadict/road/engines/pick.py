"""What an engine is, and engines by name."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.road.formulation import Measures, Problem, Triple

Array = NDArray[np.floating]

ENGINES = ("auto", "reference", "numba")
WIDE = 2
"""Features per sample beyond which "auto" takes the reference engine."""


class Engine(Protocol):
    """A run in progress: the arrays, and how to carry out an iteration on them."""

    problem: Problem
    rhos: Triple

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""

    def codes(self) -> Array:
        """Return the codes of the sparse blocks, shape (n_samples, n_components)."""

    def close(self) -> None:
        """Release threads and the like; the results stay readable."""


def make_engine(name: str, problem: Problem, dictionary: Array, codes: Array, n_jobs: int | None) -> Engine:
    """Start a run; engines are imported when they are asked for.

    "auto" is the Numba engine, except for data much wider than long: its Gram matrices, n_features² numbers per atom,
    would then be larger than the blocks, of which an SVD makes light work.
    """
    n_samples, n_features = problem.data.shape
    if name == "reference" or (name == "auto" and n_features > WIDE * n_samples):
        from roadict.road.engines.reference import ReferenceEngine

        return ReferenceEngine(problem, dictionary, codes)
    from roadict.road.engines.fused import FusedEngine

    return FusedEngine(problem, dictionary, codes, n_jobs)
