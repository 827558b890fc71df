"""Fitted attributes of an estimator, to plain arrays and back."""

import math
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from roadict.estimators.streaming import pack_stream, terms_of, unpack_stream
from roadict.road.noise import EpsilonPath
from roadict.road.number import NumberPath
from roadict.runs.history import COLUMNS, DESCENT_COLUMNS, TWO_STAGE_COLUMNS, Finished, History
from roadict.runs.loop import StopReason
from roadict.tensors import is_sparse, plain

Arrays = dict[str, NDArray[Any]]

MATRICES = ("components_", "atom_usage_")
CSR = "codes_csr_"
CSR_ARRAYS = ("data", "indices", "indptr", "shape")
"""Arrays of sparse codes, and their prefix. A file with neither these nor ``codes_`` is of a fit without codes."""
NUMBERS = {
    "ROAD": ("objective_", "error_", "transform_alpha_", "epsilon_"),
    "ROADCV": ("objective_", "error_", "transform_alpha_", "epsilon_"),
    "AlternatingDictionaryLearning": ("objective_", "error_", "alpha_"),
}
"""By estimator."""
OPTIONAL = ("epsilon_", "alpha_")
WHOLE_NUMBERS = ("n_iter_", "n_features_in_")
STARTS = ("exact_", "n_starts_", "n_starts_agreed_")
"""Of ROAD and ROADCV; version 0.1 did not save them."""
PATH = "epsilon_path_"
"""Prefix of the columns of ``EpsilonPath``; optional."""
CHOICE = "cv_results_"
"""Prefix of the columns of ``cv_results_`` of ROADCV."""
FORMER_NAMES = {"code_change": "primal", "atom_change": "dual"}
"""History columns of two-stage methods, by their names in version 0.1."""


def kind_of(model: Any) -> str:
    """Name of the estimator, also for a subclass."""
    return next(base.__name__ for base in type(model).__mro__ if base.__name__ in NUMBERS)


def pack(model: Any) -> Arrays:
    """Collect the attributes of a fitted model, without those that are None."""
    names = (*MATRICES, *NUMBERS[kind_of(model)], *WHOLE_NUMBERS, *STARTS, "stop_reason_", "rho_", "atom_stability_")
    arrays = {name: np.asarray(plain(getattr(model, name))) for name in names if getattr(model, name, None) is not None}
    if is_sparse(model.codes_):
        codes = csr_array(model.codes_)
        arrays |= {f"{CSR}{name}": np.asarray(getattr(codes, name)) for name in CSR_ARRAYS}
    elif model.codes_ is not None:
        arrays["codes_"] = np.asarray(plain(model.codes_))
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in_"] = np.asarray(model.feature_names_in_, dtype=str)
    path = getattr(model, "epsilon_path_", None)
    if path is not None:
        arrays |= {f"{PATH}{name}": np.asarray(value) for name, value in path.to_json().items()}
    if kind_of(model) == "ROADCV":
        arrays |= {f"{CHOICE}{name}": column for name, column in model.cv_results_.items()}
        arrays["flat_"] = np.asarray(model.flat_)
    if hasattr(model, "_stream_"):
        arrays |= pack_stream(model._stream_)
    return arrays | {f"history_{name}": column for name, column in model.history_.items()}


