"""Samples of a large fit: read, checked and coded in pieces."""

import mmap
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.coders.registry import encode_sparse
from roadict.estimators.consistency import consistent_samples
from roadict.ranks.collectives import allreduce_max, counts, offset, on_all_ranks
from roadict.ranks.comm import Comm
from roadict.road.passes import BLOCK, rows_of
from roadict.road.plan import Parameters, Request
from roadict.road.stream import Samples
from roadict.road.subset import subset

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None
Validate = Callable[..., tuple[Array, Mask]]

LARGE = 2**26
"""Number of codes, n_samples × n_components over all ranks, above which a fit does not hold them in memory."""
FIRST = 4
"""Samples that a large fit begins with, relative to those of a search."""
PIECE = 2**16
"""Rows that are checked at a time."""


class Rows:
    """Samples of this rank, in the user's units.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        In memory: checked at once. A memory map of a file: read from the file and checked in pieces; a mapped file that
        shrinks would end the process.
    validate : callable
        Returns data and mask of a piece, given ``reset`` and the number of its first row, or raises ValueError.
    weights : array of shape (n_samples,), or None
    first_row : int
        Number of the first row among those of all ranks.
    """

    def __init__(self, X: Any, validate: Validate, weights: Array | None, first_row: int) -> None:
        self.weights, self._validate, self._first_row = weights, validate, first_row
        self._n_rows = int(X.shape[0])
        self._held: tuple[Array, Mask] | None = None
        if is_file(X):
            self._read = reader(X)
            data, _ = self._piece(0, min(1, self._n_rows), reset=True)
        else:
            self._held = validate(X, reset=True, first_row=first_row)
            data = self._held[0]
        self.shape, self.dtype = (self._n_rows, data.shape[1]), data.dtype

    def _piece(self, start: int, stop: int, reset: bool = False) -> tuple[Array, Mask]:
        if self._held is not None:
            data, observed = self._held
            return data[start:stop], None if observed is None else observed[start:stop]
        return self._validate(self._read(start, stop), reset=reset, first_row=self._first_row + start)

    def __len__(self) -> int:
        return self._n_rows

    def __getitem__(self, rows: slice) -> Array:
        """Return successive rows, with NaN at unobserved entries."""
        start, stop, _ = rows.indices(self._n_rows)
        data, observed = self._piece(start, stop)
        return data if observed is None else np.where(observed, data, np.nan).astype(data.dtype)

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""
        return float(self._n_rows if self.weights is None else self.weights.sum())

    def take(self, starts: NDArray[np.int64], size: int) -> Samples:
        """Return the rows of blocks of this size, or less at the end."""
        numbers = rows_of(starts, size, self._n_rows)
        weights = None if self.weights is None else self.weights[numbers]
        if self._held is not None:
            data, observed = self._held
            return data[numbers], None if observed is None else observed[numbers], weights
        blocks = [self._read(start, min(start + size, self._n_rows)) for start in starts.tolist()]
        if not blocks:
            return np.empty((0, self.shape[1]), self.dtype), None, weights
        data, observed = self._validate(np.concatenate(blocks), reset=False, first_row=self._first_row + int(starts[0]))
        return data, observed, weights

    def pieces(self) -> Iterator[tuple[int, Array, Mask]]:
        """Return all rows, piece by piece, each with the number of its first row."""
        for start in range(0, self._n_rows, PIECE):
            yield start, *self._piece(start, min(start + PIECE, self._n_rows))

    def some(self, share: float) -> Samples:
        """Check all rows, and return about this share; copies of a sample are taken together."""
        data, masks, numbers = [np.empty((0, self.shape[1]), self.dtype)], [], [np.arange(0)]
        for start, piece, observed in self.pieces():
            kept = subset(piece, observed, share, np.random.default_rng(1))  # another choice than that of a search
            data.append(piece[kept])
            masks.append(np.ones((kept.sum(), self.shape[1]), bool) if observed is None else observed[kept])
            numbers.append(start + np.flatnonzero(kept))
        mask = np.concatenate([np.ones((0, self.shape[1]), bool), *masks])
        weights = None if self.weights is None else self.weights[np.concatenate(numbers)]
        return np.concatenate(data), None if mask.all() else mask, weights


