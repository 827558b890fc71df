"""Exact scaling by powers of two, and chunks of samples on threads, shared by all coders."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from roadict.aligned import aligned
from roadict.coders.active import scatter, workspace
from roadict.kernels import Workers

Array = NDArray[np.floating]

CHUNK = 128
MAX_CHUNK = 512
"""Samples per call of a kernel, and their bound in ``encode_supports``, where a thread has several calls if it can."""
MAX_GRAM_ATOMS = 4096
"""Maximum number of atoms whose Gram matrix is computed once; beyond, it would fill the memory."""


@dataclass(frozen=True)
class ScaledProblem:
    """Samples and atoms with largest entries near one: no square over- or underflows, results do not depend on units.

    Attributes
    ----------
    data : array of shape (n_samples, n_features)
        Unscaled, in the original dtype.
    observed : bool array of the same shape, or of shape (0, 0) if all entries are observed
    exponents : int array of shape (n_samples,)
        Sample n is 2**exponents[n] times what the kernels see.
    rows : array of shape (n_components, n_features)
        Scaled atoms, in the dtype that kernels compute in.
    columns : array of shape (n_features, n_components)
        Their transpose.
    gram : array of shape (n_components, n_components), or (0, 0)
        Empty if entries are missing, as each sample then has its own.
    atom_exponents : int array of shape (n_components,)
    """

    data: Array
    observed: NDArray[np.bool_]
    exponents: NDArray[np.integer]
    rows: Array
    columns: Array
    gram: Array
    atom_exponents: NDArray[np.integer]

    @property
    def n_observed(self) -> NDArray[np.integer]:
        """Number of observed entries of every sample, shape (n_samples,)."""
        n_samples, n_features = self.data.shape
        counts: NDArray[np.integer] = (
            self.observed.sum(axis=1) if self.observed.size else np.full(n_samples, n_features)
        )
        return counts


def scale_problem(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    *,
    per_atom: bool,
    dtype: DTypeLike = np.float64,
) -> ScaledProblem:
    """Scale every sample by its own power of two, and atoms by one each or by a common one.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        Finite, also at unobserved entries.
    observed : bool array like data, or None
    dictionary : array of shape (n_components, n_features)
    per_atom : bool
        One power of two per atom, for coders that compare atoms at unit norm.
    dtype : dtype
        What kernels compute in: that of the data, or float64.
    """
    if observed is not None:
        data = np.where(observed, data, 0).astype(data.dtype)
    exponents = _exponents(np.maximum(data.max(axis=1), -data.min(axis=1)))
    largest = np.abs(dictionary).max(axis=1).astype(np.float64)
    atom_exponents = _exponents(largest if per_atom else np.full_like(largest, largest.max()))
    # Kernels are compiled for one layout: C order, writable.
    rows = np.ldexp(dictionary.astype(np.float64, order="C"), -atom_exponents[:, None])
    with_gram = observed is None and len(rows) <= MAX_GRAM_ATOMS
    return ScaledProblem(
        data=data,
        observed=np.empty((0, 0), bool) if observed is None else np.ascontiguousarray(observed),
        exponents=exponents,
        rows=rows.astype(dtype),
        columns=aligned(rows.T, dtype),
        gram=aligned(rows @ rows.T if with_gram else np.empty((0, 0)), dtype),
        atom_exponents=atom_exponents,
    )


def _exponents(largest: Array) -> NDArray[np.integer]:
    exponents: NDArray[np.integer] = np.frexp(largest)[1].astype(np.int64)
    return exponents


def rescale(values: Array, exponents: NDArray[np.integer]) -> Array:
    """Multiply by powers of two; out of range becomes infinite or zero."""
    with np.errstate(over="ignore", under="ignore"):
        result: Array = np.ldexp(values, exponents)
    return result


def _shift(values: Array, exponents: NDArray[np.integer]) -> Array:
    """Multiply by 2**exponents, in the dtype of the values; by products, which are faster, if no power overflows."""
    if np.abs(exponents).max(initial=0) < 100:
        products: Array = values * np.ldexp(values.dtype.type(1), exponents)
        return products
    return rescale(values, exponents)


def _rescale_codes(codes: Array, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Array:
    """Multiply by 2**(rows[i] - columns[j]); by products, which are faster, if no power overflows."""
    if np.abs(rows).max() + np.abs(columns).max() < 900:
        products: Array = codes * np.ldexp(1.0, rows)[:, None] * np.ldexp(1.0, -columns)
        return products
    return rescale(codes, rows[:, None] - columns)


def encode_chunks(
    kernel: Callable[..., Any],
    problem: ScaledProblem,
    *parameters: Any,
    start: Any = None,
    sparse: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, int]:
    """Run a kernel over chunks of samples on threads; the chunks do not depend on the number of threads.

    Parameters
    ----------
    kernel : callable
        ``kernel(rows, columns, gram, observed, samples, codes, *parameters)`` fills the codes of a chunk and returns
        the number of samples that have not converged.
    problem : ScaledProblem
    *parameters
        Arrays have one entry per sample and are split like the data.
    start : array or CSR array of shape (n_samples, n_components), default=None
        Initial codes; None: zeros.
    sparse : bool
        Whether to return a CSR array; only chunks are dense in between.
    n_jobs : int or None
        Threads.

    Returns
    -------
    codes : array or CSR array of shape (n_samples, n_components)
        In the dtype of the data.
    n_unconverged : int
        Number of samples that have not converged.
    """
    data, n_samples, n_components = problem.data, len(problem.data), len(problem.rows)
    codes = np.empty((0 if sparse else n_samples, n_components), data.dtype)
    n_chunks = -(-n_samples // CHUNK)
    n_unconverged = [0] * n_chunks
    found: list[Any] = [None] * n_chunks

    def task(chunk: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        exponents, atom_exponents = problem.exponents[part], problem.atom_exponents
        samples = np.ldexp(data[part].astype(np.float64, order="C"), -exponents[:, None])
        if start is None:
            chunk_codes: Array = np.zeros((len(samples), n_components))
        else:
            initial = start[part].toarray() if scipy.sparse.issparse(start) else start[part]
            chunk_codes = _rescale_codes(initial.astype(np.float64, order="C"), -exponents, -atom_exponents)
        split = (p[part] if isinstance(p, np.ndarray) else p for p in parameters)
        fixed = problem.rows, problem.columns, problem.gram, problem.observed[part], samples
        n_unconverged[chunk] = kernel(*fixed, chunk_codes, *split)
        with np.errstate(over="ignore", under="ignore"):
            chunk_codes = _rescale_codes(chunk_codes, exponents, atom_exponents).astype(data.dtype, copy=False)
        if sparse:
            places = np.nonzero(chunk_codes)
            counts = np.bincount(places[0], minlength=len(samples))
            found[chunk] = counts, places[1].astype(np.int32), chunk_codes[places]
        else:
            codes[part] = chunk_codes

    with Workers(n_jobs) as workers:
        workers.run(task, n_chunks)
    return _stacked(found, n_components, data.dtype) if sparse else codes, sum(n_unconverged)


Supports = tuple[NDArray[np.int64], NDArray[np.int64], Array]
"""Number of nonzero codes of every sample; atoms and codes of the first sample, of the second..."""


def empty_supports(n_samples: int, n_components: int, n_features: int) -> Supports:
    """Allocate space for the largest supports of these samples."""
    n_codes = n_samples * min(n_components, n_features)
    return np.empty(n_samples, np.int64), np.empty(n_codes, np.int64), np.empty(n_codes)


def encode_supports(
    kernel: Callable[..., Any],
    problem: ScaledProblem,
    *parameters: Any,
    start: Array | None = None,
    sparse: bool = False,
    n_jobs: int | None = None,
    positive: bool = False,
    own_table: bool = False,
) -> tuple[Array | scipy.sparse.csr_array, int]:
    """Run a kernel that returns the support of every sample over chunks of samples on threads.

    Parameters
    ----------
    kernel : callable
        ``kernel(rows, columns, gram, observed, samples, squares, signs, work, out, *parameters)`` fills ``out`` and
        returns the number of samples that have not converged. ``squares`` are squared norms of the samples, ``signs``
        those of the initial codes, or empty, like ``observed`` if all entries are.
    problem : ScaledProblem
    *parameters
        Arrays have one entry per sample and are split like the data.
    start : array of shape (n_samples, n_components), default=None
        Initial codes.
    sparse : bool
        Whether to return a CSR array; there is no dense one in between.
    n_jobs : int or None
        Threads.
    positive : bool
        Whether codes must not be negative; ``work.positive`` tells the kernel.
    own_table : bool
        Whether the kernel writes to ``work.table``, which then is not the Gram matrix.

    Returns
    -------
    codes : array or CSR array of shape (n_samples, n_components)
        In the dtype of the data.
    n_unconverged : int
        Number of samples that have not converged.
    """
    data, dtype = problem.data, problem.rows.dtype
    n_samples, (n_components, n_features) = len(data), problem.rows.shape
    codes = np.zeros((0 if sparse else n_samples, n_components), data.dtype)
    local = threading.local()  # new pages for every chunk would take longer than OMP

    def task(chunk: int) -> None:
        part = slice(chunk * size, (chunk + 1) * size)
        samples = _shift(data[part].astype(dtype, order="C"), -problem.exponents[part, None])
        if not hasattr(local, "arrays"):
            table = np.empty((0, 0), dtype) if own_table else problem.gram
            work = workspace(table, n_components, n_features, dtype, positive)
            local.arrays = work, empty_supports(size, n_components, n_features)
        work, out = local.arrays
        out = out[0][: len(samples)], *out[1:]
        squares = np.square(samples, dtype=np.float64).sum(axis=1)
        signs = np.empty((len(samples), 0), dtype) if start is None else np.sign(start[part]).astype(dtype, order="C")
        split = (p[part] if isinstance(p, np.ndarray) else p for p in parameters)
        observed = problem.observed[part] if problem.observed.size else np.empty((len(samples), 0), bool)
        fixed = problem.rows, problem.columns, problem.gram, observed, samples
        n_unconverged[chunk] = kernel(*fixed, squares, signs, work, out, *split)
        counts, atoms, values = out
        atoms, exponents = atoms[: counts.sum()], np.repeat(problem.exponents[part], counts)
        with np.errstate(over="ignore", under="ignore"):
            values = _shift(values[: len(atoms)], exponents - problem.atom_exponents[atoms]).astype(data.dtype)
        if sparse:
            found[chunk] = counts.copy(), atoms.astype(np.int32), values
        else:
            scatter(counts, atoms, values, codes[part])

    with Workers(n_jobs) as workers:
        size = min(max(n_samples // (4 * workers.n_threads), 32), MAX_CHUNK)
        n_chunks = -(-n_samples // size)
        n_unconverged = [0] * n_chunks
        found: list[Any] = [None] * n_chunks
        workers.run(task, n_chunks)
    return _stacked(found, n_components, data.dtype) if sparse else codes, sum(n_unconverged)


def _stacked(found: list[Any], n_components: int, dtype: DTypeLike) -> scipy.sparse.csr_array:
    """Return the supports of all chunks as one CSR array, with sorted indices and no stored zeros."""
    found.append((np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, dtype)))
    counts, atoms, values = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    starts = np.concatenate([[0], np.cumsum(counts)])
    result = scipy.sparse.csr_array((values, atoms, starts), shape=(len(counts), n_components))
    result.sort_indices()
    result.eliminate_zeros()  # codes that underflow
    return result
