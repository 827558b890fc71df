"""Samples of a large fit: read, checked and coded in pieces."""

import mmap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.coders.registry import encode_sparse
from roadict.estimators.consistency import MIN_SAMPLES, consistent_samples
from roadict.estimators.weights import few_weights
from roadict.files.blocks import RowFile
from roadict.ranks.collectives import allgather_json, allreduce_max, counts, offset, on_all_ranks
from roadict.ranks.comm import Comm
from roadict.road.passes import HeldRows, rows_of
from roadict.road.plan import Parameters, Request
from roadict.road.stream import Samples, picked
from roadict.road.subset import chosen, sample_digests

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
        self._held: Samples | None = None
        if is_file(X):
            X.flush()
            self._file = RowFile(str(X.filename), X.offset, X.dtype, X.shape)
            for row in (0, self._n_rows - 1):
                if self._n_rows and self._file.read(row, row + 1).tobytes() != np.asarray(X[row : row + 1]).tobytes():
                    raise ValueError(f"{X.filename} is no longer the file that X maps; load it again")
            data, _ = self._piece(0, min(1, self._n_rows), reset=True)
        else:
            data, observed = validate(X, reset=True, first_row=first_row)
            self._held = data, observed, weights
        self.shape, self.dtype = (self._n_rows, data.shape[1]), data.dtype

    def set_weights(self, weights: Array) -> None:
        """Give the rows these weights."""
        self.weights = weights
        if self._held is not None:
            self._held = *self._held[:2], weights

    def _piece(self, start: int, stop: int, reset: bool = False) -> tuple[Array, Mask]:
        if self._held is not None:
            data, observed, _ = picked(self._held, slice(start, stop))
            return data, observed
        return self._validate(self._file.read(start, stop), reset=reset, first_row=self._first_row + start)

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
        if self._held is not None:
            return HeldRows(self._held).take(starts, size)
        weights = None if self.weights is None else self.weights[rows_of(starts, size, self._n_rows)]
        blocks = [self._file.read(start, min(start + size, self._n_rows)) for start in starts.tolist()]
        if not blocks:
            return np.empty((0, self.shape[1]), self.dtype), None, weights
        data, observed = self._validate(np.concatenate(blocks), reset=False, first_row=self._first_row + int(starts[0]))
        return data, observed, weights

    def pieces(self) -> Iterator[tuple[int, Array, Mask]]:
        """Return all rows, piece by piece, each with the number of its first row."""
        for start in range(0, self._n_rows, PIECE):
            yield start, *self._piece(start, min(start + PIECE, self._n_rows))

    def digests(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Check all rows; return the digest of each, and whether it can be learned from: not zero, nor of weight 0."""
        digests, used = np.zeros(self._n_rows, np.uint64), np.zeros(self._n_rows, bool)
        for start, piece, observed in self.pieces():
            rows = slice(start, start + len(piece))
            digests[rows] = sample_digests(piece, observed, np.random.default_rng(1))  # not those of a search
            used[rows] = piece.any(axis=1)
        return digests, used if self.weights is None else used & (self.weights > 0)

    def picked(self, kept: NDArray[np.bool_]) -> Samples:
        """Return these rows."""
        data, masks = [np.empty((0, self.shape[1]), self.dtype)], [np.ones((0, self.shape[1]), bool)]
        for start, piece, observed in self.pieces():
            own = kept[start : start + len(piece)]
            data.append(piece[own])
            masks.append(np.ones((own.sum(), self.shape[1]), bool) if observed is None else observed[own])
        mask = np.concatenate(masks)
        return np.concatenate(data), None if mask.all() else mask, None if self.weights is None else self.weights[kept]


def is_file(X: Any) -> bool:
    """Whether X is a memory map whose rows can be read from its file: no view, and no private copy."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    base: Any = X.base  # of a view, another array
    return isinstance(base, mmap.mmap) and X.mode != "c" and X.filename is not None


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
    n_codes = sum(counts(comm, n_rows)) * model._n_atoms(max(allreduce_max(comm, n_features)))
    if n_codes <= LARGE or parameters.formulation == "inexact" or parameters.plain:
        return None
    if model.code_init is not None:
        raise ValueError(f"code_init is for fits of up to {LARGE:,} codes, which are held in memory; leave it out")
    first_row, min_samples = offset(comm, n_rows), int(comm.size == 1)

    def act() -> Rows:
        weights = checks.sample_weights(sample_weight, n_rows, np.dtype(np.float64), first_row)
        return Rows(X, partial(model._validate, min_samples=min_samples), weights, first_row)

    rows = on_all_ranks(comm, act)
    if any(allgather_json(comm, rows.weights is not None)) and rows.weights is None:
        rows.set_weights(np.ones(n_rows))  # as other ranks have some
    return rows


def first_samples(rows: Rows, n_components: int, parameters: Parameters, comm: Comm) -> Samples:
    """Check all samples, and return some to begin a large fit with."""
    needed = FIRST * Request(np.empty((0, rows.shape[1])), None, n_components, parameters).n_searched
    digests, used = on_all_ranks(comm, rows.digests)
    n_used = sum(counts(comm, int(used.sum())))
    _check_used(rows, n_used, comm)
    share = min(1.0, needed / max(1, n_used))
    kept = used & chosen(digests, share)
    if sum(counts(comm, int(kept.sum()))) <= max(n_components, needed // 4):  # most are copies: choose some of these
        kept = used & (np.random.default_rng(1).random(len(rows)) <= share)
    data, observed, weights = on_all_ranks(comm, lambda: rows.picked(kept))
    return *consistent_samples(data, observed, comm), weights


def _check_used(rows: Rows, n_used: int, comm: Comm) -> None:
    """Refuse weights that leave too few samples, and samples that are all zero."""
    weighed = len(rows) if rows.weights is None else int((rows.weights > 0).sum())
    n_weighed, n_samples = sum(counts(comm, weighed)), sum(counts(comm, len(rows)))
    if n_weighed < MIN_SAMPLES:
        raise ValueError(few_weights(n_weighed, n_samples))
    if n_used == 0:
        raise ValueError("all entries of X are zero; there is nothing to learn from")


def all_codes(
    rows: Rows, dictionary: Array, weight: float | None, positive: bool, n_jobs: int | None
) -> scipy.sparse.csr_array:
    """Code all samples piece by piece, with a Lasso weight, or exactly if that is None."""
    algorithm = "basis-pursuit" if weight is None else "lasso"
    parts = [scipy.sparse.csr_array((0, len(dictionary)), dtype=rows.dtype)]
    parts += [
        encode_sparse(
            data, observed, dictionary, algorithm=algorithm, alpha=weight, positive=positive, n_jobs=n_jobs, warn=False
        )
        for _, data, observed in rows.pieces()
    ]
    return scipy.sparse.vstack(parts, format="csr")
