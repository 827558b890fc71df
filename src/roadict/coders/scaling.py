"""What all coders share: exact scaling by powers of two, and chunks of samples on threads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.kernels import Workers

Array = NDArray[np.floating]

CHUNK = 128
GRAM_ATOMS = 4096
"""Up to so many atoms their Gram matrix is computed once; beyond, it would fill the memory."""


@dataclass(frozen=True)
class Scaled:
    """Samples and atoms with largest entries near one: no square over- or underflows, no result depends on the unit.

    Attributes
    ----------
    data : array of shape (n_samples, n_features)
        Unscaled, in its own dtype.
    observed : bool array of the same shape, or of shape (0, 0) where all is observed
    exponents : int array of shape (n_samples,)
        Sample n stands for 2**exponents[n] times what the kernels see.
    rows : array of shape (n_components, n_features)
        Scaled atoms, float64.
    columns : array of shape (n_features, n_components)
        Their transpose.
    gram : array of shape (n_components, n_components), or (0, 0)
        Empty where samples have entries missing, as each of them has its own.
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
    def n_seen(self) -> NDArray[np.integer]:
        """Observed entries of every sample, of shape (n_samples,)."""
        n_samples, n_features = self.data.shape
        counts: NDArray[np.integer] = (
            self.observed.sum(axis=1) if self.observed.size else np.full(n_samples, n_features)
        )
        return counts


def scaled(data: Array, observed: NDArray[np.bool_] | None, dictionary: Array, *, each_atom: bool) -> Scaled:
    """Scale every sample by its own power of two; every atom too, or all atoms by one.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        Finite, also where not observed.
    observed : bool array like data, or None
    dictionary : array of shape (n_components, n_features)
    each_atom : bool
        For coders whose choice among atoms must not depend on their norms.
    """
    if observed is not None:
        data = np.where(observed, data, 0).astype(data.dtype)
    exponents = _exponents(np.abs(data).max(axis=1))
    largest = np.abs(dictionary).max(axis=1).astype(np.float64)
    atom_exponents = _exponents(largest if each_atom else np.full_like(largest, largest.max()))
    # Kernels are compiled for one layout: C order, writable.
    rows = np.ldexp(dictionary.astype(np.float64, order="C"), -atom_exponents[:, None])
    with_gram = observed is None and len(rows) <= GRAM_ATOMS
    return Scaled(
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
    """Multiply by powers of two; what leaves the range of floats becomes infinite or zero."""
    with np.errstate(over="ignore", under="ignore"):
        result: Array = np.ldexp(values, exponents)
    return result


def _rescale_codes(codes: Array, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Array:
    """Do the same with 2**(rows[i] - columns[j]); by products, which are faster, where no power overflows."""
    if np.abs(rows).max() + np.abs(columns).max() < 900:
        products: Array = codes * np.ldexp(1.0, rows)[:, None] * np.ldexp(1.0, -columns)
        return products
    return rescale(codes, rows[:, None] - columns)


def code_chunks(
    kernel: Callable[..., Any],
    problem: Scaled,
    *parameters: Any,
    start: Array | None = None,
    n_jobs: int | None = None,
) -> tuple[Array, int]:
    """Run a kernel over chunks of samples on threads; chunks do not depend on the number of threads.

    Parameters
    ----------
    kernel : callable
        ``kernel(rows, columns, gram, observed, samples, codes, *parameters)`` fills the codes of a chunk and returns
        the number of samples that it could not code to its tolerance.
    problem : Scaled
    *parameters
        Arrays have one entry per sample and are cut like the data.
    start : array of shape (n_samples, n_components), default=None
        Codes that the kernel finds in place of zeros.
    n_jobs : int or None
        Threads.

    Returns
    -------
    codes : array of shape (n_samples, n_components)
        In the dtype of the data.
    rough : int
        Sum of what the kernel returned.
    """
    data, n_samples = problem.data, len(problem.data)
    codes = np.empty((n_samples, len(problem.rows)), data.dtype)
    n_chunks = -(-n_samples // CHUNK)
    rough = [0] * n_chunks
    workers = Workers(n_jobs)

    def task(chunk: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        exponents, atom_exponents = problem.exponents[part], problem.atom_exponents
        samples = np.ldexp(data[part].astype(np.float64, order="C"), -exponents[:, None])
        if start is None:
            found: Array = np.zeros((len(samples), codes.shape[1]))
        else:
            found = _rescale_codes(start[part].astype(np.float64, order="C"), -exponents, -atom_exponents)
        cut = (p[part] if isinstance(p, np.ndarray) else p for p in parameters)
        rough[chunk] = kernel(problem.rows, problem.columns, problem.gram, problem.observed[part], samples, found, *cut)
        with np.errstate(over="ignore", under="ignore"):
            codes[part] = _rescale_codes(found, exponents, atom_exponents)

    try:
        workers.run(task, n_chunks)
    finally:
        workers.close()
    return codes, sum(rough)
