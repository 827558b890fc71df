"""Atoms that a multiple of another atom was added to, set right."""

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import FREE, Constraints
from roadict.exact_finish.thresholds import DEFAULTS, Thresholds
from roadict.ranks.collectives import quantile, total
from roadict.ranks.comm import SERIAL, Comm

Array = NDArray[np.floating]


def unmix(
    dictionary: Array,
    codes: Array,
    thresholds: Thresholds = DEFAULTS,
    comm: Comm = SERIAL,
    constraints: Constraints = FREE,
) -> Array:
    """Add to each mixed atom the multiple of the atom that accompanies it; the same array if no atom is mixed.

    Mixed: many of its samples use the same other atom too, in the same ratio. Known atoms stay.

    Examples
    --------
    >>> codes = np.array([[1.0, 0.5], [2.0, 1.0], [-1.0, -0.5], [0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.5]])
    >>> unmix(np.array([[1.0, 0.0], [0.0, 1.0]]), codes).round(3)
    array([[0.894, 0.447],
           [0.   , 1.   ]])
    """
    used = codes != 0
    uses = comm.sum(used.sum(axis=0))
    common = comm.sum(used.T.astype(float) @ used)
    np.fill_diagonal(common, 0)
    atoms = dictionary.copy()
    mixed: set[int] = set()
    for k, j in np.argwhere(common > thresholds.min_common_use * np.maximum(uses, 1)[:, None]):
        if j in mixed or k < constraints.n_fixed:  # of a pair that is mixed both ways only one may change
            continue
        both = used[:, k] & used[:, j]
        ratio, number = _most_frequent(codes[both, j] / codes[both, k], thresholds.ratio_tolerance, comm)
        if number > thresholds.min_same_ratio * uses[k]:
            atoms[k] += ratio * dictionary[j]
            mixed.add(k)
    return constraints.nearest_atoms(atoms, dictionary) if mixed else dictionary


def _most_frequent(ratios: Array, tolerance: float, comm: Comm) -> tuple[float, float]:
    """Of the three quartiles the most frequent, and its number: a ratio of more than a quarter meets a quartile."""
    quartiles = [quantile(comm, ratios, share) for share in (0.25, 0.5, 0.75)]
    numbers = [total(comm, float(np.sum(np.abs(ratios - each) <= tolerance * abs(each)))) for each in quartiles]
    best = int(np.argmax(numbers))
    return quartiles[best], numbers[best]
