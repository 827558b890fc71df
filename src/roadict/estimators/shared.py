"""Data validation and decoding, shared by the estimators."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, validate_data

from roadict import checks
from roadict.tensors import is_sparse, plain
from roadict.wording import plural

Array = NDArray[np.floating]


def validate(
    estimator: Any, X: ArrayLike, *, reset: bool, min_samples: int, first_row: int = 0
) -> tuple[Array, NDArray[np.bool_] | None]:
    """Return the data as floats, zero at unobserved entries, and the mask of observed entries (None: all).

    Parameters
    ----------
    estimator : estimator
        Without a parameter ``missing_values``, NaN is an error.
    X : array of shape (n_samples, n_features)
    reset : bool
        Store the number and names of the features, or check them.
    min_samples : int
    first_row : int
        Index of the first row of X among those of all ranks, for error messages.
    """
    marker = getattr(estimator, "missing_values", None)
    if marker is not None and not _is_nan(marker):
        raise ValueError(f"missing_values={marker!r} must be None or np.nan")
    missing = marker is not None
    X = checks.unmasked(plain(X), missing)
    if not missing:
        checks.no_nan(X, hasattr(estimator, "missing_values"), first_row)
    try:
        data = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite="allow-nan" if missing else True,
            ensure_min_samples=min_samples,
        )
    except ValueError:
        checks.no_infinity(X, first_row)  # its place, which scikit-learn does not name
        raise
    if reset:
        checks.same_names("fixed_atoms", getattr(estimator, "fixed_atoms", None), estimator)
    return checks.split_missing(data, missing, first_row)


def check_sparse_output(estimator: Any) -> None:
    """Refuse sparse codes if ``set_output`` asks for data frames, before the work and not after it."""
    container = _get_output_config("transform", estimator)["dense"]
    if container != "default":
        raise ValueError(
            f"sparse=True does not return {container} data frames, which set_output asks for; pass sparse=False or "
            'call set_output(transform="default")'
        )


def decode(codes: Any, dictionary: Array) -> Array:
    """Turn codes of shape (n_samples, n_components), dense or sparse, into samples of shape (n_samples, n_features)."""
    if is_sparse(codes):
        _check_sparse(codes)
    checked: Any = check_array(plain(codes), accept_sparse="csr", dtype=[np.float64, np.float32], input_name="codes")
    n_columns, n_components = checked.shape[1], len(dictionary)
    if n_columns != n_components:
        shapes = f"{plural(n_columns, 'column')}, but the model has {plural(n_components, 'atom')}"
        raise ValueError(f"codes have {shapes}")
    samples: Array = checked @ dictionary.astype(checked.dtype)
    return samples


def _check_sparse(codes: Any) -> None:
    """Refuse what scikit-learn lets pass, and indices out of range, at which SciPy would read beyond its arrays."""
    if codes.ndim != 2:
        raise ValueError(f"codes have shape {codes.shape}; expected 2D codes, one row per sample")
    if hasattr(codes, "indptr"):
        try:
            codes.check_format()
            if (codes.indptr[1:] < codes.indptr[:-1]).any():  # SciPy checks it only if the last one is not zero
                raise ValueError("indptr must not decrease")
        except ValueError as damage:
            raise ValueError(f"codes are not a valid sparse array ({damage}); compute them again") from None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)
