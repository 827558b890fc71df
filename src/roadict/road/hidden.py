"""Hidden entries: which entries to hide, and how well atoms predict them from the entries that are left."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.blas import one_blas_thread
from roadict.coders.polish import polish_codes
from roadict.coders.registry import encode
from roadict.ranks.collectives import counts, norm, total
from roadict.ranks.comm import SERIAL, Comm
from roadict.road.subset import mixed, sample_digests

Array = NDArray[np.floating]
Mask = NDArray[np.bool_]

SHARE = 0.06
"""Share of a sample's entries that is hidden, at least one entry."""
RELAXATION = 0.5
"""Weight of least squares on the support in a prediction; the rest is the Lasso's. The Lasso alone shrinks, so that too
small a weight looks best; least squares alone adapts to noise, and is not used where it more than doubles Σ|codes|."""
WEIGHT_STEP = 2 ** (-1 / 3)
"""Ratio of successive Lasso weights."""
LARGEST_WEIGHT, N_WEIGHTS = 0.6, 30
"""The first weight, relative to the root-mean-square norm of the samples, and the number of weights."""
HOPELESS = 1.15
"""Hidden error, relative to the best so far, at which smaller weights are no longer tried..."""
PATIENCE = 4
"""... if the best is at least that many weights back."""


def hidden_entries(data: Array, observed: Mask | None, rng: np.random.Generator) -> Mask:
    """Choose the entries to hide in every sample.

    The choice depends on the sample's direction and the generator only: copies of a sample hide the same entries, and
    neither the order of the samples nor their distribution over ranks matters.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        Zero at unobserved entries.
    observed : bool array like data, or None
    rng : Generator
        In the same state on every rank.

    Returns
    -------
    bool array like data
        Observed entries to hide; never all of a sample's.

    Examples
    --------
    >>> data = np.vstack([np.eye(4), np.eye(4)[::-1]])
    >>> hidden = hidden_entries(data, None, np.random.default_rng(0))
    >>> hidden.sum(axis=1).tolist(), bool((hidden[:4] == hidden[:3:-1]).all())
    ([1, 1, 1, 1, 1, 1, 1, 1], True)
    """
    seen = np.ones(data.shape, bool) if observed is None else observed
    digests = sample_digests(data, observed, rng)
    keys = rng.integers(0, 2**64, size=data.shape[1], dtype=np.uint64)
    order = np.argsort(np.where(seen, mixed(digests[:, None] + keys) >> np.uint64(1), np.uint64(2**63)), axis=1)
    n_seen = seen.sum(axis=1)
    n_hidden = np.minimum(np.maximum(1, np.rint(SHARE * n_seen)), n_seen - 1)
    hidden = np.zeros(data.shape, bool)
    np.put_along_axis(hidden, order, np.arange(data.shape[1]) < n_hidden[:, None], axis=1)
    return hidden


@dataclass(frozen=True)
class Curve:
    """Prediction of hidden entries along a path of Lasso weights, largest first; atoms are fixed.

    Attributes
    ----------
    weights : array of shape (n_weights,)
    errors : array of shape (n_weights,)
        Relative data error of the Lasso codes over the entries that were not hidden. Here and below, samples count by
        their weights.
    nonzeros : array of shape (n_weights,)
        Mean number of nonzero codes per sample.
    misses : array of shape (n_weights, n_samples)
        Sum of the absolute prediction errors of each of this rank's samples over its hidden entries, times its own
        weight. Not squared: in a
        few samples the entries that are left do not determine the codes, and squares would measure these alone.
    scale : float
        Sum of the absolute hidden entries.
    """

    weights: Array
    errors: Array
    nonzeros: Array
    misses: Array
    scale: float


