"""What the page shows of a job that has ended, from its files and its status, so that it can be shown again."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadict.drawing.charts import Mark
from roadict.drawing.grids import MAX_PICTURES
from roadict.drawing.markup import render
from roadict.drawing.numbers import number
from roadict.estimators import load
from roadict.pictures import SuperResolution
from roadict.pictures.upscaling import MODEL_FROM, MODEL_SAVED
from roadict.plotting import found_atoms
from roadict.runs.history import Finished
from roadict.studio import choices, inputs, panels, uses
from roadict.studio.comparison import Comparison
from roadict.studio.drawings import atoms_picture, objective_curve, residual_curves, usage_bars
from roadict.studio.jobs import Job, JobStatus
from roadict.studio.naming import as_fields
from roadict.studio.verdict import messages, residuals_of, verdict
from roadict.wording import of, plural

PHOTO = 400
"""Pixels of the longer side of the photo below a heat map."""
COURSE = "How the run went"


class End(NamedTuple):
    """How a run ended: in words, and as the ring that marks it in the charts."""

    text: str
    objective: float
    error: float
    label: str


class Shown(NamedTuple):
    """HTML of a result: panel, what is looked at first, and details."""

    panel: str
    view: str
    details: str


def show_signals(job: Job, truth: Path | None = None) -> Shown:
    """Show a learned dictionary; ``truth`` is a file with the planted atoms of a sample."""
    model = load(job.result)
    judged = verdict(job, model)
    facts = {} if truth is None else {"planted atoms found": _found(model.components_, np.load(truth))}
    facts |= {
        "atoms per signal": f"{model.atom_usage_.sum():.2f}",
        "relative error": number(model.error_),
        "iterations": f"{model.n_iter_:,}",
    }
    signals = inputs.read_table(job.source)
    stability = getattr(model, "atom_stability_", None)
    described = uses.signal_uses(model.components_, model.codes_, signals, model.atom_usage_, stability)
    text = "Click an atom to see it large, with its strongest users."
    if any(atom["doubted"] for atom in described["atoms"]):
        text += " A dashed frame marks atoms that do not recur in halves of the data: they are not to be trusted."
    view = _explorer(described, len(model.components_), text)
    history = model.history_
    curves = {name: history[name] for name in (*residuals_of(history), "error")}
    figures = {
        **_course(curves, [history["objective"].tolist()], _end_of_fit(history.finished), model.tol),
        "Share of the signals that use each atom.": usage_bars(model.atom_usage_),
        **choices.figures(model),
    }
    lines, notes = ([as_fields(line, job.command) for line in told] for told in (messages(job), judged.notes))
    panel = panels.done(job, judged.kind, judged.title, lines, notes, facts)
    return Shown(panel, view, render("studio", "details.html", title=COURSE, figures=figures))


def show_picture(job: Job, compared: Comparison, slider: str) -> Shown:
    """Show a picture: the loupe takes its two pictures from the element ``slider``; atoms with their places below."""
    status, explorer, course = job.status, _picture_atoms(job, compared), ""
    if status.runs:
        curves = {name: np.asarray(values) for name, values in status.measures.items()}
        figures = _course(curves, status.runs, _end_of_learning(status))
        if status.atoms is not None and not explorer:
            figures[f"{_count(len(status.atoms))}, in features of patches."] = atoms_picture(status.atoms)
        course = render("studio", "details.html", title=COURSE, figures=figures)
    lines, notes = ([as_fields(line, job.command) for line in told] for told in (job.messages, job.warnings))
    return Shown(panels.done(job, lines=lines, notes=notes), compared.loupe(slider, job.folder), explorer + course)


def _picture_atoms(job: Job, compared: Comparison) -> str:
    """Atoms with the places of the picture that use them; nothing if there are none, or their model has gone."""
    if compared.task == "upscale":
        if (model := _model(job)) is None:
            return ""
        case, number_of = ("is most like it", "one") if model.approach == "anchored" else ("uses it alone", "a few")
        text = (
            "Click an atom to see where the picture uses it. An atom is drawn as the detail that the model adds where "
            f"a patch {case}. Each patch uses {number_of}, with either sign, and flat patches none."
        )
        described, count = uses.detail_uses(model, inputs.read_picture(job.source)), len(model.predictor_.atoms)
    elif (atoms := job.status.atoms) is not None:
        plane = (np.asarray(compared.after.convert("L")) / 255).astype(np.float32)
        text = (
            "Click an atom to see where the result uses it. They are those that ROAD learned, before they are refined "
            f"on more patches; here each patch is coded by at most {uses.ATOMS_PER_PATCH}."
        )
        described, count = uses.place_uses(atoms, plane), len(atoms)
    else:
        return ""
    return _explorer(described, count, text, _photo(compared.after))


def _course(
    curves: Mapping[str, Any], runs: Sequence[Sequence[float]], end: End | None, tol: float = 0
) -> dict[str, str]:
    """Charts of a run by their captions, residuals first; without a tolerance there is no line for it.

    A run of one iteration has none.
    """
    if len(runs[-1]) < 2:
        return {}
    named = {panels.curve_name(name): values for name, values in curves.items()}
    residuals = [name for name in curves if name != "error"]
    tolerance = panels.bound_of(residuals[-1], tol) if tol and residuals else None
    caption, last, errors, objectives = panels.residual_caption(residuals), len(runs[-1]), [], []
    if end is not None:
        caption = f"{caption} {end.text}"
        objectives = [Mark(last, end.objective, end.label)]
        errors = [Mark(last, end.error, f"{end.label}: {number(end.error, 2)}")] * (end.error > 0)
    return {
        caption: residual_curves(named, errors, tolerance),
        panels.objective_caption(residuals): objective_curve(runs, objectives),
    }


def _end_of_fit(finished: Finished | None) -> End | None:
    if finished is None:
        return None
    text = "The ring is the returned fit."
    if finished.exact:
        text = "The exact finish ends the run early: it solves for the atoms, up to rounding (ring)."
    return End(text, finished.objective, finished.error, finished.label)


def _end_of_learning(status: JobStatus) -> End:
    text = (
        "For a picture ROAD runs a fixed number of iterations, and to no tolerance, as only the picture counts. "
        "The ring is the last one, whose atoms are used."
    )
    return End(text, status.runs[-1][-1], status.measures.get("error", [math.nan])[-1], "atoms used")


def _model(job: Job) -> SuperResolution | None:
    """Read the model of an upscaling from the file that its output names; None if there is none, or it has gone."""
    for line in job.status.lines:
        if line.startswith((MODEL_FROM, MODEL_SAVED)):
            with contextlib.suppress(OSError, ValueError):
                return SuperResolution.load(line.removeprefix(MODEL_FROM).removeprefix(MODEL_SAVED))
    return None


def _explorer(described: dict[str, Any], count: int, text: str, photo: str = "") -> str:
    title = f"{_count(count)}, most used first"
    return render("studio", "atoms.html", title=title, text=text, uses=described, photo=photo)


def _found(atoms: NDArray[np.floating], truth: NDArray[np.floating]) -> str:
    return f"{found_atoms(atoms, truth)} of {len(truth)}"


def _count(atoms: int) -> str:
    """How many atoms are drawn."""
    return plural(atoms, "atom") if atoms <= MAX_PICTURES else of(MAX_PICTURES, atoms, "atom")


def _photo(picture: Image.Image) -> str:
    """A small copy as a data URI."""
    small = picture.copy()
    small.thumbnail((PHOTO, PHOTO))
    return inputs.thumbnail_uri(small)
