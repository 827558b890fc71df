"""Collective operations built from sums alone: gather, broadcast, norms, medians, JSON values.

All ranks must call these functions. In one process each returns the result for the local array.
"""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.comm import Comm
from roadict.tensors import is_sparse

Array = NDArray[np.floating]
Result = TypeVar("Result")

SIGN = np.int64(np.iinfo(np.int64).max)
BLOCK_ROWS = 4096


class OtherRankError(RuntimeError):
    """Another rank has failed; its own message gives the reason."""


def counts(comm: Comm, count: int) -> list[int]:
    """Return the number of rows on every rank."""
    numbers = np.zeros(comm.size, np.int64)
    numbers[comm.rank] = count
    return [int(number) for number in comm.sum(numbers)]


def offset(comm: Comm, count: int) -> int:
    """Return the number of rows on lower ranks; this rank has ``count`` rows."""
    return sum(counts(comm, count)[: comm.rank])


def total(comm: Comm, number: float) -> float:
    """Sum one number over the ranks."""
    return float(comm.sum(np.array([number], np.float64))[0])


def norm(comm: Comm, array: Array) -> float:
    """Frobenius norm over the arrays of all ranks, summed in float64."""
    if array.dtype == np.float32:
        length = math.sqrt(float(np.einsum("i,i->", array.ravel(), array.ravel(), dtype=np.float64)))
    else:
        length = float(np.linalg.norm(array))
    return length if comm.size == 1 else math.sqrt(total(comm, length * length))


def largest(comm: Comm, array: NDArray[Any]) -> float:
    """Largest absolute value over the arrays of all ranks, 0 if they are empty."""
    return float(gathered(comm, np.array([np.abs(array).max(initial=0)], np.float64)).max())


def gathered(comm: Comm, rows: Any) -> Any:
    """Return the rows of all ranks, an array or a sparse one, in rank order, on every rank."""
    if rows is None:
        raise ValueError(
            "there are no rows to gather: codes_ is None if the fit did not store codes; pass store_codes=True, or use "
            "transform(X, sparse=True)"
        )
    if comm.size == 1:
        return rows
    if is_sparse(rows):
        return _gathered_csr(comm, rows, gathered)
    lengths = counts(comm, len(rows))
    start = sum(lengths[: comm.rank])
    padded = np.zeros((sum(lengths), *rows.shape[1:]), np.uint8 if rows.dtype == np.bool_ else rows.dtype)
    padded[start : start + len(rows)] = rows
    return comm.sum(padded).astype(rows.dtype, copy=False)


def gathered_on_root(comm: Comm, rows: Any) -> Any:
    """Return the rows of all ranks, an array or a sparse one, in rank order, on rank 0, and none on the others.

    Rows are sent in blocks, so that other ranks need no memory for all of them.
    """
    if comm.size == 1:
        return rows
    if is_sparse(rows):
        return _gathered_csr(comm, rows, gathered_on_root)
    lengths = counts(comm, len(rows))
    n_rows, start = sum(lengths), sum(lengths[: comm.rank])
    received = np.empty((n_rows if comm.rank == 0 else 0, *rows.shape[1:]), rows.dtype)
    for first in range(0, n_rows, BLOCK_ROWS):
        numbers = np.arange(first, min(first + BLOCK_ROWS, n_rows))
        block = picked(comm, rows, start, numbers)
        if comm.rank == 0:
            received[numbers] = block
    return received


def _gathered_csr(comm: Comm, rows: Any, gather: Callable[[Comm, NDArray[Any]], NDArray[Any]]) -> Any:
    from scipy.sparse import csr_array

    rows = csr_array(rows)
    data, indices = gather(comm, rows.data), gather(comm, rows.indices.astype(np.int64))
    sizes = gather(comm, np.diff(rows.indptr).astype(np.int64))
    return csr_array((data, indices, np.append(0, np.cumsum(sizes))), shape=(len(sizes), rows.shape[1]))


