"""Subspace pursuit: a support of fixed size, exchanged as a whole."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.exchange import exchange_chunk
from roadict.coders.scaling import Scaled, code_chunks

Array = NDArray[np.floating]


def subspace_pursuit(problem: Scaled, sparsity: NDArray[np.integer], n_jobs: int | None) -> Array:
    """Join the support with as many atoms that correlate best with the residual, fit, keep the largest, fit again.

    Ends when the residual no longer falls. Atoms compete with unit norm.

    Parameters
    ----------
    problem : Scaled
    sparsity : int array of shape (n_samples,)
        Number of atoms.
    n_jobs : int or None

    Returns
    -------
    array of shape (n_samples, n_components)

    References
    ----------
    W. Dai and O. Milenkovic, "Subspace pursuit for compressive sensing signal reconstruction", 2009.
    """
    return code_chunks(exchange_chunk, problem, sparsity, 1, True, n_jobs=n_jobs)[0]