def is_file(X: Any) -> bool:
    """Whether X is a memory map whose rows can be read from its file: no view, and no private copy."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    base: Any = X.base  # of a view, another array
    return isinstance(base, mmap.mmap) and X.mode != "c" and X.filename is not None


def reader(X: Any) -> Callable[[int, int], Any]:
    """Return what reads rows ``start`` to ``stop`` of a memory map from its file."""
    path, first, dtype, (n_rows, n_columns) = str(X.filename), X.offset, X.dtype, X.shape
    row_bytes = dtype.itemsize * n_columns
    known = os.stat(path)
    X.flush()

    def read(start: int, stop: int) -> Any:
        with open(path, "rb") as file:
            if not os.path.samestat(os.fstat(file.fileno()), known):
                raise ValueError(f"{path} has been replaced while it was read; fit again")
            file.seek(first + start * row_bytes)
            content = file.read((stop - start) * row_bytes)
        if len(content) < (stop - start) * row_bytes:
            raise ValueError(
                f"{path} ends within row {start + len(content) // max(row_bytes, 1)} of {n_rows}: it has become "
                "shorter while it was read; write it again, and fit again"
            )
        return np.frombuffer(content, dtype).reshape(-1, n_columns)

    return read


def large_rows(
    model: Any, X: ArrayLike, sample_weight: ArrayLike | None, parameters: Parameters, comm: Comm
) -> Rows | None:
    """Return what reads the samples in pieces, if a fit cannot hold their codes in memory; else None.

    Parameters
    ----------
    model : ROAD
        Its parameters have been checked, and are the same on all ranks.
    X, sample_weight
        As passed to ``fit``.
    parameters : Parameters
    comm : Comm
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    n_rows, n_features = shape if len(shape) == 2 else (0, 0)
    n_components = 2 * max(allreduce_max(comm, n_features)) if model.n_components is None else model.n_components
    n_codes = sum(counts(comm, n_rows)) * n_components
    if n_codes <= LARGE or parameters.formulation == "inexact" or parameters.plain:
        return None
    if model.code_init is not None:
        raise ValueError(f"code_init is for fits of up to {LARGE:,} codes, which are held in memory; leave it out")
    first_row, min_samples = offset(comm, n_rows), int(comm.size == 1)

    def act() -> Rows:
        weights = checks.sample_weights(sample_weight, n_rows, np.dtype(np.float64), first_row)
        return Rows(X, partial(model._validate, min_samples=min_samples), weights, first_row)

    return on_all_ranks(comm, act)


def first_samples(rows: Rows, n_components: int | None, parameters: Parameters, comm: Comm) -> Samples:
    """Check all samples, and return some to begin a large fit with."""
    n_atoms = 2 * rows.shape[1] if n_components is None else n_components
    needed = FIRST * Request(np.empty((0, rows.shape[1])), None, n_atoms, parameters).n_searched
    share = min(1.0, needed / sum(counts(comm, len(rows))))
    data, observed, weights = on_all_ranks(comm, lambda: rows.some(share))
    used = data.any(axis=1) if weights is None else data.any(axis=1) & (weights > 0)
    if sum(counts(comm, int(used.sum()))) <= max(n_atoms, needed // 4):  # most are copies, or zero
        blocks = np.arange(0, len(rows), BLOCK)
        chosen = np.random.default_rng(1).permutation(len(blocks))[: max(1, round(share * len(blocks)))]
        data, observed, weights = on_all_ranks(comm, lambda: rows.take(blocks[np.sort(chosen)], BLOCK))
    return *consistent_samples(data, observed, comm), weights


def all_codes(rows: Rows, dictionary: Array, weight: float | None, n_jobs: int | None) -> scipy.sparse.csr_array:
    """Code all samples piece by piece, with a Lasso weight, or exactly if that is None."""
    algorithm = "basis-pursuit" if weight is None else "lasso"
    parts = [scipy.sparse.csr_array((0, len(dictionary)), dtype=rows.dtype)]
    parts += [
        encode_sparse(data, observed, dictionary, algorithm=algorithm, alpha=weight, n_jobs=n_jobs, warn=False)
        for _, data, observed in rows.pieces()
    ]
    return scipy.sparse.vstack(parts, format="csr")
