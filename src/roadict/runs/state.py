"""The arrays of a run in progress, as a checkpoint keeps them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.runs.measures import Measures

Array = NDArray[np.floating]


@dataclass(frozen=True)
class RunState:
    """All that a run needs to go on as if it had not been stopped.

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
    """A run whose arrays can be kept."""

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations; they may be views, to be used before the next step."""

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state of a run of this kind, problem and dtype, to the bit.

        Its local arrays belong to the samples from ``start`` on: parts that several ranks have written are restored
        one after the other. A rank without samples is given a state with empty local arrays.
        """


class Run(Protocol):
    """What the loop asks of a run in progress."""

    rhos: tuple[float, float, float]

    def step(self, following: float | None = None) -> Measures:
        """Carry out one iteration; ``following`` is the ρ of the next one, if it differs (exact forms only)."""

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""

    def codes(self) -> Array:
        """Return the codes, shape (n_samples, n_components), of this rank's samples."""
