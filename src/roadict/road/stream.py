"""Atoms of a stream of samples: every mini-batch is coded, and the atoms fit statistics of all codes so far."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.coders.registry import encode
from roadict.linalg import unit_rows
from roadict.ranks.collectives import broadcast, gathered, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road.descent import improved_atoms
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
    """

    dictionary: Array
    weight: float
    gram: Array
    target: Array
    n_samples: float

    def updated(
        self,
        data: Array,
        observed: Mask,
        weights: Array | None = None,
        comm: Comm = SERIAL,
        n_jobs: int | None = None,
    ) -> "tuple[Stream, Seen]":
        """Code a mini-batch and improve the atoms one after the other; of this rank's samples, possibly none.

        Atoms that no sample has used so far are replaced by the samples that are represented worst.
        """
        codes = encode(data, observed, self.dictionary, algorithm="lasso", alpha=self.weight, n_jobs=n_jobs, warn=False)
        represented = codes @ self.dictionary.astype(codes.dtype)
        full = data if observed is None else np.where(observed, data, represented)
        each = np.ones(len(data)) if weights is None else weights.astype(np.float64)
        seen = self._measured(codes, full - represented, data, each, comm)
        if seen.n_samples == 0:
            return self, seen
        weighed = codes if weights is None else (codes * each[:, None]).astype(codes.dtype)
        former = (self.n_samples / (self.n_samples + seen.n_samples)) ** FORGETTING
        gram = former * self.gram + comm.sum((weighed.T @ codes).astype(np.float64))
        target = former * self.target + comm.sum((weighed.T @ full).astype(np.float64))
        dictionary = improved_atoms(self.dictionary, gram, target)
        uses = np.diag(gram)
        unused = np.flatnonzero(uses <= UNUSED * uses.max())
        if len(unused):
            found = _worst(full - represented, len(unused), comm)
            dictionary[unused[: len(found)]] = found
        dictionary = broadcast(comm, dictionary)
        n_samples = self.n_samples + seen.n_samples
        return replace(self, dictionary=dictionary, gram=gram, target=target, n_samples=n_samples), seen

    def _measured(self, codes: Array, residual: Array, data: Array, each: Array, comm: Comm) -> Seen:
        misfit = float(each @ np.einsum("ij,ij->i", residual, residual, dtype=np.float64))
        square = float(each @ np.einsum("ij,ij->i", data, data, dtype=np.float64))
        size = float(each @ np.abs(codes).sum(axis=1, dtype=np.float64))
        sums = np.array([misfit / 2 + self.weight * size, misfit, square, each.sum()])
        objective, misfit, square, n_samples = comm.sum(sums).tolist()
        return Seen(objective, misfit, square, comm.sum(each @ (codes != 0)), n_samples)


def _worst(residual: Array, count: int, comm: Comm) -> Array:
    """Return the directions of the largest residuals of all ranks, at most ``count``."""
    worst = np.argsort(-np.linalg.norm(residual, axis=1), kind="stable")[:count]
    rows, sizes = unit_rows(gathered(comm, residual[worst].astype(np.float64)))
    order = np.argsort(-sizes, kind="stable")[:count]
    return rows[order[sizes[order] > 0]]


def stream_from(
    data: Array, observed: Mask, codes: Array, dictionary: Array, weight: float, weights: Array | None, comm: Comm
) -> Stream:
    """Return the stream that continues a fit, given its samples, codes and atoms."""
    full = data if observed is None else np.where(observed, data, codes @ dictionary)
    weighed = codes if weights is None else (codes * weights[:, None]).astype(codes.dtype)
    gram = comm.sum((weighed.T @ codes).astype(np.float64))
    target = comm.sum((weighed.T @ full).astype(np.float64))
    n_samples = total(comm, float(len(data) if weights is None else weights.sum()))
    return Stream(dictionary.astype(np.float64), weight, gram, target, n_samples)


def lasso_weight(data: Array, observed: Mask, codes: Array, dictionary: Array, comm: Comm) -> float:
    """Return the Lasso weight of minimal codes: the correlation of the residuals with the atoms that are used."""
    residual = data - codes @ dictionary
    if observed is not None:
        residual = residual * observed
    used = codes != 0
    correlations = np.abs(residual @ dictionary.T)[used]
    sums = comm.sum(np.array([correlations.sum(dtype=np.float64), float(used.sum())]))
    return float(sums[0] / max(sums[1], 1.0))


def continued(fit: Fit, plan: Plan, samples: Samples) -> Stream:
    """Return the stream that continues a fit of these samples, in its engine's units."""
    (data, observed, weights), comm = samples, plan.comm
    scaled, codes = (np.asarray(array / array.dtype.type(plan.unit)) for array in (data, fit.codes))
    weight = plan.alpha or lasso_weight(scaled, observed, codes, fit.dictionary, comm)
    return stream_from(scaled, observed, codes, fit.dictionary, weight, weights, comm)
