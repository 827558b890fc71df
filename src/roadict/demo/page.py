"""The page of the demo: planted and learned atoms, and a picture enlarged with a dictionary."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict import __version__
from roadict.demo.charts import convergence, objective
from roadict.drawing.markup import render
from roadict.drawing.numbers import number
from roadict.drawing.raster import atom_sheet, data_uri, grey, mosaic, png
from roadict.drawing.shown import Shown, shown
from roadict.estimators import ROAD
from roadict.metrics import psnr
from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.resize import luma, resize
from roadict.pictures.superresolution import ENLARGING, enlarging_cost, training_stages
from roadict.plotting import aligned_atoms, found_atoms
from roadict.progress.compiling import MIN_SECONDS
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import silent
from roadict.progress.words import duration
from roadict.synthetic import Planted
from roadict.wording import of, plural

SCALE = 3
ATOMS = 128
SIDE = 150
"""Side of the training pictures: large enough to learn from in a second or two."""
SHEET_COLUMNS = 16
"""Atoms in a row of their picture."""


@dataclass(frozen=True)
class Pair:
    """A planted atom and its matched learned one, as data URIs, and their correlation."""

    truth: str
    learned: str
    correlation: float


class Times(NamedTuple):
    """Seconds of a fit, and those of compiling kernels, which only the first run does."""

    learning: float
    compiling: float = 0.0


def headline(found: int, n_components: int, times: Times) -> str:
    """Say in one line what was found, and how long that took.

    Examples
    --------
    >>> headline(32, 32, Times(2.1, 11.8))
    '32 of 32 atoms found in 2.1 s (plus 12 s to compile, first run only)'
    >>> headline(31, 32, Times(2.1))
    '31 of 32 atoms found in 2.1 s'
    """
    compiled = times.compiling >= MIN_SECONDS
    more = f" (plus {duration(times.compiling)} to compile, first run only)" if compiled else ""
    return f"{found} of {n_components} atoms found in {duration(times.learning)}{more}"


def make_demo_page(
    truth: Planted, model: ROAD, times: Times, seed: int, report: Progress = silent, made: datetime | None = None
) -> str:
    """Enlarge the picture and write the page.

    Parameters
    ----------
    truth : Planted
    model : ROAD
        Fitted to the planted samples.
    times : Times
        Of the fit.
    seed : int
    report : callable, default=silent
        Called with steps done, steps in all, and a text.
    made : datetime, default=None
        When the page was made; None: now.

    Returns
    -------
    str
        HTML.
    """
    pictures, sheet = enlarged(seed, report)
    run, run_chart = convergence(model.history_)
    goal, goal_chart = objective(model.history_, float(np.abs(truth.codes).sum()))
    return render(
        "demo",
        "demo.html",
        seed=seed,
        version=__version__,
        made=(made or datetime.now().astimezone()).replace(microsecond=0),
        n_samples=len(truth.data),
        n_features=truth.dictionary.shape[1],
        n_components=len(truth.dictionary),
        sparsity=int((truth.codes[0] != 0).sum()),
        headline=headline(found_atoms(model.components_, truth.dictionary), len(truth.dictionary), times),
        found=found_atoms(model.components_, truth.dictionary),
        recovery=recovery_text(model, truth, partial(number, digits=1)),
        iterations=model.n_iter_,
        learning=duration(times.learning),
        compiling=duration(times.compiling) if times.compiling >= MIN_SECONDS else "",
        pairs=_pairs(truth, model),
        exact=bool(model.exact_),
        charts=[(run, run_chart), (goal, goal_chart)],
        pictures=pictures,
        picture_atoms=ATOMS,
        sheet=sheet,
    )


def enlarged(seed: int, report: Progress = silent) -> tuple[list[Shown], str]:
    """Enlarge a cat three times: input, bicubic, ROAD and original, and all atoms, the largest first, as a data URI."""
    import skimage.data

    cat = skimage.data.chelsea()[15:270, 75:405] / 255
    training = [
        np.asarray(luma(getattr(skimage.data, name)() / 255))[50 : 50 + SIDE, 50 : 50 + SIDE]
        for name in ("coffee", "camera", "grass")
    ]
    small = np.clip(_resized(cat, (cat.shape[0] // SCALE, cat.shape[1] // SCALE)), 0, 1)
    recipe = Recipe(max_samples=2000)
    model = SuperResolution(SCALE, approach="zeyde", n_components=ATOMS, max_iter=60, recipe=recipe, random_state=seed)
    whole = Stages({"training": training_stages(model, training).cost, ENLARGING: enlarging_cost(model, small)})
    model.fit(training, whole.part("training", report))
    results = {
        "input": np.kron(small, np.ones((SCALE, SCALE, 1))),
        "bicubic": np.clip(_resized(small, cat.shape[:2]), 0, 1),
        "ROAD": model.predict(small, whole.part(ENLARGING, report)),
    }
    pictures = [shown(name, psnr(luma(result), luma(cat)), png(result)) for name, result in results.items()]
    atoms = model.predictor_.arrays()["high"]
    largest = atoms[np.argsort(-np.linalg.norm(atoms, axis=1), kind="stable")]
    sheet = data_uri(png(grey(mosaic(largest, SHEET_COLUMNS))))
    return [*pictures, shown("original", None, png(cat))], sheet


def _resized(picture: NDArray[np.floating], shape: tuple[int, int]) -> NDArray[np.floating]:
    """Resize every colour."""
    planes: list[NDArray[np.floating]] = [resize(picture[..., colour], shape) for colour in range(picture.shape[2])]
    return np.stack(planes, axis=2)


def recovery_text(model: ROAD, truth: Planted, written: Callable[[float], str] = "{:.0e}".format) -> str:
    """Say in words how many planted atoms were found, and how near the learned ones are.

    Parameters
    ----------
    model : ROAD
    truth : Planted
    written : callable
        Writes an error.

    Examples
    --------
    >>> from roadict.synthetic import planted
    >>> truth = planted(100, 4, 3, sparsity=1, random_state=0)
    >>> model = ROAD(3)
    >>> model.components_ = -truth.dictionary
    >>> recovery_text(model, truth)
    'all 3 atoms found, largest error 0e+00'
    """
    learned = np.nan_to_num(aligned_atoms(model.components_, truth.dictionary))
    errors = np.linalg.norm(truth.dictionary - learned, axis=1)
    found, n_atoms = found_atoms(model.components_, truth.dictionary), len(errors)
    if found == n_atoms:
        return f"all {plural(n_atoms, 'atom')} found, largest error {written(float(errors.max()))}"
    return f"{of(found, n_atoms, 'atom')} found; median error {written(float(np.median(errors)))}"


def _pairs(truth: Planted, model: ROAD) -> list[Pair]:
    return [
        Pair(data_uri(png(atom_sheet(true[None]))), data_uri(png(atom_sheet(own[None]))), float(true @ own))
        for true, own in zip(truth.dictionary, aligned_atoms(model.components_, truth.dictionary), strict=True)
    ]
