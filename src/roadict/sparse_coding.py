"""Sparse codes of data in a given dictionary, by scikit-learn's coders."""

import math
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning

Array = NDArray[np.floating]

ALGORITHMS = {"lasso": "lasso_cd", "omp": "omp", "threshold": "threshold"}
"""Our names, and scikit-learn's."""
MAX_ITER = 10_000


def encode(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    *,
    algorithm: str,
    alpha: float,
    n_nonzero_coefs: int | None,
) -> Array:
    """Code samples, by their observed entries where some are missing.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    observed : bool array like data, or None
    dictionary : array of shape (n_components, n_features)
    algorithm : {"lasso", "omp", "threshold"}
    alpha : float
        Weight of Σ|codes| against half the squared error; the threshold of "threshold".
    n_nonzero_coefs : int or None
        Coefficients per sample for "omp"; None: a tenth of the features.

    Returns
    -------
    array of shape (n_samples, n_components)
    """
    arguments = (algorithm, alpha, n_nonzero_coefs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if observed is None:
            codes = _encode(data, dictionary, *arguments)
        else:
            codes = np.empty((len(data), len(dictionary)), data.dtype)
            patterns, which = np.unique(observed, axis=0, return_inverse=True)
            for i, pattern in enumerate(patterns):
                rows = np.flatnonzero(which == i)
                codes[rows] = _encode(data[np.ix_(rows, pattern)], dictionary[:, pattern], *arguments)
    _tell(caught, len(data))
    return codes


def _tell(caught: list[warnings.WarningMessage], n_samples: int) -> None:
    """Pass warnings on, those of single samples that were coded too roughly as one."""
    rough = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if rough:
        text = (
            f"{rough} of {n_samples} samples were not coded to scikit-learn's tolerance; pass a larger transform_alpha"
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=4)
    for text in {str(warning.message) for warning in caught if not issubclass(warning.category, ConvergenceWarning)}:
        warnings.warn(text, stacklevel=4)


def _encode(data: Array, dictionary: Array, algorithm: str, alpha: float, n_nonzero_coefs: int | None) -> Array:
    # Exact powers of two: scikit-learn's coders compare with absolute thresholds, or overflow, far from one.
    largest = np.abs(data).max(axis=1 if algorithm == "omp" else None, keepdims=True)
    exponents = np.frexp(largest)[1]
    if algorithm == "omp":
        n_features = data.shape[1]
        asked = max(1, n_features // 10) if n_nonzero_coefs is None else n_nonzero_coefs
        n_nonzero_coefs = min(asked, n_features, len(dictionary))
    encoded: Array = sparse_encode(
        np.ldexp(data.astype(np.float64), -exponents),
        dictionary.astype(np.float64),  # in float32 the duality gap does not reach scikit-learn's tolerance
        algorithm=ALGORITHMS[algorithm],
        alpha=None if algorithm == "omp" else math.ldexp(alpha, -int(exponents.item())),
        n_nonzero_coefs=n_nonzero_coefs if algorithm == "omp" else None,
        max_iter=MAX_ITER,
    )
    return np.ldexp(encoded, exponents).astype(data.dtype)
