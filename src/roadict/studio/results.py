"""What the page shows of a job that has ended, from its files and its status, so that it can be shown again."""

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from roadict.drawing.charts import Mark
from roadict.drawing.markup import render
from roadict.drawing.numbers import number
from roadict.estimators import load
from roadict.files.tables import read_matrix
from roadict.runs.history import Finished
from roadict.studio import choices, panels, uses
from roadict.studio.comparison import Comparison
from roadict.studio.drawings import atoms_picture, objective_curve, residual_curves, usage_bars
from roadict.studio.jobs import Job
from roadict.studio.verdict import found_atoms, messages, residuals_of, verdict

PHOTO = 400
"""Pixels of the longer side of the photo below a heat map."""
COURSE = "How the run went"


class Shown(NamedTuple):
    """HTML of a result: panel, what is looked at first, and details."""

    panel: str
    view: str
    details: str


def show_signals(job: Job, truth: Path | None = None) -> Shown:
    """Show a learned dictionary; ``truth`` is a file with the planted atoms of a sample."""
    model = load(job.result)
    judged = verdict(job, model)
    facts = {} if truth is None else {"planted atoms found": found_atoms(model.components_, np.load(truth))}
    facts |= {
        "atoms per signal": f"{model.atom_usage_.sum():.2f}",
        "relative error": number(model.error_),
        "iterations": f"{model.n_iter_:,}",
    }
    signals = read_matrix(job.source)
    described = uses.signal_uses(model.components_, model.codes_, signals, model.atom_usage_)
    view = _explorer(described, len(model.components_), "Click an atom to see it large, with its strongest users.")
    history, finished = model.history_, model.history_.finished
    curves = {name: history[name] for name in (*residuals_of(history), "error")}
    figures = {
        **_course(curves, [history["objective"].tolist()], model.tol, finished),
        "Share of the signals that use each atom.": usage_bars(model.atom_usage_),
        **choices.figures(model),
    }
    panel = panels.done(job, judged.kind, judged.title, messages(job, model), judged.notes, facts)
    return Shown(panel, view, render("studio", "details.html", title=COURSE, figures=figures))


def show_picture(job: Job, compared: Comparison, slider: str) -> Shown:
    """Show a picture: the loupe takes its two pictures from the element ``slider``; atoms with their places below."""
    status, parts = job.status, []
    if status.atoms is not None and compared.task != "upscale":
        plane = (np.asarray(compared.after.convert("L")) / 255).astype(np.float32)
        text = (
            "Click an atom to see where the result uses it. They are those that ROAD learned, before they are refined "
            f"on more patches; here each patch is coded by at most {uses.ATOMS_PER_PATCH}."
        )
        described = uses.place_uses(status.atoms, plane)
        parts.append(_explorer(described, len(status.atoms), text, _photo(compared.after)))
    if status.runs:
        curves = {name: np.asarray(values) for name, values in status.measures.items()}
        figures = _course(curves, status.runs, None)
        if status.atoms is not None and not parts:
            figures[f"{len(status.atoms)} atoms."] = atoms_picture(status.atoms)
        parts.append(render("studio", "details.html", title=COURSE, figures=figures))
    return Shown(panels.done(job), compared.loupe(slider), "".join(parts))


def _course(
    curves: Mapping[str, Any], runs: Sequence[Sequence[float]], tol: float | None, finished: Finished | None = None
) -> dict[str, str]:
    """Charts of a run by their captions, residuals first."""
    named = {panels.curve_name(name): values for name, values in curves.items()}
    last = len(runs[-1])
    errors, objectives = [], []
    if finished is not None:
        objectives = [Mark(last, finished.objective, finished.label)]
        errors = [Mark(last, finished.error, f"{finished.label}: {number(finished.error, 2)}")] * (finished.error > 0)
    residuals = [name for name in curves if name != "error"]
    tolerance = panels.bound_of(residuals[-1], tol) if tol and residuals else None
    return {
        panels.residual_caption(residuals, finished): residual_curves(named, errors, tolerance),
        panels.objective_caption(residuals): objective_curve(runs, objectives),
    }


def _explorer(described: dict[str, Any], count: int, text: str, photo: str = "") -> str:
    shown = len(described["atoms"])
    title = f"{count} atoms" if shown == count else f"{shown} of {count} atoms"
    return render("studio", "atoms.html", title=f"{title}, most used first", text=text, uses=described, photo=photo)


def _photo(picture: Image.Image) -> str:
    """A small copy as a data URI."""
    small = picture.copy()
    small.thumbnail((PHOTO, PHOTO))
    file = io.BytesIO()
    small.save(file, "jpeg", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
