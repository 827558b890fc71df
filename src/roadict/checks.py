"""Validation of user input: every error states the value, the bound and the remedy, every warning the user's line."""

import math
import numbers
import os
import sys
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.tensors import is_sparse, plain
from roadict.wording import plural

Array = NDArray[np.floating]

MAX_STARTS = 10_000
"""Largest number of starts; they end once the best fits agree, which is mostly after a few."""
MAX_CODE = 1e6
"""Largest codes to expect of a run, relative to the data."""
SKIPPED = ("roadict.", "sklearn.", "contextlib")
"""Modules between a user's call and a warning: scikit-learn wraps methods, and context managers run in contextlib."""


class PlaceError(ValueError):
    """Data are refused because of an entry or a row; the place can be named in an array or in a file.

    Parameters
    ----------
    what : str
        What is wrong, without a subject.
    place : (int, int or None)
        Row and column of the first such entry, counting from 0; None: the whole row.
    remedy : str
    option : str
        The remedy on the command line, if it differs.
    """

    def __init__(self, what: str, place: tuple[int, int | None], remedy: str, option: str = "") -> None:
        row, column = place
        where = f"row {row}" + ("" if column is None else f", column {column}")
        super().__init__(f"Input X {what} (first: {where}, counting from 0); {remedy}")
        self.place = place
        self._what, self._remedy = what, option or remedy

    def in_file(self, name: str, place: str) -> str:
        """Return the message for data from a file."""
        return f"{name} {self._what} (first: {place}); {self._remedy}"


def whole_number(name: str, value: Any, smallest: int = 1, largest: int | None = None) -> int:
    """Return an int of at least ``smallest``, and at most ``largest``; floats and bools are refused.

    Examples
    --------
    >>> whole_number("n_components", 3.5)
    Traceback (most recent call last):
    ...
    ValueError: n_components=3.5 must be a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < smallest:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {smallest}")
    if largest is not None and int(value) > largest:
        raise ValueError(f"{name}={value!r} must be at most {largest}; pass a smaller number")
    return int(value)


def real_number(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a finite float above zero, or at least zero."""
    bound = "a finite number of at least 0" if zero else "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} must be {bound}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name}={value!r} must be {bound}")
    return float(value)


def memory(n_components: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse a number of atoms whose codes and inner products alone do not fit into the machine's memory."""
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return
    needed = n_components * (n_components + sum(shape)) * dtype.itemsize
    if needed > available:
        raise ValueError(
            f"n_components={n_components} needs at least {needed / 2**30:,.0f} GiB for {shape[0]} samples of "
            f"{plural(shape[1], 'feature')}, and this machine has {available / 2**30:,.1f}; pass fewer components"
        )


def true_or_false(name: str, value: Any) -> None:
    """Raise ValueError for what is not a bool."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False")


def three_numbers(name: str, value: Any) -> tuple[float, float, float]:
    """Return three finite floats above zero, from one or three."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if len(value) != 3:
            raise ValueError(f"{name}={value!r} must be one number or three")
        first, second, third = (real_number(f"{name}[{i}]", v) for i, v in enumerate(value))
        return first, second, third
    number = real_number(name, value)
    return number, number, number


def one_of(name: str, value: Any, known: Collection[str], *more: str) -> None:
    """Refuse a value that is not among the known ones; ``more`` describes other valid values."""
    if not isinstance(value, str) or value not in known:
        choices = [*map(repr, known), *more]
        raise ValueError(f"{name}={value!r} must be {'one of ' if len(choices) > 2 else ''}{' or '.join(choices)}")


def unmasked(X: Any, missing: bool) -> Any:
    """Turn a NumPy masked array into one with NaN where it is masked; refuse it if NaN is not allowed."""
    if not isinstance(X, np.ma.MaskedArray) or not np.ma.is_masked(X):
        return X
    if not missing:
        raise ValueError("X is a masked array; pass missing_values=np.nan if the mask marks unobserved entries")
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)


