"""Atoms of a stream of samples: every mini-batch is coded, and the atoms fit statistics of all codes so far."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.blas import one_blas_thread
from roadict.coders.registry import encode
from roadict.constraints import FREE, Constraints
from roadict.ranks.collectives import broadcast, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road.descent import improved_atoms, unused_atoms, worst_directions
from roadict.road.plan import Plan
from roadict.runs.result import Fit

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None
Samples = tuple[Array, Mask, Array | None]
"""Data, zero at unobserved entries; which are observed; weights."""

BATCH = 2048
"""Samples between two improvements of the atoms, over all ranks."""
FORGETTING = 8
"""A sample counts with this power of the share of the samples that came before the latest: codes of poor atoms fade."""
CHUNK = 2**14
"""Samples whose statistics are formed at a time."""
UNUSED = 1e-9
"""Squared codes of an atom, relative to the largest of all atoms, up to which it counts as unused."""


class Seen(NamedTuple):
    """What a mini-batch had before it changed the atoms, summed over its samples and all ranks.

    ``objective`` is ½‖residual‖² + weight Σ|codes|; ``usage`` the number of samples, by weight, that use each atom.
    """

    objective: float
    misfit: float
    square: float
    usage: Array
    n_samples: float

    @property
    def error(self) -> float:
        """Relative data error."""
        return math.sqrt(self.misfit / max(self.square, np.finfo(float).tiny))

    def size(self, weight: float) -> float:
        """Return Σ|codes|; ``weight``: that of the objective."""
        return (self.objective - self.misfit / 2) / weight


def seen_in(samples: Samples, codes: Array, residual: Array, weight: float, comm: Comm) -> Seen:
    """Sum up coded samples over all ranks; ``residual`` is zero at unobserved entries."""
    data, _, weights = samples
    each = np.ones(len(data)) if weights is None else weights.astype(np.float64)
    misfit = float(each @ np.einsum("ij,ij->i", residual, residual, dtype=np.float64))
    square = float(each @ np.einsum("ij,ij->i", data, data, dtype=np.float64))
    size = float(each @ np.abs(codes).sum(axis=1, dtype=np.float64))
    sums = np.array([misfit / 2 + weight * size, misfit, square, each.sum()])
    objective, misfit, square, n_samples = comm.sum(sums).tolist()
    return Seen(objective, misfit, square, comm.sum(each @ (codes != 0)), n_samples)


def nothing_seen(n_components: int) -> Seen:
    """Return the sums over no samples."""
    return Seen(0.0, 0.0, 0.0, np.zeros(n_components), 0.0)


def picked(samples: Samples, rows: NDArray[np.int64] | slice) -> Samples:
    """Return some of the samples."""
    data, observed, weights = samples
    return data[rows], None if observed is None else observed[rows], None if weights is None else weights[rows]


def _statistics(codes: Array, full: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return codesᵀ codes and codesᵀ samples, weighted."""
    weighed = codes if weights is None else (codes * weights[:, None]).astype(codes.dtype)
    return (weighed.T @ codes).astype(np.float64), (weighed.T @ full).astype(np.float64)


def add_up(seen: list[Seen]) -> Seen:
    """Return the sums over mini-batches."""
    return Seen(*(sum(each[1:], each[0]) for each in zip(*seen, strict=True)))


