"""From a run that has nearly settled to an exact fit: atoms by least squares on clean supports, then basis pursuit."""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from roadict.coders.polish import polish_codes
from roadict.coders.registry import encode
from roadict.linalg import solve_ridge, unit_rows
from roadict.ranks.collectives import broadcast, counts, joint_triangular_factor, largest, norm, quantile, total
from roadict.ranks.comm import SERIAL, Comm

Array = NDArray[np.floating]

MAX_ROUNDS = 100
SETTLED = 1e-10
"""Root-mean-square change of the atoms at which the rounds end."""
LEAST_MISFIT = 1e-3
"""Relative error that codes to start from are taken to have at least."""
SMALLEST_CUT, LARGEST_CUT = 1e-8, 0.03
"""Bounds on what counts as clutter, relative to a sample; of float32 data, whose rounding is clutter, more."""
CUT_PER_CHANGE = 30.0
"""Clutter that atoms off by a given distance are taken to cause, over that distance."""
CLEAN_SUPPORT = 0.75
"""Size of a support, over the rank of the data, up to which it can be clean."""
FEWEST_CLEAN = 0.15
"""Share of clean samples below which there is nothing to learn from."""
TRIAL_ROUNDS, HOPELESS = 8, 0.7
"""Rounds after which, and share of the use of some atom in clean samples below which, no exact fit is near."""
STEADY = 1e-3
"""Root-mean-square change of the atoms from which on rounds are extrapolated, each from up to MEMORY before it."""
MEMORY = 3
MOSTLY, EVERYWHERE = 0.95, 0.85
"""Share of samples that must get fewer atoms than the rank; and of the use of every atom, that in such samples."""
OVERDETERMINED = 2.0
"""Equations that the samples with few atoms must satisfy, over the degrees of freedom of all atoms."""
ROUNDING = {4: 1e-5, 8: 1e-9}
"""Share of a sample below which codes are zero and misfits are rounding, by size of a number of the data."""
TOGETHER, ALIKE, SAME_RATIO = 0.5, 0.3, 1e-3
"""An atom is mixed with another if more than TOGETHER of its samples use both, and more than ALIKE of its samples in
the same ratio, to SAME_RATIO."""
UNMIXINGS = 5
ANCHOR = 1e-6
"""Weight of the old atoms, relative to the mean square of a code."""


class ExactFit(NamedTuple):
    """Atoms of unit norm and codes that reproduce the data to rounding."""

    dictionary: Array
    codes: Array


