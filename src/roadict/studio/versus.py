"""Two past runs side by side: their pictures or atoms, and their figures."""

import filecmp
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from roadict.drawing.grids import MAX_PICTURES, scale_of
from roadict.drawing.markup import render
from roadict.drawing.numbers import number
from roadict.drawing.raster import data_uri, png
from roadict.estimators import load
from roadict.metrics import STABLE, match_atoms
from roadict.pictures import files
from roadict.progress.words import duration
from roadict.studio import inputs, methods
from roadict.studio.drawings import atom_tile
from roadict.studio.jobs import Job
from roadict.studio.verdict import iterations
from roadict.wording import agree, of

MAX_SIDE = 900
"""Pixels of the longer side of a picture."""
_OTHER_PICTURES = "The two runs are of different pictures."
_ENDS = {"max_iter": "not converged", "interrupted": "stopped", "non-finite": "ended by numbers that are not finite"}
"""Reasons to stop that are no words."""


def side_by_side(first: Job, second: Job) -> str:
    """Show two finished jobs next to each other, with what differs."""
    jobs = (first, second)
    kinds = [job.command.task == "learn" for job in jobs]
    if all(kinds):
        models = load(first.result), load(second.result)
        drawn, verdict = _atoms(*(model.components_ for model in models))
        reason = methods.why_not_compared(jobs, models)
        told = [_facts_of_model(model, objective=not reason) for model in models]
    elif not any(kinds):
        drawn, verdict = _pictures(*(files.read_picture(job.result) for job in jobs))
        reason = "" if filecmp.cmp(first.source, second.source, shallow=False) else _OTHER_PICTURES
        told = [
            {"Ended": "stopped, with the dictionary learned so far" if job.state == "stopped" else "done"}
            for job in jobs
        ]
    else:
        raise ValueError("A picture and signals cannot be compared; tick two runs of one kind")
    sides = [_facts(job, own) for job, own in zip(jobs, told, strict=True)]
    rows = {name: [side.get(name, "–") for side in sides] for name in sides[0] | sides[1]}
    return render("studio", "versus.html", verdict=verdict, drawn=drawn, rows=rows, reason=reason)


def _facts(job: Job, own: dict[str, str]) -> dict[str, str]:
    """What a job tells about itself, by name."""
    task = job.command.task
    known = {"Task": task, "Signals" if task == "learn" else "Picture": job.source.name, **own}
    known |= {} if job.seconds is None else {"Time": duration(job.seconds)}
    return known | {"Command": job.command.text()}


def _facts_of_model(model: Any, objective: bool) -> dict[str, str]:
    shown = {
        "Method": methods.METHODS[getattr(model, "update", methods.ROAD)],
        "Atoms": f"{len(model.components_)}",
        "Relative error": number(model.error_),
        "Coefficients per signal": f"{model.atom_usage_.sum():.2f}",
    }
    shown |= {"Objective": f"{model.objective_:.6g}"} if objective else {}
    return shown | {"Ended": f"{_ENDS.get(model.stop_reason_, model.stop_reason_)} after {iterations(model)}"}


def _pictures(first: Any, second: Any) -> tuple[list[str], str]:
    shown = []
    for picture in (first, second):
        image = inputs.for_screen(picture)
        image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
        shown.append(f'<img class="rd-picture" alt="Result" src="{data_uri(png(np.asarray(image)))}">')
    if first.shape != second.shape or first.dtype != second.dtype:
        return shown, "The two pictures differ in size or colours."
    scale = 255 / np.iinfo(first.dtype).max
    difference = scale * float(np.abs(first.astype(np.float32) - second.astype(np.float32)).mean())
    if difference == 0:
        return shown, "The two pictures are equal."
    return shown, f"The two pictures differ by {difference:.2g} of 255 grey levels on average."


def _atoms(first: Any, second: Any) -> tuple[list[str], str]:
    """Draw atoms with their numbers; those of the second in the places, and with the signs, of their partners."""
    tiles = partial(_tiles, limit=max(scale_of(first), scale_of(second)))
    if first.shape[1] != second.shape[1]:
        return [tiles(atoms, range(len(atoms)), {}) for atoms in (first, second)], "The atoms have different lengths."
    partners, signs = match_atoms(second, first)
    rows = [*partners, *np.setdiff1d(np.arange(len(second)), partners)]
    turned = second[rows] * np.r_[signs, np.ones(len(rows) - len(signs))][:, None]
    paired = (partners >= 0) & (np.sum(first * turned[: len(first)], axis=1) >= STABLE)
    pairs = {int(k): (int(k) + 1, int(partners[k]) + 1) for k in np.flatnonzero(paired)}
    some = f"{of(len(pairs), len(first), 'atom')} on the left {agree(len(pairs), 'has', 'have')}"
    text = f"{some} a partner on the right (correlation of {STABLE} or more)."
    if pairs:
        left, right = next(iter(pairs.values()))
        text += (
            f" Partners are in the same place: {left} ↔ {right} is atom {left} on the left and {right} on the right."
        )
    return [tiles(first, range(len(first)), pairs), tiles(turned, rows, pairs)], text


def _tiles(atoms: Any, rows: Sequence[int], pairs: Mapping[int, tuple[int, int]], limit: float) -> str:
    """Draw atoms with the numbers of pairs by their place, others with that of their row; −1 is an empty place."""
    names = {place: f"{left} ↔ {right}" for place, (left, right) in pairs.items()}
    tiles = [
        (atom_tile(atom, limit, f"atom {row + 1}") if row >= 0 else "", names.get(place, f"{row + 1}"), place in names)
        for place, (atom, row) in enumerate(zip(atoms[:MAX_PICTURES], rows, strict=False))
    ]
    return render("studio", "tiles.html", tiles=tiles)
