"""Protocols of a run in progress, for the loop and for checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roadict.runs.measures import Reported

Array = NDArray[np.floating]


class Run(Protocol):
    """A run in progress: its arrays, and an iteration on them."""

    @property
    def rhos(self) -> tuple[float, ...]:
        """Penalties ρ1, ρ2, ρ3 of the augmented Lagrangian; empty: the method has none."""

    def step(self, following: float | None = None) -> Reported:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""

    def codes(self) -> Array:
        """Return the codes, shape (n_samples, n_components), of this rank's samples."""


@runtime_checkable
class Bursting(Protocol):
    """A run for which several iterations at a time are faster, as on a GPU.

    While ρ is constant, convergence is tested every ``burst`` iterations, however many are carried out at a time.
    """

    burst: int

    def steps(self, count: int) -> Sequence[Reported]:
        """Carry out ``count`` ≤ ``burst`` iterations and return their measures."""


@runtime_checkable
class Batched(Protocol):
    """A run in a batch: all submitted iterations are carried out once one run needs its measures."""

    def submit(self, count: int, following: float | None) -> None:
        """Submit the iterations that the next call of ``step`` or ``steps`` will return."""


@dataclass(frozen=True)
class RunState:
    """Everything a run needs to resume as if it had not been stopped.

    Attributes
    ----------
    local : dict of str to array
        Of this rank's samples, which are the first axis: split or joined along it for any number of ranks.
    shared : dict of str to array
        The same on every rank, including sums over all samples.
    """

    local: dict[str, NDArray[Any]]
    shared: dict[str, NDArray[Any]]


class Restorable(Protocol):
    """A run that can be saved and resumed."""

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations; views are valid until the next step."""

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue bit-identically from the state of a run of the same engine, problem and dtype.

        Its local arrays belong to the samples from ``start`` on: parts written by several ranks are restored one by
        one. A rank without samples gets a state with empty local arrays.
        """
