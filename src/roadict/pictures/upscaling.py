"""Trained models in the user's cache directory, so that training happens once."""

import contextlib
import errno
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict import __version__, checks
from roadict.pictures.superresolution import SuperResolution, saved_parameters
from roadict.progress.terminal import Progress
from roadict.runs.loop import Callback

Picture = NDArray[Any]
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
    import skimage.data

    loaded = [getattr(skimage.data, name)() for name in BUNDLED]
    return [np.asarray(picture[0] if isinstance(picture, tuple) else picture) for picture in loaded]


def cache_folder() -> Path:
    """Where this user's programs keep what they can make again; raises OSError for a user without a home."""
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    base = Path(os.environ.get(named, ""))
    if not base.is_absolute():  # the standard for XDG asks to ignore such a one
        usual = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
        try:
            base = Path.home() / usual
        except RuntimeError as unknown:
            raise FileNotFoundError(errno.ENOENT, "the user has no home folder") from unknown
    return base / "roadict"


def trained(
    model: SuperResolution,
    pictures: Sequence[Picture] | None = None,
    *,
    progress: Progress | None = None,
    callback: Callback | None = None,
    told: Callable[[str], None] | None = None,
) -> SuperResolution:
    """Return the model trained on these pictures: from the cache, or else now, and kept there.

    A file that cannot be read is trained and written anew. Where the cache cannot be written the model is not kept.

    Parameters
    ----------
    model : SuperResolution
        Not yet fitted; with an integer ``random_state``.
    pictures : sequence of arrays, default=None
        None: those inside scikit-image.
    progress, callback : callable, default=None
        As for ``fit``.
    told : callable, default=None
        Called with a sentence on what is done.

    Returns
    -------
    SuperResolution
    """
    say = told or (lambda text: None)
    chosen = bundled_pictures() if pictures is None else list(pictures)
    name = f"upscale-x{model.scale}-{_key(model, chosen)}.npz"
    with contextlib.suppress(OSError, ValueError):  # missing, unreadable or damaged: trained anew
        path = cache_folder() / name
        found = SuperResolution.load(path)
        if saved_parameters(found) == saved_parameters(model):
            found.n_jobs = model.n_jobs
            say(f"model from {path}")
            return found
    say(f"training on {checks.plural(len(chosen), 'picture')}, once")
    model.fit(chosen, progress, callback)
    try:
        path = cache_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    except OSError as failure:
        where = f" in {failure.filename}" if failure.filename else ""
        say(f"the model could not be kept{where} ({failure.strerror})")
    else:
        say(f"model kept in {path}")
    return model


def _key(model: SuperResolution, pictures: Sequence[Picture]) -> str:
    """A name for version, settings and training pictures."""
    chosen = [__version__, saved_parameters(model), repr(model.random_state)]
    settings = json.dumps(chosen, sort_keys=True, default=lambda number: number.item())  # NumPy's own numbers
    digest = hashlib.sha256(settings.encode())
    for picture in pictures:
        digest.update(f"{picture.shape}{picture.dtype}".encode())
        digest.update(np.ascontiguousarray(picture).tobytes())
    return digest.hexdigest()[:16]


def upscale(
    picture: Picture,
    scale: int = 3,
    *,
    model: SuperResolution | None = None,
    approach: str = "anchored",
    method: str = "road",
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
) -> Picture:
    """Enlarge a picture by 2, 3 or 4.

    Without a model, one is trained on pictures that come inside scikit-image, which takes some 20 seconds on two
    cores, and kept in the user's cache directory for later.

    Parameters
    ----------
    picture : array of shape (height, width) or (height, width, channels)
        uint8, uint16, float32 or float64; grey or RGB, with or without alpha.
    scale : {2, 3, 4}, default=3
        How many times wider and higher the result is.
    model : SuperResolution, default=None
        A fitted one, whose scale must be this one. It has its own approach, method, random_state and n_jobs, and
        those given here are then of no use.
    approach : {"anchored", "zeyde", "yang"}, default="anchored"
    method : {"road", "ksvd", "mod", ..., "random"}, default="road"
        Both as for ``SuperResolution``.
    random_state : int, default=0
        Same number, same model.
    n_jobs : int, default=None
        Threads. None: all cores.
    progress : callable, default=None
        Called with steps done, steps in all, and a text.
    callback : callable, default=None
        As for ``ROAD``, while a model is trained.

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
    if model is None:
        fresh = SuperResolution(scale, approach=approach, method=method, random_state=random_state, n_jobs=n_jobs)
        fresh.check()
        model = trained(fresh, progress=progress, callback=callback)
    elif model.scale != scale:
        raise ValueError(f"scale={scale!r}, but the model enlarges by {model.scale}; train or load another one")
    return model.predict(picture, progress)
