"""Soft thresholding of correlations: one pass, no fit."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import absolute_weight, correlate, split_features
from roadict.coders.scaling import ScaledProblem, encode_chunks
from roadict.kernels import kernel

Array = NDArray[np.floating]


@kernel
def _threshold_chunk(rows, columns, gram, observed, samples, codes, alpha, positive):
    for n in range(len(samples)):
        seen, _ = split_features(observed, n, rows.shape[1])
        correlate(columns, seen, samples[n], codes[n])
        if positive:
            codes[n] = np.maximum(codes[n], 0.0)
        weight = absolute_weight(alpha[n], np.max(np.abs(codes[n])))
        for k in range(len(rows)):
            value = codes[n, k]
            codes[n, k] = np.sign(value) * (abs(value) - weight) if abs(value) > weight else 0.0
    return 0


def threshold(
    problem: ScaledProblem, alpha: Array, n_jobs: int | None, sparse: bool = False, positive: bool = False
) -> Any:
    """Soft-threshold the inner products of every sample with the atoms: the Lasso codes of orthonormal atoms.

    Parameters
    ----------
    problem : ScaledProblem
    alpha : array of shape (n_samples,)
        Threshold in the units of the scaled problem; negative: minus the share of the one that makes all codes zero.
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.
    positive : bool
        Whether negative inner products become zero.

    Returns
    -------
    array or CSR array of shape (n_samples, n_components)
    """
    # Unlike fitted codes, inner products are proportional to the atoms.
    problem = replace(problem, atom_exponents=-problem.atom_exponents)
    return encode_chunks(_threshold_chunk, problem, alpha, positive, sparse=sparse, n_jobs=n_jobs)[0]
