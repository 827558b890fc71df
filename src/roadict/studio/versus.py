"""Two past runs side by side: their pictures or atoms, and their figures."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from roadict.drawing.grids import MAX_PICTURES, scale_of
from roadict.drawing.markup import render
from roadict.drawing.raster import data_uri, png
from roadict.estimators import load
from roadict.metrics import STABLE, match_atoms
from roadict.pictures import files
from roadict.studio import inputs
from roadict.studio.drawings import atom_tile
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
