"""Enlarge a picture in one call.

A model is trained on first use and saved in the user's cache directory.
"""

import contextlib
import copy
import errno
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict import __version__
from roadict.extras import require
from roadict.pictures.superresolution import (
    ENLARGING,
    SuperResolution,
    enlarging_cost,
    saved_parameters,
    training_stages,
)
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import silent
from roadict.runs.snapshot import Callback, Snapshot
from roadict.wording import plural

Picture = NDArray[Any]
APPROACH, METHOD = "anchored", "road"
TRAINING = "training"
"""Stage before the enlarging, if no trained model is found."""
MODEL_FROM, MODEL_SAVED = "model from ", "model saved in "
"""Beginnings of the messages that name the file of a cached model, and of one trained now."""
BUNDLED = (
    "astronaut",
    "brick",
    "camera",
    "chelsea",
    "coffee",
    "coins",
    "grass",
    "gravel",
    "page",
    "rocket",
    "stereo_motorcycle",
    "text",
)
"""Pictures inside scikit-image's wheel that the default model learns from: photographs, textures and print."""


def bundled_pictures() -> list[Picture]:
    """Read the pictures that come with scikit-image; nothing is downloaded."""
    require("upscale() without train= or model=", "skimage")
    import skimage.data

    loaded = [getattr(skimage.data, name)() for name in BUNDLED]
    return [np.asarray(picture[0] if isinstance(picture, tuple) else picture) for picture in loaded]


def cache_folder() -> Path:
    """Return the folder for roadict's cached files; raises OSError for a user without a home folder."""
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    base = Path(os.environ.get(named, ""))
    if not base.is_absolute():  # which the XDG standard asks to ignore
        usual = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
        try:
            base = Path.home() / usual
        except RuntimeError as unknown:
            raise FileNotFoundError(errno.ENOENT, "the user has no home folder") from unknown
    return base / "roadict"


def trained(
    model: SuperResolution,
    pictures: Sequence[ArrayLike] | None = None,
    *,
    progress: Progress | None = None,
    callback: Callback | None = None,
    message: Callable[[str], None] | None = None,
) -> SuperResolution:
    """Return the model trained on these pictures: loaded from the cache, or trained now and saved there.

    A cached file that cannot be read is replaced. The model is not saved where the cache cannot be written, nor if the
    callback stops the training.

    Parameters
    ----------
    model : SuperResolution
        Not yet fitted; with an integer ``random_state``.
    pictures : sequence of arrays, default=None
        None: those inside scikit-image.
    progress, callback : callable, default=None
        As for ``fit``.
    message : callable, default=None
        Called with a sentence on where the model comes from.

    Returns
    -------
    SuperResolution
    """
    report = message or (lambda text: None)
    chosen = bundled_pictures() if pictures is None else [np.asarray(picture) for picture in pictures]
    name = f"upscale-x{model.scale}-{_key(model, chosen)}.npz"
    with contextlib.suppress(OSError, ValueError):  # missing, unreadable or damaged: trained anew
        path = cache_folder() / name
        cached = SuperResolution.load(path)
        if saved_parameters(cached) == saved_parameters(model):
            cached.n_jobs = model.n_jobs
            report(f"{MODEL_FROM}{path}")
            return cached
    report(f"training on {plural(len(chosen), 'picture')}, once")
    seen: list[Snapshot] = []

    def watched(snapshot: Snapshot) -> Any:
        seen[:] = [snapshot]
        return None if callback is None else callback(snapshot)

    model.fit(chosen, progress, watched)
    if seen and seen[0].stopped:
        report("training was stopped early: the model is not saved")
        return model
    try:
        path = cache_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    except OSError as failure:
        where = f" in {failure.filename}" if failure.filename else ""
        report(f"the model could not be saved{where} ({failure.strerror})")
    else:
        report(f"{MODEL_SAVED}{path}")
    return model


def _key(model: SuperResolution, pictures: Sequence[Picture]) -> str:
    """Digest of version, settings and training pictures."""
    chosen = [__version__, saved_parameters(model), repr(model.random_state)]
    settings = json.dumps(chosen, sort_keys=True, default=lambda number: number.item())  # NumPy scalars
    digest = hashlib.sha256(settings.encode())
    for picture in pictures:
        digest.update(f"{picture.shape}{picture.dtype}".encode())
        digest.update(np.ascontiguousarray(picture).tobytes())
    return digest.hexdigest()[:16]