def find_exact_fit(
    data: Array, dictionary: Array, codes: Array, n_jobs: int | None, comm: Comm = SERIAL
) -> ExactFit | None:
    """Look for atoms near the given ones in which most samples are an exact combination of few.

    Few: fewer than the rank of the data. For atoms that are slightly off no sample is one, so that this happens to most
    of them by no accident; where it does not, None is returned. Atoms that a multiple of another was added to still
    allow exact fits, with one atom more; they give themselves away by that atom, which always comes along in the same
    ratio, and are set right.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
    n_jobs : int or None
    comm : Comm
        The ranks, each with its samples and their codes; the codes returned are those of its samples.
    """
    used = np.any(data != 0, axis=1)
    samples, norms = unit_rows(data[used])
    codes = codes[used] / norms[:, None]
    rounding = ROUNDING[data.itemsize]
    sizes = broadcast(comm, np.linalg.svd(joint_triangular_factor(comm, samples), compute_uv=False))
    rank = int((sizes > rounding * sum(counts(comm, len(samples))) ** 0.5).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(UNMIXINGS):
            atoms = _settle_atoms(samples, norms, dictionary, codes, rank, rounding, n_jobs, comm)
            if atoms is None:
                return None
            codes = encode(samples, None, atoms, algorithm="basis-pursuit", n_jobs=n_jobs)
            codes[np.abs(codes) < rounding] = 0
            misfits = np.linalg.norm(samples - codes @ atoms, axis=1)
            if largest(comm, misfits) > rank * rounding or not _is_sparse(codes, rank, comm):
                return None
            dictionary = unmixed(atoms, codes, comm)
            if dictionary is atoms:
                exact = np.zeros((len(data), len(atoms)))
                exact[used] = codes * norms[:, None]
                return ExactFit(atoms, exact)
            codes = encode(samples, None, dictionary, algorithm="basis-pursuit", n_jobs=n_jobs)
    return None


def _is_sparse(codes: Array, rank: int, comm: Comm) -> bool:
    """Whether most samples, and among those that use any one atom most of that use, get along with few atoms.

    And whether there are enough of them: a sample of few atoms is one equation for every atom that it does without,
    and a dictionary has rank - 1 degrees of freedom per atom to meet such equations by chance.
    """
    atoms = np.count_nonzero(codes, axis=1)
    few = atoms < rank
    everywhere = _least_use(codes, few, comm) >= EVERYWHERE
    equations = total(comm, float((rank - atoms[few]).sum()))
    enough = equations >= OVERDETERMINED * codes.shape[1] * (rank - 1)
    return bool(_share(comm, few) >= MOSTLY and everywhere and enough)


def _share(comm: Comm, chosen: NDArray[np.bool_]) -> float:
    """Share of all samples that are chosen."""
    return total(comm, float(chosen.sum())) / sum(counts(comm, len(chosen)))


def _least_use(codes: Array, chosen: NDArray[np.bool_], comm: Comm) -> float:
    """Share of the use of an atom that is in chosen samples, of the atom for which it is least."""
    use, in_chosen = comm.sum(np.array([np.abs(codes).sum(axis=0), np.abs(codes[chosen]).sum(axis=0)]))
    return float(np.min(in_chosen[use > 0] / use[use > 0], initial=1.0))


def _settle_atoms(
    samples: Array,
    norms: Array,
    dictionary: Array,
    codes: Array,
    rank: int,
    rounding: float,
    n_jobs: int | None,
    comm: Comm,
) -> Array | None:
    """Rounds of three steps, until atoms no longer change; None where too few samples get clean supports.

    Lasso codes, with a weight as large as the clutter that wrong atoms cause; least squares on their supports; atoms
    by least squares from the samples that are thus well explained. As atoms settle, the clutter goes. Supports that no
    longer change leave a nearly linear map, so that rounds can be extrapolated.
    """
    misfit = norm(comm, samples - codes @ dictionary) / sum(counts(comm, len(samples))) ** 0.5
    cut, last = min(max(misfit, LEAST_MISFIT), LARGEST_CUT), np.inf
    rounds: list[tuple[Array, Array]] = []
    for index in range(MAX_ROUNDS):
        codes = encode(samples, None, dictionary, algorithm="lasso", alpha=cut, start=codes, n_jobs=n_jobs)
        fitted = polish_codes(samples, None, dictionary, codes, negligible=cut / 3, n_jobs=n_jobs)
        clean = np.linalg.norm(samples - fitted @ dictionary, axis=1) < 3 * cut
        clean &= np.count_nonzero(fitted, axis=1) <= CLEAN_SUPPORT * rank
        if _share(comm, clean) < FEWEST_CLEAN:
            return None
        if index >= TRIAL_ROUNDS and _least_use(fitted, clean, comm) < HOPELESS:
            return None
        weights = norms[clean, None]
        before, dictionary = dictionary, _fit_atoms(weights * samples[clean], weights * fitted[clean], dictionary, comm)
        change = float(np.linalg.norm(dictionary - before)) / len(dictionary) ** 0.5
        if change < SETTLED:
            return dictionary
        rounds = [*rounds[-MEMORY:], (before, dictionary)] if change < min(STEADY, last) else []
        if rounds:
            dictionary = _extrapolated(rounds)
        last = change
        cut = max(min(cut, max(cut / 2, CUT_PER_CHANGE * change)), SMALLEST_CUT, rounding)
    return None


def _fit_atoms(data: Array, codes: Array, dictionary: Array, comm: Comm) -> Array:
    """Least squares, with a slight pull to the old atoms for those that few codes use; of unit norm.

    The first rank's: what becomes of the rounds depends on them, and unlike machines differ in the last bit.
    """
    gram, cross = comm.sum(codes.T @ codes), comm.sum(codes.T @ data)
    return broadcast(comm, unit_rows(solve_ridge(gram, cross, ANCHOR, dictionary))[0])


def _extrapolated(rounds: list[tuple[Array, Array]]) -> Array:
    """Atoms at which rounds would end if the map from atoms to atoms, known by some rounds, were linear.

    Anderson's mixing: the combination of rounds, of weights that sum to one, that changes the atoms least.
    """
    points, images = (np.array([each.ravel() for each in atoms]) for atoms in zip(*rounds, strict=True))
    changes = images - points
    weights = np.linalg.lstsq(np.diff(changes, axis=0).T, changes[-1], rcond=1e-6)[0]
    return unit_rows((images[-1] - weights @ np.diff(images, axis=0)).reshape(rounds[-1][0].shape))[0]


def _commonest(ratios: Array, comm: Comm) -> tuple[float, float]:
    """Of three quartiles that with the most values alike, and their number: more than ALIKE of all meet a quartile."""
    quartiles = [quantile(comm, ratios, share) for share in (0.25, 0.5, 0.75)]
    numbers = [total(comm, float(np.sum(np.abs(ratios - each) <= SAME_RATIO * abs(each)))) for each in quartiles]
    best = int(np.argmax(numbers))
    return quartiles[best], numbers[best]


def unmixed(dictionary: Array, codes: Array, comm: Comm = SERIAL) -> Array:
    """Add to every atom that is mixed with another what always comes along of that one; the same array if none is.

    Examples
    --------
    >>> codes = np.array([[1.0, 0.5], [2.0, 1.0], [-1.0, -0.5], [0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.5]])
    >>> unmixed(np.array([[1.0, 0.0], [0.0, 1.0]]), codes).round(3)
    array([[0.894, 0.447],
           [0.   , 1.   ]])
    """
    used = codes != 0
    uses = comm.sum(used.sum(axis=0))
    together = comm.sum(used.T.astype(float) @ used)
    np.fill_diagonal(together, 0)
    atoms = dictionary.copy()
    mixed: set[int] = set()
    for k, j in np.argwhere(together > TOGETHER * np.maximum(uses, 1)[:, None]):
        if j in mixed:  # of a pair that is mixed both ways only one may change
            continue
        both = used[:, k] & used[:, j]
        ratio, number = _commonest(codes[both, j] / codes[both, k], comm)
        if number > ALIKE * uses[k]:
            atoms[k] += ratio * dictionary[j]
            mixed.add(k)
    return unit_rows(atoms)[0] if mixed else dictionary
