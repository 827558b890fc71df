"""Figures of atoms in grids: pictures, curves, or rows of colours. Matplotlib is imported on first use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.raster import mosaic
from roadict.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

MAX_PICTURES = 256
MAX_CURVES = 64
TRUE, LEARNED, BAD, QUIET = "#1f4e79", "#d1601f", "#b3151b", "#666666"
# Inches. Text above the cells, and the free border around everything.
HEAD, MARGIN, MIN_WIDTH = 0.85, 0.3, 5.2
_COLORMAP = "RdBu_r"
_TILE_PIXELS = 48  # at least, so that gaps between tiles can be a small part of a tile


class Labels(NamedTuple):
    """Order in which atoms are drawn; text, colour and frame of each atom; a note and a name for the order."""

    order: NDArray[np.intp]
    texts: list[str]
    colors: list[str]
    framed: NDArray[np.bool_]
    note: str
    rank: str


def side_of(n_features: int) -> int:
    """Side of the square picture of `n_features` pixels, 0 if there is none."""
    side = math.isqrt(n_features)
    return side if side * side == n_features else 0


def omitted(shown: int, total: int) -> str:
    """Say how many atoms are left out, if any."""
    return f" · first {shown} shown, {total - shown} omitted" if shown < total else ""


def headed_figure(width: float, height: float, heading: str, note: str) -> Figure:
    """Make a figure of this size in inches with a centred heading and a grey note below it."""
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.text(0.5, 1 - 0.16 / height, heading, fontsize=12, ha="center", va="top", parse_math=False)
    figure.text(0.5, 1 - 0.45 / height, note, fontsize=8, color=QUIET, ha="center", va="top")
    return figure


def cell_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes without ticks at a position in inches from the upper left corner."""
    total_width, total_height = figure.get_size_inches()
    bottom = total_height - top - height
    bounds = (left / total_width, bottom / total_height, width / total_width, height / total_height)
    axes = figure.add_axes(bounds, xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color="#bbbbbb", lw=0.6)
    return axes


def scale_of(values: NDArray[np.floating]) -> float:
    """Largest magnitude, or 1 for zeros, so that colour and axis limits are never empty."""
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def draw_picture(axes: Axes, picture: FloatArray, limit: float = 1.0, **options: Any) -> None:
    """Draw a matrix in colours from minus the limit to the limit."""
    axes.imshow(picture, cmap=_COLORMAP, vmin=-limit, vmax=limit, interpolation="nearest", **options)


def draw_curve(axes: Axes, atom: FloatArray, color: str, limit: float) -> None:
    """Draw an atom as a curve."""
    marker = "." if atom.size <= 24 else ""
    axes.axhline(0, color="#bbbbbb", lw=0.6)
    axes.plot(atom, color=color, lw=1.1, marker=marker, ms=3)
    axes.set_ylim(-1.12 * limit, 1.12 * limit)
    axes.margins(x=0.04)


def _grid(count: int, cell: tuple[float, float], stretch: float) -> tuple[int, int]:
    """Columns and rows of a grid whose outline is about `stretch` times as wide as high."""
    if count <= 4:
        return count, 1
    rows = math.ceil(count / math.ceil(math.sqrt(count * stretch * cell[1] / cell[0])))
    columns = math.ceil(count / rows)  # again, so that the last row is not nearly empty
    return columns, math.ceil(count / columns)


