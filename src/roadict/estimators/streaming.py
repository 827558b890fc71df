"""State of ``ROAD.partial_fit``: samples that wait for a search, then atoms and statistics."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.collectives import allgather_json
from roadict.ranks.comm import Comm
from roadict.road.stream import BATCH, Seen, Stream

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None
Samples = tuple[Array, Mask, Array | None]


class Streaming(NamedTuple):
    """A stream of samples so far.

    Attributes
    ----------
    dtype : dtype
        Of the samples.
    n_seen : int
        Number of samples, over all ranks.
    stream : Stream or None
        In units of ``unit``. None: there is none yet, or the data are exact.
    unit : float
    waiting : tuple of (data, observed, weights)
        This rank's samples, as long as there are too few for the search.
    n_fitted : int
        Number of samples, over all ranks, in the last fit.
    """

    dtype: np.dtype[np.floating]
    n_seen: int
    stream: Stream | None = None
    unit: float = 1.0
    waiting: tuple[Samples, ...] = ()
    n_fitted: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether the atoms stay as they are: a fit of enough samples, with error bound 0, has found them."""
        return self.stream is None and not self.waiting

    def check(self, dtype: np.dtype[np.floating]) -> None:
        """Raise ValueError unless a part has the dtype of those before."""
        if dtype != self.dtype:
            raise ValueError(
                f"this part is of {dtype}, the parts before were of {self.dtype}; convert it with "
                f'X.astype("{self.dtype}")'
            )


def joined(parts: tuple[Samples, ...]) -> Samples:
    """Return all samples of several parts."""
    data = np.concatenate([part[0] for part in parts])
    masks = [np.ones(part.shape, bool) if observed is None else observed for part, observed, _ in parts]
    each = [np.ones(len(part)) if weights is None else weights for part, _, weights in parts]
    observed = None if all(part[1] is None for part in parts) else np.concatenate(masks)
    weights = None if all(part[2] is None for part in parts) else np.concatenate(each)
    return data, observed, weights


def updated(stream: Stream, samples: Samples, unit: float, comm: Comm, n_jobs: int | None) -> tuple[Stream, list[Seen]]:
    """Update the atoms by mini-batches of a part; all ranks take the same number."""
    data, observed, weights = samples
    data = np.asarray(data / data.dtype.type(unit))
    size = max(1, BATCH // comm.size)
    n_batches = max(allgather_json(comm, -(-len(data) // size)))
    seen = []
    for rows in np.array_split(np.arange(len(data)), n_batches):
        batch = data[rows], None if observed is None else observed[rows], None if weights is None else weights[rows]
        stream, measured = stream.updated(*batch, comm, n_jobs)
        seen.append(measured)
    return stream, seen


def add_up(seen: list[Seen]) -> Seen:
    """Return the sums over mini-batches."""
    return Seen(*(sum(each[1:], each[0]) for each in zip(*seen, strict=True)))
