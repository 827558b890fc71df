"""CoSaMP: compressive sampling matching pursuit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.exchange import exchange_chunk
from roadict.coders.scaling import ScaledProblem, encode_chunks


def cosamp(problem: ScaledProblem, sparsity: NDArray[np.integer], n_jobs: int | None, sparse: bool = False) -> Any:
    """Add to the support the 2 * sparsity atoms that correlate best with the residual, fit, retain the largest codes.

    Stops when the residual no longer decreases, and refits on the last support. Atoms are compared at unit norm.
    ``sparsity`` should be at most about a third of the observed features.

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
    D. Needell and J. Tropp, "CoSaMP: iterative signal recovery from incomplete and inaccurate samples", 2009.
    """
    return encode_chunks(exchange_chunk, problem, sparsity, 2, False, sparse=sparse, n_jobs=n_jobs)[0]
