"""Rounds of sparse coding and least squares that take nearly right atoms to right ones."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.polish import polish_codes
from roadict.coders.registry import encode
from roadict.constraints import FREE, Constraints
from roadict.exact_finish.acceptance import least_share_of_use, share_of_samples
from roadict.exact_finish.thresholds import Thresholds
from roadict.linalg import solve_ridge
from roadict.ranks.collectives import broadcast, counts, norm
from roadict.ranks.comm import Comm
from roadict.runs.signals import stop_requested

Array = NDArray[np.floating]


def refine_atoms(
    samples: Array,
    norms: Array,
    dictionary: Array,
    codes: Array,
    *,
    rank: int,
    rounding: float,
    thresholds: Thresholds,
    n_jobs: int | None,
    comm: Comm,
    constraints: Constraints = FREE,
) -> Array | None:
    """Repeat three steps until the atoms no longer change; None where too few samples are clean, or after Ctrl-C.

    Lasso codes; least squares on their supports; atoms by least squares from the clean samples, those that few atoms
    thus reproduce. The Lasso weight is as large as the errors that wrong atoms cause, and falls as the atoms change
    less. Supports that no longer change leave a nearly linear map, so that rounds can be accelerated.

    Parameters
    ----------
    samples : array of shape (n_samples, n_features)
        Of unit norm.
    norms : array of shape (n_samples,)
        Their norms before: long samples count more.
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
    rank : int
        Of the samples.
    rounding : float
    thresholds : Thresholds
    n_jobs : int or None
    comm : Comm
    constraints : Constraints
    """
    positive = constraints.positive_code
    error = norm(comm, samples - codes @ dictionary) / sum(counts(comm, len(samples))) ** 0.5
    alpha, last_change = min(max(error, thresholds.min_first_alpha), thresholds.max_alpha), np.inf
    rounds: list[tuple[Array, Array]] = []
    for index in range(thresholds.max_rounds):
        if stop_requested():
            return None
        codes = encode(
            samples, None, dictionary, algorithm="lasso", alpha=alpha, start=codes, positive=positive, n_jobs=n_jobs
        )
        negligible = alpha / thresholds.alpha_per_coefficient
        fitted = polish_codes(samples, None, dictionary, codes, negligible=negligible, positive=positive, n_jobs=n_jobs)
        clean = np.linalg.norm(samples - fitted @ dictionary, axis=1) < thresholds.clean_error * alpha
        clean &= np.count_nonzero(fitted, axis=1) <= thresholds.clean_support * rank
        if share_of_samples(clean, comm) < thresholds.min_clean_samples:
            return None
        if index >= thresholds.clean_use_from and least_share_of_use(fitted, clean, comm) < thresholds.min_clean_use:
            return None
        weights = norms[clean, None]
        before = dictionary
        targets, inputs = weights * samples[clean], weights * fitted[clean]
        dictionary = _fit_atoms(targets, inputs, before, thresholds.ridge, comm, constraints)
        change = float(np.linalg.norm(dictionary - before)) / len(dictionary) ** 0.5
        if change < thresholds.max_change:
            return dictionary
        if change < min(thresholds.accelerate_below, last_change):
            rounds = [*rounds[-thresholds.memory :], (before, dictionary)]
            dictionary = constraints.nearest_atoms(anderson_step(rounds, thresholds.rcond), dictionary)
        else:
            rounds = []
        last_change = change
        next_alpha = min(alpha, max(thresholds.alpha_decay * alpha, thresholds.alpha_per_change * change))
        alpha = max(next_alpha, thresholds.min_alpha, rounding)
    return None


def _fit_atoms(
    data: Array, codes: Array, dictionary: Array, ridge: float, comm: Comm, constraints: Constraints = FREE
) -> Array:
    """Least squares, with a slight pull to the old atoms for those that few codes use; of unit norm.

    Known atoms stay, and the others fit what these leave. Of nonnegative atoms negative entries become zero: at a
    solution there are none. The first rank's: later rounds depend on them, and different machines differ in the last
    bit.
    """
    known, atoms = constraints.n_fixed, dictionary.copy()
    if known == len(atoms):
        return dictionary
    rest = data - codes[:, :known] @ dictionary[:known]
    gram, cross = comm.sum(codes[:, known:].T @ codes[:, known:]), comm.sum(codes[:, known:].T @ rest)
    atoms[known:] = solve_ridge(gram, cross, ridge, dictionary[known:])
    return broadcast(comm, constraints.nearest_atoms(atoms, dictionary))


def anderson_step(rounds: list[tuple[Array, Array]], rcond: float) -> Array:
    """Anderson acceleration: the fixed point of the map from atoms to atoms, were it linear, as far as rounds show it.

    The combination of rounds (atoms before, atoms after), with weights that sum to one, that changes the atoms least.
    """
    before, after = (np.array([atoms.ravel() for atoms in side]) for side in zip(*rounds, strict=True))
    changes = after - before
    weights = np.linalg.lstsq(np.diff(changes, axis=0).T, changes[-1], rcond=rcond)[0]
    combined: Array = (after[-1] - weights @ np.diff(after, axis=0)).reshape(rounds[-1][0].shape)
    return combined