def picture_grid(atoms: FloatArray, labels: Labels, heading: str) -> Figure:
    """Square pictures as one mosaic, which stays fast for hundreds of atoms."""
    shown = labels.order[:MAX_PICTURES]
    labelled = any(labels.texts) and len(shown) <= MAX_CURVES
    tile = min(1.1, max(0.42, 7.5 / math.ceil(math.sqrt(1.4 * len(shown)))))
    gap = 0.06 * tile + 0.02
    zoom = math.ceil(_TILE_PIXELS / (side := side_of(atoms.shape[1])))
    pixel = tile / (zoom * side)
    gaps = round((0.2 if labelled else gap) / pixel), round(gap / pixel)
    pitch = tile + gaps[1] * pixel, tile + gaps[0] * pixel
    columns, _ = _grid(len(shown), pitch, 1.4)
    sheet = mosaic(atoms[shown], columns, zoom, gaps)
    height, grid_width = (pixel * length for length in sheet.shape)
    grid_height = height + (gaps[0] * pixel if labelled else 0)
    width = max(MIN_WIDTH, grid_width + 2 * MARGIN + 0.9)
    note = "each atom on its own scale, white is zero" + labels.note + omitted(len(shown), len(atoms))
    figure = headed_figure(width, HEAD + grid_height + MARGIN, heading, note)
    left = (width - grid_width) / 2
    axes = cell_at(figure, left, HEAD, grid_width, grid_height)
    axes.set_axis_off()
    draw_picture(axes, sheet, extent=(0, grid_width, height, 0))
    row, column = np.divmod(np.arange(len(shown)), columns)
    x, y = column * pitch[0], row * pitch[1]
    corners = np.array([[0, 0, 1, 1, 0], [0, 1, 1, 0, 0]])[:, :, None] * tile
    framed = labels.framed[shown]
    for group, color, line in ((~framed, "#aaaaaa", 0.5), (framed, BAD, 1.5)):
        axes.plot(x[group] + corners[0], y[group] + corners[1], color=color, lw=line)
    if labelled:
        for atom, middle, below in zip(shown, x + tile / 2, y + tile + 0.03, strict=True):
            color = labels.colors[atom]
            axes.text(middle, below, labels.texts[atom], fontsize=7, color=color, ha="center", va="top")
    # The picture does not reach below the labels of the last row.
    axes.set(xlim=(0, grid_width), ylim=(grid_height, 0), aspect="auto")
    _add_colorbar(figure, left + grid_width + 0.15, min(grid_height, 1.6), 1.0, ("−max", "0", "max"))
    return figure


def curve_grid(atoms: FloatArray, labels: Labels, heading: str) -> Figure:
    """Small curves on common axes limits; atoms count from 1."""
    cell, gap = (1.25, 0.8), (0.12, 0.27)
    pitch = (cell[0] + gap[0], cell[1] + gap[1])
    columns, rows = _grid(len(atoms), pitch, 1.4)
    limit = scale_of(atoms)
    width = max(MIN_WIDTH, columns * pitch[0] + 2 * MARGIN)
    note = f"all between −{limit:.3g} and {limit:.3g}" + labels.note
    figure = headed_figure(width, HEAD + rows * pitch[1] + 0.25, heading, note)
    left = (width - columns * pitch[0] + gap[0]) / 2
    for place, atom in enumerate(labels.order):
        row, column = divmod(place, columns)
        axes = cell_at(figure, left + column * pitch[0], HEAD + 0.12 + row * pitch[1], *cell)
        draw_curve(axes, atoms[atom], TRUE, limit)
        axes.set_title(f"{atom + 1}   {labels.texts[atom]}".strip(), fontsize=7, color=labels.colors[atom], pad=2)
        if labels.framed[atom]:
            axes.spines[:].set(color=BAD, lw=1.5)
    return figure


def heat_map(atoms: FloatArray, labels: Labels, heading: str) -> Figure:
    """One row of colours for each atom, for dictionaries too large for curves; rows and columns count from 1."""
    limit = scale_of(atoms)
    height = min(9.0, max(4.0, 0.03 * len(atoms)))
    figure = headed_figure(8.0, HEAD + height + 0.6, heading, "one atom per row" + labels.note)
    axes = figure.add_axes((0.1, 0.55 / (HEAD + height + 0.6), 0.76, height / (HEAD + height + 0.6)))
    extent = (0.5, atoms.shape[1] + 0.5, len(atoms) + 0.5, 0.5)
    draw_picture(axes, atoms[labels.order], limit, aspect="auto", extent=extent)
    if labels.framed.any():
        axes.axhspan((~labels.framed).sum() + 0.5, len(atoms) + 0.5, fill=False, color=BAD, lw=1.5)
    axes.set_xlabel("feature")
    axes.set_ylabel(labels.rank)
    _add_colorbar(figure, 0.88 * 8.0, height, limit, (f"−{limit:.3g}", "0", f"{limit:.3g}"))
    return figure


def _add_colorbar(figure: Figure, left: float, height: float, limit: float, labels: tuple[str, str, str]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = cell_at(figure, left, HEAD, 0.12, height)
    bar = figure.colorbar(ScalarMappable(Normalize(-limit, limit), _COLORMAP), cax=axes)
    bar.set_ticks([-limit, 0, limit], labels=labels)
    bar.ax.tick_params(labelsize=7, length=2)
    bar.outline.set(lw=0.5)