def unpack(model: Any, arrays: Arrays) -> None:
    """Set the attributes; raises KeyError, TypeError or ValueError if they are inconsistent."""
    for name in MATRICES:
        _check_finite(name, arrays[name])
        setattr(model, name, arrays[name])
    n_components, n_features = model.components_.shape
    if model.atom_usage_.shape != (n_components,):
        raise ValueError("the shape of atom_usage_ does not match components_")
    model.codes_ = _checked_codes(arrays, n_components)
    kind = kind_of(model)
    for name in NUMBERS[kind]:
        setattr(model, name, float(arrays[name]) if name in arrays else None)
        if name not in (*OPTIONAL, *arrays) or not math.isfinite(getattr(model, name) or 0.0):
            raise ValueError(f"{name} must be a finite number")
    for name in WHOLE_NUMBERS:
        setattr(model, name, int(arrays[name]))
    if model.n_features_in_ != n_features:
        raise ValueError("n_features_in_ does not match components_")
    model.stop_reason_ = str(arrays["stop_reason_"])
    if model.stop_reason_ not in get_args(StopReason):
        raise ValueError(f"stop_reason_ must be one of {', '.join(get_args(StopReason))}")
    if kind != "AlternatingDictionaryLearning":
        model.rho_ = tuple(map(float, arrays["rho_"])) if arrays["rho_"].ndim else float(arrays["rho_"])
        _set_starts(model, arrays)
        path = {name.removeprefix(PATH): array for name, array in arrays.items() if name.startswith(PATH)}
        model.epsilon_path_ = EpsilonPath.from_json(path) if path else None
    if kind == "ROADCV":
        model.cv_results_ = {name: arrays[f"{CHOICE}{name}"] for name in NumberPath.COLUMNS}
        model.n_components_, model.flat_ = n_components, bool(arrays["flat_"])
    columns = _columns(kind, arrays)
    if any(column.shape != (model.n_iter_,) or column.dtype.kind != "f" for column in columns.values()):
        raise ValueError("history_ does not match n_iter_")
    model.history_ = History(columns, Finished(model.objective_, model.error_, getattr(model, "exact_", False)))
    if kind != "AlternatingDictionaryLearning":
        model.stationarity_ = last_stationarity(model.history_)
    if "stream_counts" in arrays:
        constraints = model._parameters().constraints
        stream = unpack_stream(arrays, model.components_.shape, model.components_.dtype, constraints)
        model._stream_ = stream._replace(terms=terms_of(model))
    if "atom_stability_" in arrays:
        model.atom_stability_ = _checked_stability(arrays["atom_stability_"], n_components)
    if "feature_names_in_" in arrays:
        model.feature_names_in_ = arrays["feature_names_in_"].astype(object)


def _check_finite(name: str, values: NDArray[Any]) -> None:
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(f"{name} must hold finite numbers")


def _checked_codes(arrays: Arrays, n_components: int) -> NDArray[Any] | csr_array | None:
    """Return dense or sparse codes, or None; SciPy would read beyond its arrays at indices out of range."""
    if "codes_" in arrays:
        codes = arrays["codes_"]
        _check_finite("codes_", codes)
        if codes.ndim != 2 or codes.shape[1] != n_components:
            raise ValueError("the shape of codes_ does not match components_")
        return codes
    if not any(name.startswith(CSR) for name in arrays):
        return None
    data, indices, indptr, shape = (arrays[f"{CSR}{name}"] for name in CSR_ARRAYS)
    _check_finite("codes_", data)
    if data.dtype not in (np.float32, np.float64) or any(a.dtype.kind != "i" for a in (indices, indptr, shape)):
        raise ValueError("the arrays of codes_ have wrong dtypes")
    if (
        any(array.ndim != 1 for array in (data, indices, indptr))
        or shape.tolist() != [len(indptr) - 1, n_components]
        or not indptr[-1] == len(indices) == len(data)
    ):
        raise ValueError("the shapes of the arrays of codes_ do not match each other or components_")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or not ((indices >= 0) & (indices < n_components)).all():
        raise ValueError("codes_ has indices out of range")
    return csr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def last_stationarity(history: History) -> float | None:
    """Return the stationarity at the end of a descent over all samples; None: there was none."""
    last = float(history["stationarity"][-1]) if "stationarity" in history else math.nan
    return last if math.isfinite(last) else None


def _checked_stability(values: NDArray[Any], n_components: int) -> NDArray[Any]:
    """Return the stability of the atoms, saved if it was computed; see ``roadict.atom_stability``."""
    if values.shape != (n_components,) or values.dtype.kind != "f" or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("atom_stability_ must hold a number between 0 and 1 for each atom")
    return values


def _set_starts(model: Any, arrays: Arrays) -> None:
    for name in STARTS:
        convert = bool if name == "exact_" else int
        setattr(model, name, convert(arrays[name]) if name in arrays else None)


def _columns(kind: str, arrays: Arrays) -> Arrays:
    if kind != "AlternatingDictionaryLearning":
        present = [*COLUMNS, *(name for name in DESCENT_COLUMNS if f"history_{name}" in arrays)]
        return {name: arrays[f"history_{name}"] for name in present}
    former = "history_primal" in arrays
    names = {name: FORMER_NAMES.get(name, name) if former else name for name in TWO_STAGE_COLUMNS}
    return {name: arrays[f"history_{saved}"] for name, saved in names.items()}
