"""The page of the demo: planted and learned atoms, and a picture enlarged with a dictionary."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
from roadict.pictures.superresolution import ENLARGING, enlarging_cost, training_stages
from roadict.progress.compiling import MIN_SECONDS
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import silent
from roadict.progress.words import duration
from roadict.synthetic import Planted

if TYPE_CHECKING:
    from roadict.runs.history import History

SCALE = 3
ATOMS = 128
SIDE = 150
"""Side of the training pictures: large enough to learn from in a second or two."""
FOUND = 0.99
ROUNDING = 1e-6
"""Recovery error up to which atoms count as equal."""
POINTS = 40
"""Iterations in the figure of the run."""


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


def found_atoms(model: ROAD, truth: Planted) -> int:
    """Return the number of planted atoms that were found: with a learned one of |cosine| above 0.99."""
    indices, _ = match_atoms(model.components_, truth.dictionary)
    return int((np.abs(np.sum(truth.dictionary * model.components_[indices], axis=1)) > FOUND).sum())


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


def make_demo_page(truth: Planted, model: ROAD, times: Times, seed: int, report: Progress = silent) -> str:
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
        headline=headline(found_atoms(model, truth), len(truth.dictionary), times),
        found=found_atoms(model, truth),
        recovery=recovery_text(dictionary_error(model.components_, truth.dictionary)),
        iterations=model.n_iter_,
        learning=duration(times.learning),
        compiling=duration(times.compiling) if times.compiling >= MIN_SECONDS else "",
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
    model = SuperResolution(SCALE, approach="zeyde", n_components=ATOMS, max_iter=60, recipe=recipe, random_state=seed)
    whole = Stages({"training": training_stages(model, training).cost, ENLARGING: enlarging_cost(model, small)})
    model.fit(training, whole.part("training", report))
    by_road, bicubic = model.predict(small, whole.part(ENLARGING, report)), resize(small, cat.shape)
    given = np.kron(small, np.ones((SCALE, SCALE)))
    return [
        shown("input", psnr(given, cat), png(given)),
        shown("bicubic", psnr(bicubic, cat), png(bicubic)),
        shown("ROAD", psnr(by_road, cat), png(by_road), png(atom_sheet(model.predictor_.arrays()["high"]))),
        shown("original", None, png(cat)),
    ]


def recovery_text(error: float) -> str:
    """Say in words how far the learned atoms are from the planted ones.

    Examples
    --------
    >>> recovery_text(3e-17), recovery_text(0.0123)
    ('all atoms equal the planted ones, up to rounding', 'recovery error 0.012 (about 0.4 if none is recovered)')
    """
    if error < ROUNDING:
        return "all atoms equal the planted ones, up to rounding"
    return f"recovery error {error:.2g} (about 0.4 if none is recovered)"


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
