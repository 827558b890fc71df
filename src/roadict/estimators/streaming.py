"""State of ``ROAD.partial_fit``: samples that wait for a search, then atoms and statistics."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import Constraints
from roadict.estimators.known import known_atoms
from roadict.ranks.collectives import allgather_json, largest
from roadict.ranks.comm import Comm
from roadict.road.stream import BATCH, Samples, Seen, Stream, add_up, picked

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

MAX_SIZE = 1e6
"""Largest entry of a part, relative to that of the samples that the stream began with: others would not count."""
TOO_LARGE = "the values of this part are too large beside those before; scale all parts alike"
TERMS = ("formulation", "epsilon", "alpha", "positive_code", "positive_dict", "fixed_atoms")
"""Parameters that a stream is committed to."""
DIGITS = 6
"""Decimal places in which known atoms of unit norm are compared: their lengths and dtype do not matter."""


def terms_of(model: Any) -> tuple[Any, ...]:
    """Return what a stream is committed to."""
    known = known_atoms(model.fixed_atoms)
    return *(getattr(model, name) for name in TERMS[:-1]), None if known is None else known.round(DIGITS).tolist()


class Streaming(NamedTuple):
    """A stream of samples so far.

    Attributes
    ----------
    dtype : dtype
        Of the samples.
    n_seen : int
        Number of samples, over all ranks.
    stream : Stream or None
        That continues the last fit, in units of ``unit``. None: that had no descent.
    unit : float
    waiting : tuple of (data, observed, weights)
        This rank's samples so far, as long as they are few: they wait for the search, or for a descent.
    n_fitted : int
        Number of samples, over all ranks, in the last fit.
    exact : bool
        Whether its data count as exact.
    terms : tuple
        ``TERMS`` of the model, which must not change.
    """

    dtype: np.dtype[np.floating]
    n_seen: int
    stream: Stream | None = None
    unit: float = 1.0
    waiting: tuple[Samples, ...] = ()
    n_fitted: int = 0
    exact: bool = False
    terms: tuple[Any, ...] = ()

    @property
    def can_continue(self) -> bool:
        """Whether there are atoms and statistics, samples that wait, or exact atoms."""
        return self.stream is not None or bool(self.waiting) or self.exact

    def is_searched(self, needed: int) -> bool:
        """Whether parts are taken in mini-batches, or left alone as exact; ``needed``: samples for a search."""
        return not self.waiting or (self.n_fitted >= needed and (self.stream is not None or self.exact))

    def check(self, dtype: np.dtype[np.floating]) -> None:
        """Raise ValueError unless a part has the dtype of those before."""
        if dtype != self.dtype:
            raise ValueError(
                f"this part is of {dtype}, the parts before were of {self.dtype}; convert it with "
                f'X.astype("{self.dtype}")'
            )


def pack_stream(streaming: Streaming) -> dict[str, NDArray[Any]]:
    """Return the arrays to save, with which a stream continues."""
    stream, unit = streaming.stream, streaming.unit
    numbers = {"stream_counts": np.array([streaming.n_seen, streaming.n_fitted, streaming.exact])}
    if streaming.waiting:
        data, observed, weights = joined(streaming.waiting)
        numbers["stream_waiting"] = data if observed is None else np.where(observed, data, np.nan).astype(data.dtype)
        if weights is not None:
            numbers["stream_weights"] = weights
    if stream is None:
        return numbers
    arrays = {f"stream_{name}": getattr(stream, name) for name in ("dictionary", "gram", "target")}
    return numbers | arrays | {"stream_numbers": np.array([stream.weight, stream.n_samples, unit])}


def unpack_stream(
    arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any], constraints: Constraints
) -> Streaming:
    """Return what ``pack_stream`` saved; raises KeyError or ValueError if it is inconsistent."""
    n_seen, n_fitted, exact = (int(number) for number in arrays["stream_counts"])
    waiting = unpack_waiting(arrays, shape[1], dtype)
    if "stream_numbers" not in arrays:
        return Streaming(dtype, n_seen, waiting=waiting, n_fitted=n_fitted, exact=bool(exact))
    dictionary, gram, target = (arrays[f"stream_{name}"] for name in ("dictionary", "gram", "target"))
    weight, n_samples, unit = (float(number) for number in arrays["stream_numbers"])
    expected = {"dictionary": shape, "gram": (shape[0], shape[0]), "target": shape}
    for name, array in (("dictionary", dictionary), ("gram", gram), ("target", target)):
        if array.shape != expected[name] or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"stream_{name} must hold finite numbers of shape {expected[name]}")
    if not all(0 < number < np.inf for number in (weight, n_samples, unit)):
        raise ValueError("stream_numbers must be above zero")
    stream = Stream(dictionary, weight, gram, target, n_samples, constraints)
    return Streaming(dtype, n_seen, stream, unit, waiting, n_fitted, bool(exact))


def unpack_waiting(arrays: Mapping[str, NDArray[Any]], n_features: int, dtype: np.dtype[Any]) -> tuple[Samples, ...]:
    """Return the samples that wait for a search."""
    if "stream_waiting" not in arrays:
        return ()
    data, weights = arrays["stream_waiting"], arrays.get("stream_weights")
    if data.ndim != 2 or data.shape[1] != n_features or data.dtype != dtype or np.isinf(data).any():
        raise ValueError(f"stream_waiting must hold samples of {n_features} features in {dtype}")
    if weights is not None and (weights.shape != (len(data),) or not (np.isfinite(weights) & (weights >= 0)).all()):
        raise ValueError("stream_weights must hold a number of at least 0 for each sample that waits")
    observed = ~np.isnan(data)
    return ((np.where(observed, data, 0).astype(dtype), None if observed.all() else observed, weights),)


def joined(parts: tuple[Samples, ...]) -> Samples:
    """Return all samples of several parts."""
    data = np.concatenate([part[0] for part in parts])
    masks = [np.ones(part.shape, bool) if observed is None else observed for part, observed, _ in parts]
    each = [np.ones(len(part)) if weights is None else weights for part, _, weights in parts]
    observed = None if all(part[1] is None for part in parts) else np.concatenate(masks)
    weights = None if all(part[2] is None for part in parts) else np.concatenate(each)
    return data, observed, weights


def scaled(samples: Samples, unit: float) -> Samples:
    """Return the samples in another unit."""
    data, observed, weights = samples
    return np.asarray(data / data.dtype.type(unit)), observed, weights


def updated(stream: Stream, samples: Samples, unit: float, comm: Comm, n_jobs: int | None) -> tuple[Stream, Seen]:
    """Update the atoms by mini-batches of a part, of which all ranks take the same number; raises if they overflow."""
    part = scaled(samples, unit)
    if largest(comm, part[0]) > MAX_SIZE:
        raise ValueError(TOO_LARGE)
    size = max(1, BATCH // comm.size)
    n_batches = max(allgather_json(comm, -(-len(part[0]) // size)))
    seen = []
    for rows in np.array_split(np.arange(len(part[0])), n_batches):
        with np.errstate(all="ignore"):  # overflow shows in the statistics
            stream, measured = stream.updated(picked(part, rows), comm, n_jobs)
        seen.append(measured)
    if not stream.is_finite:
        raise ValueError(TOO_LARGE)
    return stream, add_up(seen)