@dataclass(frozen=True)
class Stream:
    """Atoms learned so far, and all that the next mini-batch needs.

    Attributes
    ----------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    weight : float
        Lasso weight of the codes.
    gram, target : arrays of shape (n_components, n_components) and (n_components, n_features)
        codesᵀ codes and codesᵀ samples, over all ranks, in which former samples fade. Missing entries take the values
        of their representation.
    n_samples : float
        Number of samples so far, by weight.
    constraints : Constraints
    """

    dictionary: Array
    weight: float
    gram: Array
    target: Array
    n_samples: float
    constraints: Constraints = FREE

    @one_blas_thread()
    def updated(self, samples: Samples, comm: Comm = SERIAL, n_jobs: int | None = None) -> "tuple[Stream, Seen]":
        """Code a mini-batch and improve the atoms one after the other; of this rank's samples, possibly none.

        Atoms that no sample has used, or none for so long that its codes have faded, are replaced by the samples that
        are represented worst.
        """
        codes, full, residual = self._coded(samples, n_jobs)
        seen = seen_in(samples, codes, residual, self.weight, comm)
        if seen.n_samples == 0:
            return self, seen
        former = (self.n_samples / (self.n_samples + seen.n_samples)) ** FORGETTING
        own = _statistics(codes, full, samples[2])
        gram, target = former * self.gram + comm.sum(own[0]), former * self.target + comm.sum(own[1])
        dictionary = improved_atoms(self.dictionary, gram, target, self.constraints)
        unused = unused_atoms(gram, self.constraints, UNUSED)
        if len(unused):
            weights = samples[2]
            weighed = residual if weights is None else residual * np.sqrt(weights)[:, None]
            found = worst_directions(weighed, len(unused), comm, self.constraints)
            dictionary[unused[: len(found)]] = found
        dictionary = broadcast(comm, dictionary)
        n_samples = self.n_samples + seen.n_samples
        return replace(self, dictionary=dictionary, gram=gram, target=target, n_samples=n_samples), seen

    @one_blas_thread()
    def measured(self, samples: Samples, comm: Comm = SERIAL, n_jobs: int | None = None) -> Seen:
        """Code samples, and learn nothing from them."""
        codes, _, residual = self._coded(samples, n_jobs)
        return seen_in(samples, codes, residual, self.weight, comm)

    def _coded(self, samples: Samples, n_jobs: int | None) -> tuple[Array, Array, Array]:
        """Return codes, samples without missing entries, and residuals."""
        data, observed, _ = samples
        codes = encode(
            data,
            observed,
            self.dictionary,
            algorithm="lasso",
            alpha=self.weight,
            positive=self.constraints.positive_code,
            n_jobs=n_jobs,
            warn=False,
        )
        represented = codes @ self.dictionary.astype(codes.dtype)
        full = data if observed is None else np.where(observed, data, represented)
        return codes, full, full - represented

    def objective(self, seen: Seen, bound: float | None) -> float:
        """Return the formulation's objective: Σ|codes|, plus the misfit of the Lasso form; the dual under a bound."""
        return (seen.objective - (bound or 0.0) ** 2 * seen.square / 2) / self.weight

    @property
    def is_finite(self) -> bool:
        """Whether the statistics have not overflowed."""
        return bool(np.isfinite(self.gram).all() and np.isfinite(self.target).all())


def continued(fit: Fit, plan: Plan, samples: Samples) -> Stream:
    """Return the stream that continues a fit of these samples, in its engine's units.

    Its weight is that of the fit, or for an error bound the correlation of the residuals with the atoms in use.
    """
    atoms, n_rows = fit.dictionary, len(fit.codes)
    gram, target, correlations = np.zeros((len(atoms), len(atoms))), np.zeros(atoms.shape), np.zeros(2)
    for start in range(0, n_rows, CHUNK):
        data, observed, weights = picked(samples, slice(start, start + CHUNK))
        scaled, codes = (array / array.dtype.type(plan.unit) for array in (data, fit.codes[start : start + CHUNK]))
        represented = codes @ atoms
        full = scaled if observed is None else np.where(observed, scaled, represented)
        own = _statistics(codes, full, weights)
        gram, target = gram + own[0], target + own[1]
        used = codes != 0
        correlations += np.abs((full - represented) @ atoms.T)[used].sum(dtype=np.float64), used.sum()
    correlation, n_used = plan.comm.sum(correlations).tolist()
    weight = plan.alpha or correlation / max(n_used, 1.0)
    n_samples = total(plan.comm, float(n_rows if samples[2] is None else samples[2].sum()))
    gram, target = plan.comm.sum(gram), plan.comm.sum(target)
    return Stream(atoms.astype(np.float64), weight, gram, target, n_samples, plan.problem.constraints)