def no_nan(X: Any, missing_values: bool = True, first_row: int = 0) -> None:
    """Refuse NaN with the appropriate remedy; other bad input is left to later checks.

    Parameters
    ----------
    X : anything
    missing_values : bool
        Whether the estimator has a parameter of this name.
    first_row : int
        Global number of the first row of X, over all ranks.
    """
    if hasattr(X, "isna"):
        nan = np.asarray(X.isna())
    elif isinstance(X, np.ndarray) and X.dtype.kind == "f":
        nan = np.isnan(X)
    else:
        return
    if nan.ndim == 2 and nan.any():
        rows, columns = np.nonzero(nan)
        remedies = (
            ("pass missing_values=np.nan if NaN marks unobserved entries", "pass --missing if they are unobserved")
            if missing_values
            else (
                "remove such samples, or use ROAD with missing_values=np.nan",
                "remove such samples, or use --method road --missing",
            )
        )
        place = first_row + int(rows[0]), int(columns[0])
        raise PlaceError(f"contains NaN in {plural(len(rows), 'place')}", place, *remedies)


def no_infinity(X: Any, first_row: int = 0) -> None:
    """Refuse infinite entries; other bad input is left to later checks.

    Parameters
    ----------
    X : anything
    first_row : int
        Global number of the first row of X, over all ranks.
    """
    try:
        array = np.asarray(X)
    except ValueError:  # a ragged list
        return
    if array.ndim == 2 and array.dtype.kind == "f" and np.isinf(array).any():
        rows, columns = np.nonzero(np.isinf(array))
        place = first_row + int(rows[0]), int(columns[0])
        remedy = "remove such samples, or replace the entries by finite numbers"
        raise PlaceError(f"contains infinity in {plural(len(rows), 'place')}", place, remedy)


def same_names(name: str, table: Any, estimator: Any) -> None:
    """Refuse a data frame whose columns have other names than the features of a fitted estimator, or another order.

    Names that are no text do not count, as in scikit-learn; neither do those of arrays, which have none.
    """
    given, expected = getattr(table, "columns", None), getattr(estimator, "feature_names_in_", None)
    if given is None or expected is None or len(given) != len(expected) or not all(isinstance(n, str) for n in given):
        return
    for place, (own, feature) in enumerate(zip(given, expected, strict=True)):
        if own != feature:
            remedy = f"pass {name}[X.columns]" if set(given) == set(expected) else "name its columns as those of X"
            raise ValueError(f"column {place} of {name} is {own!r}, but that of X is {feature!r}; {remedy}")


def data_range(largest: float, dtype: np.dtype[Any]) -> None:
    """Refuse data X that is all zero, or so large that codes might overflow its dtype."""
    limit = float(np.finfo(dtype).max) / MAX_CODE
    if largest == 0:
        raise ValueError("all entries of X are zero; there is nothing to learn from")
    if largest > limit:
        raise ValueError(f"X reaches {largest:g}, and its codes might overflow {dtype}; rescale X to below {limit:g}")


def threads(name: str, value: Any) -> None:
    """Refuse a number of threads that is neither None nor a whole number other than 0 (-1: all cores)."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Integral) or value == 0):
        raise ValueError(f"{name}={value!r} must be a whole number other than 0, or None for all cores")


def matrix(name: str, value: Any) -> Array:
    """Return a matrix of finite floats with at least one row and one column; float32 stays.

    Examples
    --------
    >>> matrix("dictionary", [1, 2])
    Traceback (most recent call last):
    ...
    ValueError: dictionary has shape (2,); it must have two dimensions, one atom per row
    """
    array = real_array(name, value, "it must be a matrix with one atom per row")
    if array.ndim != 2 or array.size == 0:
        bound = "it must have two dimensions, one atom per row" if array.ndim != 2 else "it needs an atom and a feature"
        raise ValueError(f"{name} has shape {array.shape}; {bound}")
    return array.astype(array.dtype if array.dtype in (np.float32, np.float64) else np.float64)


def code_range(codes: Array) -> None:
    """Refuse codes to start from, in units of the data, whose squares would overflow."""
    largest, limit = float(np.abs(codes).max(initial=0)), math.sqrt(np.finfo(codes.dtype).max) / MAX_CODE
    if not largest <= limit:
        raise ValueError(
            f"code_init reaches {largest:.3g} times the size of the data, and the error would overflow {codes.dtype}; "
            f"pass codes below {limit:.1g} times that size"
        )


def given_array(name: str, value: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Return a finite array of this shape."""
    array = real_array(name, value, f"it must have shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but the data and n_components require {shape}")
    return array.astype(dtype)


