"""What the loop and the checkpoints ask of a run in progress."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roadict.runs.measures import Reported

Array = NDArray[np.floating]


class Run(Protocol):
    """A run in progress: the arrays, and how to carry out an iteration on them."""

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
    """A run that carries out several iterations faster than one by one, as on a GPU.

    While ρ is constant, convergence is tested after every ``burst`` iterations, however many are carried out at once.
    """

    burst: int

    def steps(self, count: int) -> Sequence[Reported]:
        """Carry out ``count`` ≤ ``burst`` iterations and return their measures."""


@runtime_checkable
class Batched(Protocol):
    """A run that is one of a batch: what all have submitted is carried out once one of them needs its measures."""

    def submit(self, count: int, following: float | None) -> None:
        """Announce what the next call of ``step`` or ``steps`` will ask for."""


@dataclass(frozen=True)
class RunState:
    """All that a run needs to resume as if it had not been stopped.

    Attributes
    ----------
    local : dict of str to array
        Of this rank's samples: the first axis runs over them. Split or joined along it, they fit any number of ranks.
    shared : dict of str to array
        The same on every rank, sums over all samples among them.
    """

    local: dict[str, NDArray[Any]]
    shared: dict[str, NDArray[Any]]


class Restorable(Protocol):
    """A run that can be saved and resumed."""

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations; they may be views, to be used before the next step."""

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state of a run of this kind, problem and dtype, to the bit.

        Its local arrays belong to the samples from ``start`` on: parts that several ranks have written are restored
        one after the other. A rank without samples is given a state with empty local arrays.
        """
