"""Load models from files."""

import os
from typing import get_args

from roadict.estimators.alternating import AlternatingDictionaryLearning
from roadict.estimators.attributes import unpack
from roadict.estimators.road import ROAD
from roadict.estimators.road_cv import ROADCV
from roadict.files import models

Model = ROAD | ROADCV | AlternatingDictionaryLearning


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model written by ``save``. Loading never executes code from the file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    ROAD, ROADCV or AlternatingDictionaryLearning
        The estimator that was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model, or is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from roadict import AlternatingDictionaryLearning, load
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> X = [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 4.0]]
    >>> AlternatingDictionaryLearning(2, n_nonzero_coefs=1, random_state=0).fit(X).save(path)
    >>> load(path).components_.shape
    (2, 2)
    """
    kind, parameters, arrays = models.read_model(path)
    if kind == "SuperResolution":
        raise models.ModelFileError(
            f"{os.fspath(path)} holds a {kind!r} model; read it with roadict.pictures.SuperResolution.load"
        )
    estimator = {estimator.__name__: estimator for estimator in get_args(Model)}.get(kind)
    if estimator is None or not set(parameters) <= set(estimator().get_params()):
        raise models.ModelFileError(f"{os.fspath(path)} holds a {kind!r} model that this version cannot read")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}
    model: Model = estimator().set_params(**values)
    try:
        unpack(model, arrays)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise models.ModelFileError(
            f"{os.fspath(path)} is not a complete {kind} model ({error}); save it again"
        ) from error
    return model
