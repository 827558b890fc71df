"""The arrays of a run in progress, as a checkpoint keeps them."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


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
