"""What ranks have to agree on, made of sums alone: rows, norms, medians, words.

All ranks must call these functions together. In one process each is what its name says of the array at hand.
"""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.comm import Comm

Array = NDArray[np.floating]
Result = TypeVar("Result")

SIGN = np.int64(np.iinfo(np.int64).max)
ROWS_AT_A_TIME = 4096


class OtherRankError(RuntimeError):
    """Another rank has refused its input; its message tells why."""


def counts(comm: Comm, count: int) -> list[int]:
    """Return every rank's number of rows."""
    numbers = np.zeros(comm.size, np.int64)
    numbers[comm.rank] = count
    return [int(number) for number in comm.sum(numbers)]


def offset(comm: Comm, count: int) -> int:
    """Return the number of rows on the ranks before this one, which has ``count`` of them."""
    return sum(counts(comm, count)[: comm.rank])


def total(comm: Comm, number: float) -> float:
    """Sum one number over the ranks."""
    return float(comm.sum(np.array([number], np.float64))[0])


def norm(comm: Comm, array: Array) -> float:
    """Frobenius norm of all ranks' arrays together."""
    length = float(np.linalg.norm(array))
    return length if comm.size == 1 else math.sqrt(total(comm, length * length))


def largest(comm: Comm, array: NDArray[Any]) -> float:
    """Largest absolute value of all ranks' arrays, 0 if they are empty."""
    return float(gathered(comm, np.array([np.abs(array).max(initial=0)], np.float64)).max())


def gathered(comm: Comm, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of all ranks, in the order of the ranks, on every rank."""
    if comm.size == 1:
        return rows
    lengths = counts(comm, len(rows))
    start = sum(lengths[: comm.rank])
    whole = np.zeros((sum(lengths), *rows.shape[1:]), np.uint8 if rows.dtype == np.bool_ else rows.dtype)
    whole[start : start + len(rows)] = rows
    return comm.sum(whole).astype(rows.dtype, copy=False)


def gathered_first(comm: Comm, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of all ranks, in the order of the ranks, on rank 0, and none on the others.

    They need no room for all rows: these come a block at a time.
    """
    if comm.size == 1:
        return rows
    lengths = counts(comm, len(rows))
    n_rows, start = sum(lengths), sum(lengths[: comm.rank])
    whole = np.empty((n_rows if comm.rank == 0 else 0, *rows.shape[1:]), rows.dtype)
    for first in range(0, n_rows, ROWS_AT_A_TIME):
        numbers = np.arange(first, min(first + ROWS_AT_A_TIME, n_rows))
        block = picked(comm, rows, start, numbers)
        if comm.rank == 0:
            whole[numbers] = block
    return whole


def condensed(comm: Comm, rows: NDArray[Any]) -> NDArray[Any]:
    """Return few rows in place of all ranks' many: with the same singular values and right singular vectors.

    Parameters
    ----------
    comm : Comm
    rows : array of shape (..., n_rows, n_columns)

    Returns
    -------
    array of shape (..., at most comm.size * n_columns, n_columns)
        Each rank's triangular factor; in one process the rows themselves.
    """
    if comm.size == 1:
        return rows
    triangles: Any = np.linalg.qr(rows, mode="r")
    return np.moveaxis(gathered(comm, np.moveaxis(triangles, -2, 0)), 0, -2)


def picked(comm: Comm, rows: NDArray[Any], start: int, numbers: NDArray[np.integer]) -> NDArray[Any]:
    """Return the rows of these numbers, counted over all ranks; those of this rank are numbered from ``start`` on."""
    own = (numbers >= start) & (numbers < start + len(rows))
    found = np.zeros((len(numbers), *rows.shape[1:]), rows.dtype)
    found[own] = rows[numbers[own] - start]
    return comm.sum(found)


def first_of(comm: Comm, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array of rank 0; all have its shape and dtype."""
    return comm.sum(array if comm.rank == 0 else np.zeros_like(array))


def words(comm: Comm, value: Any) -> list[Any]:
    """Return every rank's value, anything that JSON can hold."""
    if comm.size == 1:
        return [value]
    text = np.frombuffer(f"{json.dumps(value)}\n".encode(), np.uint8)
    return [json.loads(line) for line in gathered(comm, text).tobytes().splitlines()]


def largest_of_each(comm: Comm, *numbers: int) -> list[int]:
    """Return the largest number in every place; one exchange, for what is asked at every iteration."""
    if comm.size == 1:
        return list(numbers)
    votes = np.zeros((comm.size, len(numbers)), np.int64)
    votes[comm.rank] = numbers
    return [int(number) for number in comm.sum(votes).max(axis=0)]


def together(comm: Comm, act: Callable[[], Result]) -> Result:
    """Return ``act()``, which does not speak to other ranks; where it fails on one rank, all of them fail.

    Otherwise the others would wait for it. The first rank that has failed says why.
    """
    failure: Exception | None = None
    try:
        result = act()
    except Exception as raised:
        failure = raised
    if comm.size > 1:
        failed = np.flatnonzero(counts(comm, failure is not None))
        if len(failed) and failed[0] != comm.rank:
            raise OtherRankError(
                f"rank {failed[0]} has failed, and says why; rank {comm.rank} ends with it"
            ) from failure
    if failure is not None:
        raise failure
    return result


def median(comm: Comm, values: Array) -> float:
    """Median of the values of all ranks, which must not be empty or NaN; found by counting, so that none are moved."""
    if comm.size == 1:
        return float(np.median(values))
    keys = _ordered(values.astype(np.float64))
    count = sum(counts(comm, len(keys)))
    middle = [_smallest_with(comm, keys, rank) for rank in ((count + 1) // 2, count // 2 + 1)]
    return float(np.mean(_ordered(np.array(middle, np.int64).view(np.float64)).view(np.float64)))


def quantile(comm: Comm, values: Array, share: float) -> float:
    """Return the smallest value of all ranks that at least this share of the values does not exceed."""
    if comm.size == 1:
        return float(np.quantile(values, share, method="inverted_cdf"))
    keys = _ordered(values.astype(np.float64))
    rank = max(1, math.ceil(share * sum(counts(comm, len(keys)))))
    return float(_ordered(np.array([_smallest_with(comm, keys, rank)]).view(np.float64)).view(np.float64)[0])


def _ordered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers in the order of the values; applied to a view of such numbers it gives the values' bits back."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ SIGN, bits)


def _smallest_with(comm: Comm, keys: NDArray[np.int64], rank: int) -> int:
    """Return the smallest key that at least ``rank`` keys do not exceed, one bit after the other."""
    low, high = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
    while low < high:
        guess = (low + high) // 2
        if sum(counts(comm, int((keys <= guess).sum()))) >= rank:
            high = guess
        else:
            low = guess + 1
    return low
