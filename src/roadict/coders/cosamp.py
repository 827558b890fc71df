"""CoSaMP: compressive sampling matching pursuit."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.exchange import exchange_chunk
from roadict.coders.scaling import Scaled, code_chunks

Array = NDArray[np.floating]


def cosamp(problem: Scaled, sparsity: NDArray[np.integer], n_jobs: int | None) -> Array:
    """Join the support with twice as many atoms that correlate best with the residual, fit, keep the largest.

    Ends when the residual no longer falls; the values on the last support are then fitted once more. Atoms compete
    with unit norm. Needs about three times as many (observed) features as atoms.

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
    D. Needell and J. Tropp, "CoSaMP: iterative signal recovery from incomplete and inaccurate samples", 2009.
    """
    return code_chunks(exchange_chunk, problem, sparsity, 2, False, n_jobs=n_jobs)[0]
