"""Starting points: a dictionary and codes."""

import numpy as np
from numpy.typing import NDArray

from roadict.constraints import FREE, Constraints
from roadict.linalg import unit_rows
from roadict.ranks.collectives import broadcast, gathered, offset, picked
from roadict.ranks.comm import SERIAL, Comm

Array = NDArray[np.floating]

SAME_DIRECTION = 0.999
"""Cosine above which two samples count as parallel."""
BATCH = 256
"""Samples examined at a time."""
RIDGE = 0.1
"""Ridge of the starting codes. Least squares on nearly dependent atoms gives codes hundreds of times too large, from
which no run recovers."""


def starting_point(
    data: Array,
    n_components: int,
    dictionary: Array | None,
    codes: Array | None,
    rng: np.random.Generator,
    comm: Comm = SERIAL,
    constraints: Constraints = FREE,
    fixed: Array | None = None,
) -> tuple[Array, Array]:
    """Complete a start of which dictionary or codes may be given.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        Zero at unobserved entries.
    n_components : int
    dictionary : array of shape (n_components, n_features), or None
        None: fitted to the codes, or drawn from the samples.
    codes : array of shape (n_samples, n_components), or None
        None: least squares with a slight ridge.
    rng : Generator
        In the same state on every rank.
    comm : Comm
        The ranks, each with its own samples and codes; the dictionary is the same on all.
    constraints : Constraints
        Which what is given satisfies.
    fixed : array of shape (n_fixed, n_features), or None
        The known atoms, of unit norm, which take the first places.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    """
    if dictionary is None:
        dictionary = draw_samples(data, n_components, rng, comm, constraints, fixed)
        if codes is not None:
            fitted = ridge_regression(codes, data, comm)
            fitted = np.maximum(fitted, 0) if constraints.positive_dict else fitted
            used = np.linalg.norm(fitted, axis=1) > 0
            dictionary[used] = fitted[used]
    dictionary, lengths = unit_rows(broadcast(comm, dictionary))  # rounding differs between machines
    if fixed is not None:
        dictionary[: len(fixed)], lengths[: len(fixed)] = fixed, 1
    codes = ridge_regression(dictionary.T, data.T).T if codes is None else codes * lengths
    if constraints.positive_code:
        codes = np.maximum(codes, 0)
    return dictionary.astype(data.dtype), codes.astype(data.dtype)


def draw_samples(
    data: Array,
    n_components: int,
    rng: np.random.Generator,
    comm: Comm = SERIAL,
    constraints: Constraints = FREE,
    fixed: Array | None = None,
) -> Array:
    """Draw samples of distinct directions after the known atoms, completed by Gaussian directions if there are too few.

    Two equal atoms would stay equal for the whole run. With nonnegative atoms the nearest such direction is taken.
    """
    first = offset(comm, len(data))
    order = rng.permutation(np.flatnonzero(gathered(comm, np.any(data != 0, axis=1))))
    atoms = np.empty((n_components, data.shape[1]))
    count = 0 if fixed is None else len(fixed)
    if fixed is not None:
        atoms[:count] = fixed
    for start in range(0, len(order), BATCH):
        drawn = constraints.nearest_directions(picked(comm, data, first, order[start : start + BATCH]))
        for sample in unit_rows(drawn[drawn.any(axis=1)])[0]:
            if count < n_components and np.all(constraints.likeness(atoms[:count] @ sample) < SAME_DIRECTION):
                atoms[count] = sample
                count += 1
        if count == n_components:
            break
    rest = rng.standard_normal((n_components - count, data.shape[1]))
    atoms[count:] = unit_rows(np.abs(rest) if constraints.positive_dict else rest)[0]
    return atoms


def ridge_regression(inputs: Array, targets: Array, comm: Comm = SERIAL) -> Array:
    """Minimise ``‖inputs @ w - targets‖² + RIDGE · s ‖w‖²``, s the mean squared norm of the columns of inputs.

    The rows are distributed over the ranks.
    """
    gram = comm.sum(inputs.T.astype(np.float64) @ inputs)
    mean = float(np.trace(gram)) / len(gram)
    if mean == 0:
        return np.zeros((inputs.shape[1], targets.shape[1]))
    gram[np.diag_indices_from(gram)] += RIDGE * mean
    solution: Array = np.linalg.solve(gram, comm.sum(inputs.T.astype(np.float64) @ targets))
    return solution