def check_settings(fresh: SuperResolution, model: SuperResolution | None, train: object, prefix: str = "") -> None:
    """Raise a ValueError for settings out of range, or that conflict with a trained model.

    Parameters
    ----------
    fresh : SuperResolution
        With the requested settings; not fitted.
    model : SuperResolution or None
        To be used instead.
    train : object
        None: there are no training pictures.
    prefix : str
        Prefix of the names in messages: "--" on the command line.
    """
    if model is not None:
        if train is not None:
            raise ValueError(f"{prefix}train and {prefix}model exclude each other: a model is already trained")
        if (fresh.approach, fresh.method) != (APPROACH, METHOD):
            raise ValueError(
                f"{prefix}approach and {prefix}method do not apply to {prefix}model, which is already trained: "
                "leave them out"
            )
        if model.scale != fresh.scale:
            raise ValueError(
                f"the model enlarges by {model.scale}, not by {fresh.scale}; "
                f"pass {prefix}scale {model.scale}, or another {prefix}model"
            )
    fresh.check()


def upscale(
    picture: ArrayLike,
    scale: int = 3,
    *,
    train: Sequence[ArrayLike] | None = None,
    model: SuperResolution | None = None,
    approach: str = APPROACH,
    method: str = METHOD,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
    message: Callable[[str], None] | None = None,
) -> Picture:
    """Enlarge a picture by 2, 3 or 4.

    Without a model, one is trained and saved in the user's cache directory for later. On the pictures that come
    inside scikit-image this takes some 20 seconds on two cores.

    Parameters
    ----------
    picture : array of shape (height, width) or (height, width, channels)
        uint8, uint16, float32 or float64; grey or RGB, with or without alpha.
    scale : {2, 3, 4}, default=3
        Factor of the width and of the height.
    train : sequence of arrays of shape (height, width) or (height, width, channels), default=None
        Pictures to learn from. None: those inside scikit-image.
    model : SuperResolution, default=None
        A fitted one of this scale to use instead; refused together with ``train``, or another ``approach`` or
        ``method`` than the default.
    approach : {"anchored", "zeyde", "yang"}, default="anchored"
    method : {"road", "ksvd", "mod", ..., "random"}, default="road"
        Both as for ``SuperResolution``.
    random_state : int, default=0
        Seed of the training: same number, same model.
    n_jobs : int, default=None
        Threads. None: those of ``model``, or else all cores.
    progress : callable, default=None
        Called with steps of the whole job done, steps in all (1000), and the name of the stage; without a training,
        with tiles.
    callback : callable, default=None
        As for ``ROAD``, while a model is trained.
    message : callable, default=None
        Called with a sentence on where the model comes from.

    Returns
    -------
    array of shape (scale * height, scale * width) or (scale * height, scale * width, channels)
        In the dtype and range of the picture.

    Examples
    --------
    >>> from roadict.pictures import SuperResolution, upscale
    >>> from skimage.data import camera, page
    >>> model = SuperResolution(2, n_components=16, max_iter=20, random_state=0).fit([page()])
    >>> upscale(camera()[:20, :30], 2, model=model).shape
    (40, 60)
    """
    fresh = SuperResolution(scale, approach=approach, method=method, random_state=random_state, n_jobs=n_jobs)
    check_settings(fresh, model, train)
    if model is not None:
        return (model if n_jobs is None else copy.copy(model).set_params(n_jobs=n_jobs)).predict(picture, progress)
    report, array = progress or silent, np.asarray(picture)
    chosen = bundled_pictures() if train is None else [np.asarray(each) for each in train]
    whole = Stages({TRAINING: training_stages(fresh, chosen).cost, ENLARGING: enlarging_cost(fresh, array)})
    model = trained(fresh, chosen, progress=whole.part(TRAINING, report), callback=callback, message=message)
    return model.predict(array, whole.part(ENLARGING, report) if whole.begun else progress)
