"""The page of the demo: planted and learned atoms, and a picture enlarged with a dictionary."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roadict.drawing.charts import Mark
from roadict.drawing.curves import Curve, Spread, line_plot
from roadict.drawing.markup import render
from roadict.drawing.raster import atom_sheet, data_uri, png
from roadict.drawing.shown import Shown, shown
from roadict.estimators import ROAD
from roadict.metrics import dictionary_error, match_atoms, psnr
from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.resize import luma, resize
from roadict.progress.terminal import Progress, silent
from roadict.synthetic import Planted

if TYPE_CHECKING:
    from roadict.runs.history import History

SCALE = 3
ATOMS = 128
SIDE = 150
"""Side of the training pictures: large enough to learn from in a second or two."""
FOUND = 0.99
POINTS = 40
"""Iterations in the figure of the run."""


@dataclass(frozen=True)
class Pair:
    """A planted atom and its matched learned one, as data URIs, and their correlation."""

    truth: str
    learned: str
    correlation: float


def make_demo_page(truth: Planted, model: ROAD, seconds: float, seed: int, report: Progress = silent) -> str:
    """Enlarge the picture and write the page.

    Parameters
    ----------
    truth : Planted
    model : ROAD
        Fitted to the planted samples.
    seconds : float
        Duration of the fit.
    seed : int
    report : callable, default=silent
        Called with steps done, steps in all, and a text.

    Returns
    -------
    str
        HTML.
    """
    pairs = _pairs(truth, model)
    lines = _run(model.history_)
    return render(
        "demo",
        "demo.html",
        seed=seed,
        n_samples=len(truth.data),
        n_features=truth.dictionary.shape[1],
        n_components=len(truth.dictionary),
        sparsity=int((truth.codes[0] != 0).sum()),
        found=sum(pair.correlation > FOUND for pair in pairs),
        error=dictionary_error(model.components_, truth.dictionary),
        iterations=model.n_iter_,
        seconds=seconds,
        pairs=pairs,
        lines=lines,
        figure=line_plot(
            lines,
            "iterations",
            y_label="relative size",
            log_x=True,
            title="residuals and data error of the run, and the data error of the fit returned",
            marks=_marks(model),
        ),
        pictures=enlarged(seed, report),
        picture_atoms=ATOMS,
    )


def enlarged(seed: int, report: Progress = silent) -> list[Shown]:
    """A cat three times larger: input, bicubic, ROAD, and original."""
    import skimage.data

    cat = luma(skimage.data.chelsea()[15:270, 75:405] / 255)
    training = [
        np.asarray(luma(getattr(skimage.data, name)() / 255))[50 : 50 + SIDE, 50 : 50 + SIDE]
        for name in ("coffee", "camera", "grass")
    ]
    small = resize(cat, tuple(length // SCALE for length in cat.shape))
    recipe = Recipe(max_samples=2000)
    model = SuperResolution(
        SCALE, approach="zeyde", n_components=ATOMS, max_iter=60, recipe=recipe, random_state=seed
    ).fit(training, report)
    by_road, bicubic = model.predict(small, report), resize(small, cat.shape)
    given = np.kron(small, np.ones((SCALE, SCALE)))
    return [
        shown("input", psnr(given, cat), png(given)),
        shown("bicubic", psnr(bicubic, cat), png(bicubic)),
        shown("ROAD", psnr(by_road, cat), png(by_road), png(atom_sheet(model.predictor_.arrays()["high"]))),
        shown("original", None, png(cat)),
    ]


def _pairs(truth: Planted, model: ROAD) -> list[Pair]:
    indices, signs = match_atoms(model.components_, truth.dictionary)
    learned = model.components_[indices] * signs[:, None]
    return [
        Pair(data_uri(png(atom_sheet(true[None]))), data_uri(png(atom_sheet(own[None]))), float(true @ own))
        for true, own in zip(truth.dictionary, learned, strict=True)
    ]


def _run(history: "History") -> list[Curve]:
    """Residuals and data error along the iterations, at a few points."""
    at = np.unique(np.geomspace(1, len(history["primal"]), POINTS).astype(int))
    lines = []
    for colour, name in enumerate((*history.residuals, "error")):
        points = {int(i): float(history[name][i - 1]) for i in at}
        lines.append(Curve(f"road-{name}", name, colour, {i: Spread(v, v, v, 1) for i, v in points.items()}))
    return lines


def _marks(model: ROAD) -> list[Mark]:
    """Mark of the returned fit, whose error differs from that of the last iteration."""
    finished = model.history_.finished
    if finished is None or finished.error == 0:
        return []
    return [Mark(model.n_iter_, finished.error, f"{finished.label}: data error {finished.error:.0e}")]
