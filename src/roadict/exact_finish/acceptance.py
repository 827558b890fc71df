"""Whether codes are too sparse for chance."""

import numpy as np
from numpy.typing import NDArray

from roadict.exact_finish.thresholds import Thresholds
from roadict.ranks.collectives import counts, total
from roadict.ranks.comm import Comm

Array = NDArray[np.floating]


def is_sparse(codes: Array, rank: int, thresholds: Thresholds, comm: Comm) -> bool:
    """Whether most samples, and those with most of the use of each atom, need fewer atoms than the rank of the data.

    And whether there are enough of them: a sample gives one equation for each atom below the rank that it does
    without, and each atom has rank - 1 degrees of freedom to satisfy such equations by chance.
    """
    sizes = np.count_nonzero(codes, axis=1)
    sparse = sizes < rank
    equations = total(comm, float((rank - sizes[sparse]).sum()))
    freedom = codes.shape[1] * (rank - 1)
    return bool(
        share_of_samples(sparse, comm) >= thresholds.min_sparse_samples
        and least_share_of_use(codes, sparse, comm) >= thresholds.min_sparse_use
        and equations >= thresholds.min_equations * freedom
    )


def share_of_samples(chosen: NDArray[np.bool_], comm: Comm) -> float:
    """Share of all samples that are chosen."""
    return total(comm, float(chosen.sum())) / sum(counts(comm, len(chosen)))


def least_share_of_use(codes: Array, chosen: NDArray[np.bool_], comm: Comm) -> float:
    """Share of an atom's use, Σ|codes|, that is in chosen samples; of the atom for which it is smallest."""
    use, in_chosen = comm.sum(np.array([np.abs(codes).sum(axis=0), np.abs(codes[chosen]).sum(axis=0)]))
    return float(np.min(in_chosen[use > 0] / use[use > 0], initial=1.0))
