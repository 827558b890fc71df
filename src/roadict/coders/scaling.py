"""Exact scaling by powers of two, and chunks of samples on threads, shared by all coders."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.kernels import Workers

Array = NDArray[np.floating]

CHUNK = 128
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
        Scaled atoms, float64.
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
    data: Array, observed: NDArray[np.bool_] | None, dictionary: Array, *, per_atom: bool
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
    """
    if observed is not None:
        data = np.where(observed, data, 0).astype(data.dtype)
    exponents = _exponents(np.abs(data).max(axis=1))
    largest = np.abs(dictionary).max(axis=1).astype(np.float64)
    atom_exponents = _exponents(largest if per_atom else np.full_like(largest, largest.max()))
    # Kernels are compiled for one layout: C order, writable.
    rows = np.ldexp(dictionary.astype(np.float64, order="C"), -atom_exponents[:, None])
    with_gram = observed is None and len(rows) <= MAX_GRAM_ATOMS
    return ScaledProblem(
        data=data,
        observed=np.empty((0, 0), bool) if observed is None else np.ascontiguousarray(observed),
        exponents=exponents,
        rows=rows,
        columns=np.ascontiguousarray(rows.T),
        gram=rows @ rows.T if with_gram else np.empty((0, 0)),
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
    start: Array | None = None,
    n_jobs: int | None = None,
) -> tuple[Array, int]:
    """Run a kernel over chunks of samples on threads; the chunks do not depend on the number of threads.

    Parameters
    ----------
    kernel : callable
        ``kernel(rows, columns, gram, observed, samples, codes, *parameters)`` fills the codes of a chunk and returns
        the number of samples that have not converged.
    problem : ScaledProblem
    *parameters
        Arrays have one entry per sample and are split like the data.
    start : array of shape (n_samples, n_components), default=None
        Initial codes; None: zeros.
    n_jobs : int or None
        Threads.

    Returns
    -------
    codes : array of shape (n_samples, n_components)
        In the dtype of the data.
    n_unconverged : int
        Number of samples that have not converged.
    """
    data, n_samples = problem.data, len(problem.data)
    codes = np.empty((n_samples, len(problem.rows)), data.dtype)
    n_chunks = -(-n_samples // CHUNK)
    n_unconverged = [0] * n_chunks

    def task(chunk: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        exponents, atom_exponents = problem.exponents[part], problem.atom_exponents
        samples = np.ldexp(data[part].astype(np.float64, order="C"), -exponents[:, None])
        if start is None:
            chunk_codes: Array = np.zeros((len(samples), codes.shape[1]))
        else:
            chunk_codes = _rescale_codes(start[part].astype(np.float64, order="C"), -exponents, -atom_exponents)
        split = (p[part] if isinstance(p, np.ndarray) else p for p in parameters)
        fixed = problem.rows, problem.columns, problem.gram, problem.observed[part], samples
        n_unconverged[chunk] = kernel(*fixed, chunk_codes, *split)
        with np.errstate(over="ignore", under="ignore"):
            codes[part] = _rescale_codes(chunk_codes, exponents, atom_exponents)

    with Workers(n_jobs) as workers:
        workers.run(task, n_chunks)
    return codes, sum(n_unconverged)
