"""Two past runs side by side: their pictures or atoms, and their figures."""

from typing import Any

import numpy as np
from PIL import Image

from roadict.drawing.markup import render
from roadict.drawing.raster import data_uri, png
from roadict.estimators import load
from roadict.metrics import STABLE, match_atoms
from roadict.pictures import files
from roadict.studio import inputs
from roadict.studio.drawings import atoms_picture
from roadict.studio.jobs import Job
from roadict.studio.past import facts
from roadict.wording import agree, of

MAX_SIDE = 900
"""Pixels of the longer side of a picture."""


def side_by_side(first: Job, second: Job) -> str:
    """Show two finished jobs next to each other, with what differs."""
    kinds = [job.command.task == "learn" for job in (first, second)]
    if all(kinds):
        models = [load(job.result) for job in (first, second)]
        drawn, verdict = _atoms(*(model.components_ for model in models))
    elif not any(kinds):
        drawn, verdict = _pictures(*(files.read_picture(job.result) for job in (first, second)))
    else:
        raise ValueError("A picture and signals cannot be compared; tick two runs of one kind")
    told = [facts(job) | {"Command": job.command.text()} for job in (first, second)]
    rows = {name: [side.get(name, "–") for side in told] for name in told[0] | told[1]}
    return render("studio", "versus.html", verdict=verdict, drawn=drawn, rows=rows)


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
    """Draw the atoms; those of the second in the order, and with the signs, of the most similar of the first."""
    if first.shape[1] != second.shape[1]:
        return [atoms_picture(first), atoms_picture(second)], "The atoms have different lengths."
    partners, signs = match_atoms(second, first)
    matched = partners >= 0
    others = np.setdiff1d(np.arange(len(second)), partners)
    aligned = np.concatenate([signs[matched, None] * second[partners[matched]], second[others]])
    cosines = np.sum(first[matched] * aligned[: matched.sum()], axis=1)
    similar = int(np.sum(cosines >= STABLE))
    share = f"{of(similar, len(first), 'atom')} on the left {agree(similar, 'has', 'have')} a partner on the right"
    text = f"{share} (correlation of {STABLE} or more); they are drawn in the same order."
    return [atoms_picture(first), atoms_picture(aligned)], text
