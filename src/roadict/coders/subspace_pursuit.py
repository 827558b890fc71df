"""Subspace pursuit: iterated exchange of a support of fixed size."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.exchange import exchange_chunk
from roadict.coders.scaling import ScaledProblem, encode_chunks


def subspace_pursuit(
    problem: ScaledProblem, sparsity: NDArray[np.integer], n_jobs: int | None, sparse: bool = False
) -> Any:
    """Add to the support the ``sparsity`` atoms that correlate best with the residual, fit, retain the largest, refit.

    Stops when the residual no longer decreases. Atoms are compared at unit norm.

    Parameters
    ----------
    problem : ScaledProblem
    sparsity : int array of shape (n_samples,)
        Number of atoms.
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.

    Returns
    -------
    array or CSR array of shape (n_samples, n_components)

    References
    ----------
    W. Dai and O. Milenkovic, "Subspace pursuit for compressive sensing signal reconstruction", 2009.
    """
    return encode_chunks(exchange_chunk, problem, sparsity, 1, True, sparse=sparse, n_jobs=n_jobs)[0]