def sample_weights(value: Any, n_samples: int, dtype: np.dtype[Any], first_row: int = 0) -> NDArray[np.float64] | None:
    """Return a weight for every sample from one number or one per sample; None stays None.

    Error messages number samples from ``first_row`` on.

    Examples
    --------
    >>> sample_weights([1, -2], 2, np.dtype(float))
    Traceback (most recent call last):
    ...
    ValueError: sample_weight[1]=-2 must be a finite number of at least 0; pass 0 to leave the sample out
    """
    if value is None:
        return None
    bound = f"pass one number, or one per sample: shape ({n_samples},)"
    array = real_array("sample_weight", value, bound, finite=False)
    if array.shape not in ((), (n_samples,)):
        raise ValueError(f"sample_weight has shape {array.shape}, but there are {plural(n_samples, 'sample')}; {bound}")
    weights = np.broadcast_to(array, n_samples).astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        shown = f"sample_weight[{first_row + bad[0]}]={weights[bad[0]]:g}"
        raise ValueError(f"{shown} must be a finite number of at least 0; pass 0 to leave the sample out")
    top, limit = float(weights.max(initial=0)), float(np.finfo(dtype).max) ** 0.25  # room for squares, and their sums
    if top > limit:
        raise ValueError(
            f"sample_weight reaches {top:g}, beyond {limit:.2g} for {dtype}; divide all weights by a number"
        )
    return weights


def real_array(name: str, value: Any, bound: str = "pass an array of numbers", *, finite: bool = True) -> NDArray[Any]:
    """Return an array, or a tensor as an array, of real numbers; ``bound`` ends the message on a ragged list."""
    if is_sparse(value):
        raise ValueError(f"{name} is a sparse array; pass {name}.toarray()")
    try:
        array = np.asarray(plain(value))
    except ValueError as ragged:
        raise ValueError(f"{name} is not an array ({ragged}); {bound}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}; it must hold real numbers")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; all its entries must be finite")
    return array


def given_dictionary(name: str, value: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Return a finite array of this shape without zero rows."""
    array = given_array(name, value, shape, dtype)
    directions(name, array)
    return array


def directions(name: str, atoms: Array) -> None:
    """Refuse zero rows."""
    zero = np.flatnonzero(~atoms.any(axis=1))
    if len(zero):
        raise ValueError(f"{name} has {plural(len(zero), 'zero row')} (first: {zero[0]}); every atom needs a direction")


def nonnegative(name: str, array: Array, reason: str) -> None:
    """Refuse negative entries.

    Examples
    --------
    >>> nonnegative("dict_init", np.array([[1.0, -2.0]]), "positive_dict=True")
    Traceback (most recent call last):
    ...
    ValueError: dict_init[0, 1]=-2 must be at least 0, as positive_dict=True; pass nonnegative numbers
    """
    negative = np.argwhere(array < 0)
    if len(negative):
        row, column = negative[0]
        shown = f"{name}[{row}, {column}]={array[row, column]:g}"
        raise ValueError(f"{shown} must be at least 0, as {reason}; pass nonnegative numbers")


def warn_of_unobserved(observed_by_feature: NDArray[Any]) -> None:
    """Warn of features that no sample has; given is the number of samples that have each."""
    never = np.flatnonzero(observed_by_feature == 0)
    if len(never):
        features = f"{plural(len(never), 'feature')} of X {'is' if len(never) == 1 else 'are'}"
        warn_user(
            f"{features} never observed (first: index {never[0]}); all atoms are zero there: remove such features"
        )


def split_missing(X: Array, missing: bool, first_row: int = 0) -> tuple[Array, NDArray[np.bool_] | None]:
    """Split data with NaN into data with zeros and a mask of the observed entries (None: all).

    Error messages number rows from ``first_row`` on.
    """
    if not missing or not np.isnan(X).any():
        return X, None
    observed = ~np.isnan(X)
    empty = np.flatnonzero(~observed.any(axis=1))
    if len(empty):
        what = f"has {plural(len(empty), 'sample')} with no observed entry"
        raise PlaceError(what, (first_row + int(empty[0]), None), "remove such samples")
    return np.where(observed, X, 0).astype(X.dtype), observed


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame of the user: how deep a generator is in the stack depends on its driver.

    A closed standard error does not end the caller.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(SKIPPED):
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(message, category, stacklevel=level)
    except ValueError:
        if not getattr(sys.stderr, "closed", False):
            raise