@one_blas_thread()
def hidden_curve(
    data: Array,
    seen: Mask,
    hidden: Mask,
    dictionary: Array,
    typical: float,
    comm: Comm = SERIAL,
    n_jobs: int | None = None,
    sample_weight: Array | None = None,
    positive: bool = False,
) -> Curve:
    """Code the seen entries along a path of weights, and predict the hidden ones.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    seen, hidden : bool arrays like data
    dictionary : array of shape (n_components, n_features)
    typical : float
        Root-mean-square norm of the samples.
    comm : Comm
    n_jobs : int or None
    sample_weight : array of shape (n_samples,), or None
        How much each sample counts; None: all 1.
    positive : bool
        Whether codes must not be negative.
    """
    each = np.ones(len(data), data.dtype) if sample_weight is None else sample_weight
    roots = np.sqrt(each).astype(data.dtype)[:, None]
    visible = np.where(seen, data, 0)
    size, n_samples = norm(comm, visible * roots), total(comm, float(each.sum(dtype=np.float64)))
    weights = LARGEST_WEIGHT * typical * WEIGHT_STEP ** np.arange(N_WEIGHTS)
    errors, nonzeros, misses, totals = [], [], [], []
    codes = None
    for weight in weights:
        codes = encode(
            visible,
            seen,
            dictionary,
            algorithm="lasso",
            alpha=float(weight),
            start=codes,
            positive=positive,
            n_jobs=n_jobs,
            warn=False,
        )
        refit = polish_codes(visible, seen, dictionary, codes, negligible=0.0, positive=positive, n_jobs=n_jobs)
        predicted = (codes + RELAXATION * (refit - codes)) @ dictionary
        errors.append(norm(comm, (visible - codes @ dictionary) * seen * roots) / size)
        nonzeros.append(total(comm, float(((codes != 0).sum(axis=1) * each).sum())) / n_samples)
        misses.append((np.abs(data - predicted) * hidden).sum(axis=1) * each)
        totals.append(total(comm, float(misses[-1].sum())))
        best = int(np.argmin(totals))
        if len(totals) > best + PATIENCE and totals[-1] > HOPELESS * totals[best]:
            break
    scale = total(comm, float((np.abs(data) * hidden * each[:, None]).sum()))
    return Curve(weights[: len(totals)], np.array(errors), np.array(nonzeros), np.array(misses), scale)


class Excess(NamedTuple):
    """Sums of misses over the smallest one, paired by sample.

    Attributes
    ----------
    sums : array of shape (n_rows,)
    over, standard_error : arrays of shape (n_rows,)
        Difference of every sum to the smallest one, and its standard error.
    """

    sums: Array
    over: Array
    standard_error: Array

    @property
    def first_within(self) -> int:
        """Index of the first row, the simplest, whose excess is within one standard error."""
        return int(np.flatnonzero(self.over <= self.standard_error)[0])


def excess(misses: Array, comm: Comm = SERIAL, sample_weight: Array | None = None) -> Excess:
    """Compare the rows of misses, one column per sample and times its weight, with the one of the smallest sum.

    A sample is one observation however large its weight: all weights times ten give the same relative standard error.

    Examples
    --------
    >>> excess(np.array([[3.0, 4.0], [1.0, 2.1], [1.5, 1.5]])).first_within
    1
    """
    sums = np.array([total(comm, float(row.sum())) for row in misses])
    best = int(np.argmin(sums))
    differences = misses - misses[best]
    squares = np.array([total(comm, float((row**2).sum())) for row in differences])
    over = sums - sums[best]
    if sample_weight is None:
        n_samples = sum(counts(comm, misses.shape[1]))
        return Excess(sums, over, np.sqrt(np.maximum(squares - over**2 / n_samples, 0.0)))
    mean = over / total(comm, float(sample_weight.sum()))  # of a sample of weight 1
    mixed = np.array([total(comm, float((row * sample_weight).sum())) for row in differences])
    variances = squares - 2 * mean * mixed + mean**2 * total(comm, float((sample_weight**2).sum()))
    return Excess(sums, over, np.sqrt(np.maximum(variances, 0.0)))
