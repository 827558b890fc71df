"""From a run that has nearly settled to an exact fit: refined atoms, codes by basis pursuit, a strict acceptance."""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from roadict.coders.registry import encode
from roadict.constraints import FREE, Constraints
from roadict.exact_finish.acceptance import is_sparse
from roadict.exact_finish.refinement import refine_atoms
from roadict.exact_finish.thresholds import DEFAULTS, Thresholds
from roadict.exact_finish.unmixing import unmix
from roadict.linalg import unit_rows
from roadict.ranks.collectives import broadcast, counts, joint_triangular_factor, largest
from roadict.ranks.comm import SERIAL, Comm

Array = NDArray[np.floating]


class ExactFit(NamedTuple):
    """Atoms of unit norm and codes that reproduce the data to rounding."""

    dictionary: Array
    codes: Array


def find_exact_fit(
    data: Array,
    dictionary: Array,
    codes: Array,
    n_jobs: int | None,
    comm: Comm = SERIAL,
    thresholds: Thresholds = DEFAULTS,
    constraints: Constraints = FREE,
) -> ExactFit | None:
    """Look for atoms near the given ones in which most samples are an exact combination of few; None if there are none.

    Few: fewer than the rank of the data. With atoms that are slightly off no sample is one, so that most of them are
    not by accident. Atoms that a multiple of another was added to still allow exact fits, with one atom more, which
    always comes in the same ratio: they are unmixed.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
    n_jobs : int or None
    comm : Comm
        The ranks, each with its samples and their codes; the codes returned are those of its samples.
    thresholds : Thresholds
    constraints : Constraints
        Which the atoms given, and those returned, satisfy.
    """
    nonzero = np.any(data != 0, axis=1)
    samples, norms = unit_rows(data[nonzero])
    codes = codes[nonzero] / norms[:, None]
    rounding, positive = thresholds.rounding(data.itemsize), constraints.positive_code
    rank = _rank(samples, rounding, comm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(thresholds.max_searches):
            atoms = refine_atoms(
                samples,
                norms,
                dictionary,
                codes,
                rank=rank,
                rounding=rounding,
                thresholds=thresholds,
                n_jobs=n_jobs,
                comm=comm,
                constraints=constraints,
            )
            if atoms is None:
                return None
            codes = encode(samples, None, atoms, algorithm="basis-pursuit", positive=positive, n_jobs=n_jobs)
            codes[np.abs(codes) < rounding] = 0
            errors = np.linalg.norm(samples - codes @ atoms, axis=1)
            if largest(comm, errors) > rank * rounding or not is_sparse(codes, rank, thresholds, comm):
                return None
            dictionary = unmix(atoms, codes, thresholds, comm, constraints)
            if dictionary is atoms:
                exact = np.zeros((len(data), len(atoms)))
                exact[nonzero] = codes * norms[:, None]
                return ExactFit(atoms, exact)
            codes = encode(samples, None, dictionary, algorithm="basis-pursuit", positive=positive, n_jobs=n_jobs)
    return None


def _rank(samples: Array, rounding: float, comm: Comm) -> int:
    """Rank of all ranks' samples, to rounding."""
    sizes = broadcast(comm, np.linalg.svd(joint_triangular_factor(comm, samples), compute_uv=False))
    return int((sizes > rounding * sum(counts(comm, len(samples))) ** 0.5).sum())
