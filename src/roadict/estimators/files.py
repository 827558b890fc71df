"""Models from files: the class that was saved comes back."""

import os

from roadict.estimators.alternating import AlternatingDictionaryLearning
from roadict.estimators.attributes import unpack
from roadict.estimators.road import ROAD
from roadict.files import models


def load(path: str | os.PathLike[str]) -> ROAD | AlternatingDictionaryLearning:
    """Read a model that ``save`` wrote. Opening somebody's model never runs code.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    ROAD or AlternatingDictionaryLearning
        What was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model, or is broken.

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
    made = {"ROAD": ROAD, "AlternatingDictionaryLearning": AlternatingDictionaryLearning}.get(kind)
    if made is None or not set(parameters) <= set(made().get_params()):
        raise models.ModelFileError(f"{os.fspath(path)} holds a {kind!r} model that this version cannot read")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}
    model: ROAD | AlternatingDictionaryLearning = made().set_params(**values)
    try:
        unpack(model, arrays)
    except (KeyError, ValueError, TypeError, IndexError) as broken:
        raise models.ModelFileError(
            f"{os.fspath(path)} is not a whole {kind} model ({broken}); save it again"
        ) from broken
    return model
