"""What an engine is, and engines by name."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.distributed import Comm
from roadict.road.formulation import Measures, Problem, Triple
from roadict.road.state import RunState

Array = NDArray[np.floating]

ENGINES = ("auto", "reference", "numba")
WIDE = 2
"""Features per sample beyond which "auto" takes the reference engine."""


class Engine(Protocol):
    """A run in progress: the arrays, and how to carry out an iteration on them.

    With several ranks every one has an engine, for its own samples (which may be none). ``step`` sums over ranks what
    is summed over samples, the Gram matrices and the norms, and nothing else: atoms, measures and ρ are then the same
    on all of them.
    """

    problem: Problem
    rhos: Triple

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""

    def codes(self) -> Array:
        """Return the codes of the sparse blocks, shape (n_samples, n_components), of this rank's samples."""

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations; they may be views, to be used before the next step."""

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state of an engine of this kind, problem and dtype, to the bit.

        Its local arrays belong to the samples from ``start`` on: parts that several ranks have written are restored
        one after the other. A rank without samples is given a state with empty local arrays.
        """

    def close(self) -> None:
        """Release threads and the like; the results stay readable."""


def engine_name(name: str, n_samples: int, n_features: int) -> str:
    """Choose for "auto": the Numba engine, except for data much wider than long.

    Its Gram matrices, n_features² numbers per atom, would then be larger than the blocks, of which an SVD makes light
    work.

    Parameters
    ----------
    name : str
        One of ENGINES.
    n_samples : int
        Of all ranks.
    n_features : int
    """
    if name != "auto":
        return name
    return "reference" if n_features > WIDE * n_samples else "numba"


def make_engine(name: str, problem: Problem, dictionary: Array, codes: Array, n_jobs: int | None, comm: Comm) -> Engine:
    """Start a run; engines are imported when they are asked for.

    Parameters
    ----------
    name : str
        Of an engine, not "auto": see ``engine_name``.
    problem : Problem
        With this rank's samples.
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
        Of this rank's samples.
    n_jobs : int or None
    comm : Comm
    """
    if name == "reference":
        from roadict.road.engines.reference import ReferenceEngine

        return ReferenceEngine(problem, dictionary, codes, comm)
    from roadict.road.engines.fused import FusedEngine

    return FusedEngine(problem, dictionary, codes, n_jobs, comm)
