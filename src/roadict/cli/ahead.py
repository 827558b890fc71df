"""The kernels of two-stage methods and of the choice of a number of atoms, compiled ahead of the fit.

``ROAD`` does this itself.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roadict.estimators import ROAD, ROADCV, AlternatingDictionaryLearning


def compile_ahead(model: "ROAD | ROADCV | AlternatingDictionaryLearning", X: "NDArray[Any]") -> None:
    """Compile what the fit of a model is going to need, unless it is in the cache, or the fit would refuse its input.

    Then, as for a folder that has checkpoints, which may be of another fit, kernels are compiled on first use.
    """
    from roadict.estimators import ROADCV, AlternatingDictionaryLearning
    from roadict.precompile import missing, prepare

    if isinstance(model, ROADCV):
        names, dtype, check = _of_choice(model, X), _dtype(X), _check_choice
    elif isinstance(model, AlternatingDictionaryLearning) and not _may_resume(model):
        names, dtype, check = _of_alternation(model), "float64", _check_alternation
    else:
        return
    if missing(names, dtype):  # the first run only: what is checked here is checked again by the fit
        check(model, X)
        prepare(names, dtype)


def _dtype(X: "NDArray[Any]") -> str:
    return "float32" if X.dtype == "float32" else "float64"


def _may_resume(model: "AlternatingDictionaryLearning") -> bool:
    from roadict.checkpoints import storage
    from roadict.checkpoints.schedule import Checkpoint

    return isinstance(model.checkpoint, Checkpoint) and bool(storage.numbers(Path(model.checkpoint.folder)))


def _of_alternation(model: "AlternatingDictionaryLearning") -> list[str]:
    from roadict.precompile import KERNELS, kernels_of_alternation

    names = kernels_of_alternation(model.update, model._fit_coder, bool(model.positive_code))
    return [name for name in names if name in KERNELS]  # an unknown coder is refused by the fit


def _of_choice(model: "ROADCV", X: "NDArray[Any]") -> list[str]:
    from roadict.engines.registry import engine_name
    from roadict.precompile import kernels_of_choice

    largest = max(model._numbers() or [4 * X.shape[1]])
    engine = engine_name(model.engine, len(X), X.shape[1], largest)
    return kernels_of_choice(model.formulation, bool(model.positive_code), engine)


def _check_alternation(model: Any, X: "NDArray[Any]") -> None:
    """Refuse what the fit of a two-stage method refuses."""
    import numpy as np

    from roadict import checks
    from roadict.estimators.known import check_reachable

    model._check_parameters()
    data, _ = model._validate(X, reset=True)
    checks.data_range(float(np.abs(data).max()), data.dtype)
    checks.memory(model._n_atoms(data.shape[1]), data.shape, data.dtype)
    check_reachable(data, model)


def _check_choice(model: Any, X: "NDArray[Any]") -> None:
    """Refuse what the choice of a number of atoms refuses."""
    from roadict.estimators.known import check_reachable, check_width

    model._check_parameters()
    data, observed = model._validate(X, reset=True)
    model._check_data(data, observed, "")
    numbers, parameters = model._numbers(), model._parameters()
    check_width(parameters, data.shape[1], None if numbers is None else min(numbers))
    check_reachable(data, parameters, warn=False)