def joint_triangular_factor(comm: Comm, rows: NDArray[Any]) -> NDArray[Any]:
    """Return a matrix with the singular values and right singular vectors of all ranks' rows.

    Parameters
    ----------
    comm : Comm
    rows : array of shape (..., n_rows, n_columns)

    Returns
    -------
    array of shape (..., at most comm.size * n_columns, n_columns)
        The triangular factors of all ranks, stacked; in one process the rows themselves.
    """
    if comm.size == 1:
        return rows
    triangles: Any = np.linalg.qr(rows, mode="r")
    return np.moveaxis(gathered(comm, np.moveaxis(triangles, -2, 0)), 0, -2)


def picked(comm: Comm, rows: NDArray[Any], start: int, numbers: NDArray[np.integer]) -> NDArray[Any]:
    """Return the rows with these global numbers on every rank; this rank's rows are numbered from ``start`` on."""
    own = (numbers >= start) & (numbers < start + len(rows))
    padded = np.zeros((len(numbers), *rows.shape[1:]), rows.dtype)
    padded[own] = rows[numbers[own] - start]
    return comm.sum(padded)


def broadcast(comm: Comm, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array of rank 0 on every rank; shapes and dtypes must agree."""
    return comm.sum(array if comm.rank == 0 else np.zeros_like(array))


def allgather_json(comm: Comm, value: Any) -> list[Any]:
    """Return the values of all ranks; they must be JSON-serializable."""
    if comm.size == 1:
        return [value]
    text = np.frombuffer(f"{json.dumps(value)}\n".encode(), np.uint8)
    return [json.loads(line) for line in gathered(comm, text).tobytes().splitlines()]


def allreduce_max(comm: Comm, *numbers: int) -> list[int]:
    """Return the elementwise maximum over the ranks, by one exchange; the loop does this at every iteration."""
    if comm.size == 1:
        return list(numbers)
    table = np.zeros((comm.size, len(numbers)), np.int64)
    table[comm.rank] = numbers
    return [int(number) for number in comm.sum(table).max(axis=0)]


def on_all_ranks(comm: Comm, task: Callable[[], Result]) -> Result:
    """Return ``task()``, which must not communicate; if it fails on one rank, all ranks fail.

    Otherwise the others would wait forever. The first failed rank raises its own error, which gives the reason.
    """
    failure: Exception | None = None
    try:
        result = task()
    except Exception as raised:
        failure = raised
    if comm.size > 1:
        failed = np.flatnonzero(counts(comm, failure is not None))
        if len(failed) and failed[0] != comm.rank:
            raise OtherRankError(
                f"rank {failed[0]} has failed and reports the reason; rank {comm.rank} stops as well"
            ) from failure
    if failure is not None:
        raise failure
    return result


def median(comm: Comm, values: Array) -> float:
    """Median over all ranks of values that are not empty or NaN; found by counting, so that no values are exchanged."""
    if comm.size == 1:
        return float(np.median(values))
    keys = _sort_keys(values.astype(np.float64))
    count = sum(counts(comm, len(keys)))
    middle = [_kth_smallest(comm, keys, rank) for rank in ((count + 1) // 2, count // 2 + 1)]
    return float(np.mean(_sort_keys(np.array(middle, np.int64).view(np.float64)).view(np.float64)))


def quantile(comm: Comm, values: Array, share: float) -> float:
    """Return the smallest value of all ranks that at least this share of the values does not exceed."""
    if comm.size == 1:
        return float(np.quantile(values, share, method="inverted_cdf"))
    keys = _sort_keys(values.astype(np.float64))
    rank = max(1, math.ceil(share * sum(counts(comm, len(keys)))))
    return float(_sort_keys(np.array([_kth_smallest(comm, keys, rank)]).view(np.float64)).view(np.float64)[0])


def _sort_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers in the order of the values; applied to a float view of such integers it restores the values' bits."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ SIGN, bits)


def _kth_smallest(comm: Comm, keys: NDArray[np.int64], rank: int) -> int:
    """Return the smallest key that at least ``rank`` keys do not exceed, by bisection."""
    low, high = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
    while low < high:
        guess = (low + high) // 2
        if sum(counts(comm, int((keys <= guess).sum()))) >= rank:
            high = guess
        else:
            low = guess + 1
    return low
