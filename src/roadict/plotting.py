"""Figures of dictionaries and of the run that learned them.

Figures are made without pyplot, so they need no display and leave no global state behind; `save_figure`
writes them, and notebooks show them. Matplotlib is imported on first use.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.drawing.raster import mosaic
from roadict.extras import require
from roadict.files.atomic import atomic_write
from roadict.linalg import unit_rows
from roadict.metrics import STABLE, match_atoms
from roadict.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


__all__ = ["atoms_figure", "compare_atoms_figure", "history_figure", "save_figure"]

FloatArray = NDArray[np.float64]

MAX_PICTURES = 256
MAX_CURVES = 64
MAX_PAIRS = 32
_FORMATS = (".png", ".pdf", ".svg")
_COLORMAP = "RdBu_r"
_TRUE, _LEARNED, _ERROR, _BAD, _QUIET = "#1f4e79", "#d1601f", "#3a8a4d", "#b3151b", "#666666"
_CURVES = {
    "primal": "primal residual",
    "dual": "dual residual",
    "code_change": "change of codes",
    "atom_change": "change of atoms",
    "stationarity": "stationarity",
    "error": "data error",
}
# Inches. Text above the cells, and the free border around everything.
_HEAD, _MARGIN, _MIN_WIDTH = 0.85, 0.3, 5.2
_TILE_PIXELS = 48  # at least, so that gaps between tiles can be a small part of a tile


def atoms_figure(
    components: ArrayLike,
    title: str | None = None,
    usage: ArrayLike | None = None,
    stability: ArrayLike | None = None,
) -> Figure:
    """Draw the atoms of a dictionary.

    Atoms whose length is a square number become square pictures (at most 256; the figure states how many
    are omitted), others become curves, and more than 64 of those a heat map. Colours are symmetric about
    zero.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
    title : str, default=None
        None: the number and length of the atoms.
    usage : array-like of shape (n_components,), default=None
        Share of samples that use each atom. Atoms are then drawn most used first and labelled with it.
    stability : array-like of shape (n_components,), default=None
        As returned by ``roadict.atom_stability``. Atoms are then drawn most stable first and labelled with it instead,
        and those below ``roadict.metrics.STABLE``, not to be trusted, have a red frame.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = atoms_figure(np.eye(9), title="Nine dots")
    >>> figure.texts[0].get_text()
    'Nine dots'
    """
    atoms = checks.matrix("components", components).astype(np.float64)
    labels = _labels(
        None if usage is None else _per_atom("usage", usage, len(atoms)),
        None if stability is None else _per_atom("stability", stability, len(atoms)),
        len(atoms),
    )
    heading = title or f"{plural(len(atoms), 'atom')} of {plural(atoms.shape[1], 'feature')}"
    if _side(atoms.shape[1]):
        return _picture_grid(atoms, labels, heading)
    if len(atoms) <= MAX_CURVES:
        return _curve_grid(atoms, labels, heading)
    return _heat_map(atoms, labels, heading)


def compare_atoms_figure(truth: ArrayLike, estimated: ArrayLike, title: str | None = None) -> Figure:
    """Draw true atoms above their matched, sign-aligned learned ones.

    Each pair carries its absolute correlation, in red below 0.9. The first 32 true atoms are shown.

    Parameters
    ----------
    truth : array-like of shape (n_components, n_features)
    estimated : array-like of shape (n_estimated, n_features)
    title : str, default=None
        None: the number of atoms and the recovery error.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = compare_atoms_figure(np.eye(4), -np.eye(4)[::-1])
    >>> [text.get_text() for text in figure.texts][0]
    'True and learned atoms: 4 of 4 correlate above 0.99'
    """
    true, _ = unit_rows(checks.matrix("truth", truth))
    learned, _ = unit_rows(checks.matrix("estimated", estimated))
    indices, signs = match_atoms(learned, true)
    aligned = np.where((indices >= 0)[:, None], learned[indices] * signs[:, None], np.nan)
    strength = np.nan_to_num(np.sum(aligned * true, axis=1))
    found = int((strength > 0.99).sum())
    heading = title or f"True and learned atoms: {found} of {len(true)} correlate above 0.99"
    shown = min(len(true), MAX_PAIRS)
    note = f"|correlation| below each pair, {strength.mean():.4f} on average" + _omitted(shown, len(true))

    side = _side(true.shape[1])
    cell = (0.9, 0.9) if side else (1.2, 0.75)
    columns = min(8, shown)
    blocks = math.ceil(shown / columns)
    step_x, step_y = cell[0] + 0.14, 2 * cell[1] + 0.52
    width = max(_MIN_WIDTH, columns * step_x + 2 * _MARGIN + 0.3)
    figure = _figure(width, _HEAD + blocks * step_y + 0.1, heading, note)
    left = (width - columns * step_x) / 2 + 0.14
    for pair in range(shown):
        block, column = divmod(pair, columns)
        x, y = left + column * step_x, _HEAD + block * step_y
        upper = _cell(figure, x, y, *cell)
        lower = _cell(figure, x, y + cell[1] + 0.06, *cell)
        _draw_pair(upper, lower, true[pair], aligned[pair], strength[pair])
        if column == 0:
            for axes, label, color in ((upper, "true", _TRUE), (lower, "learned", _LEARNED)):
                axes.set_ylabel(label, fontsize=8, color=color, labelpad=4)
    return figure


def history_figure(
    history: Mapping[str, ArrayLike], title: str | None = None, finished: tuple[float, float, str] | None = None
) -> Figure:
    """Draw how a run converged: objective on the left, residuals and data error (log scale) on the right.

    Parameters
    ----------
    history : mapping of str to array-like of shape (n_iterations,)
        Needs objective and error, and either primal and dual or code_change and atom_change; stationarity is drawn and
        rho shown in the heading, if present. Other keys are ignored. Zeros and NaN leave gaps on the log scale.
    title : str, default=None
        None: the number of iterations.
    finished : (float, float, str), default=None
        Objective and error of the returned fit, drawn as a marker, and its label.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> falling = 0.9 ** np.arange(50)
    >>> figure = history_figure({key: falling for key in ("objective", "primal", "dual", "error")})
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['objective', 'relative size (log scale)']
    """
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    first, second = ("code_change", "atom_change") if "code_change" in history else ("primal", "dual")
    needed = ("objective", first, second, "error")
    missing = [key for key in needed if key not in history]
    if missing:
        raise ValueError(f"history lacks {', '.join(missing)}; pass the history_ of a fitted model")
    drawn = (*needed, "stationarity") if "stationarity" in history else needed
    curves = {key: np.asarray(history[key], dtype=np.float64) for key in drawn}
    length = curves["objective"].size
    if length == 0 or any(curve.shape != (length,) for curve in curves.values()):
        shapes = ", ".join(f"{key} {curve.shape}" for key, curve in curves.items())
        raise ValueError(f"history must hold vectors of one length of at least 1, not {shapes}; fit first")

    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle(title or f"{length} iteration{'s' * (length > 1)}{_penalty_text(history)}", fontsize=12)
    left, right = figure.subplots(1, 2)
    iterations = np.arange(1, length + 1)
    marker = "o" if length < 4 else ""
    left.plot(iterations, curves["objective"], color=_TRUE, lw=1.6, marker=marker)
    left.set(xlabel="iteration", ylabel="objective")
    for key, color in ((first, _TRUE), (second, _LEARNED), ("stationarity", _BAD), ("error", _ERROR)):
        if key not in curves:
            continue
        label = _CURVES[key]
        positive = np.where(curves[key] > 0, curves[key], np.nan)
        right.plot(iterations, positive, label=label, color=color, lw=1.6, marker=marker)
    right.set_yscale("log")
    right.set(xlabel="iteration", ylabel="relative size (log scale)")
    if finished is not None:
        _mark_finished(left, right, length, finished)
    right.legend(loc="best", frameon=True, framealpha=0.85, fontsize=9)
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0, length + 1)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _mark_finished(left: Axes, right: Axes, length: int, finished: tuple[float, float, str]) -> None:
    """Mark the returned fit: its objective and error are not those of the last iteration."""
    objective, error, label = finished
    left.plot(length, objective, "D", color=_TRUE, mfc="none", ms=7, label=label)
    left.legend(loc="best", frameon=True, framealpha=0.85, fontsize=9)
    if error > 0:
        right.plot(length, error, "D", color=_ERROR, mfc="none", ms=7, label=f"data error, {label}")


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: float = 150) -> None:
    """Write a figure in the format of its suffix; an existing file is replaced only on success.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : str or path-like
        Ends in ``.png``, ``.pdf`` or ``.svg``.
    dpi : float, default=150
        Pixels per inch of a ``.png``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "atoms.png"
    >>> save_figure(atoms_figure(np.eye(4)), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise ValueError(f"{os.fspath(path)} must end in one of {', '.join(_FORMATS)}; change its extension")
    with atomic_write(path) as file:
        figure.savefig(file, format=suffix[1:], dpi=dpi)


def _per_atom(name: str, values: ArrayLike, n_atoms: int) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (n_atoms,) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} has shape {numbers.shape}; pass {n_atoms} finite numbers, one for each atom")
    return numbers


class _Labels(NamedTuple):
    """Order in which atoms are drawn; text, colour and frame of each atom; a note and a name for the order."""

    order: NDArray[np.intp]
    texts: list[str]
    colors: list[str]
    framed: NDArray[np.bool_]
    note: str
    rank: str


def _labels(shares: FloatArray | None, stability: FloatArray | None, n_atoms: int) -> _Labels:
    framed = np.zeros(n_atoms, dtype=bool)
    if stability is not None:
        framed = stability < STABLE
        note = f"\nmost stable first, {framed.sum()} below {STABLE} (red): not to be trusted"
        texts, key, rank = [f"{value:.3f}" for value in stability], -stability, "atom, by rank of stability"
        colors = [_BAD if bad else _QUIET for bad in framed]
    elif shares is not None:
        unused = int((shares <= 0).sum())
        note = " · most used first" + (f", {unused} unused" if unused else "")
        texts = [f"{100 * share:.3g} %" if share > 0 else "unused" for share in shares]
        key, rank = -shares, "atom, by rank of usage"
        colors = [_QUIET if share > 0 else _BAD for share in shares]
    else:
        texts, colors, key, note, rank = [""] * n_atoms, [_QUIET] * n_atoms, np.zeros(n_atoms), "", "atom"
    return _Labels(np.argsort(key, kind="stable"), texts, colors, framed, note, rank)


def _side(n_features: int) -> int:
    """Side of the square picture of `n_features` pixels, 0 if there is none."""
    side = math.isqrt(n_features)
    return side if side * side == n_features else 0


def _omitted(shown: int, total: int) -> str:
    return f" · first {shown} shown, {total - shown} omitted" if shown < total else ""


def _penalty_text(history: Mapping[str, ArrayLike]) -> str:
    if "rho" not in history:
        return ""
    rho = np.asarray(history["rho"], dtype=np.float64)
    rho = rho[np.isfinite(rho)]
    if not len(rho):
        return ""
    first, last = f"{rho[0]:.4g}", f"{rho[-1]:.4g}"
    return f", ρ = {first}" + (f" → {last}" if last != first else "")


def _figure(width: float, height: float, heading: str, note: str) -> Figure:
    """Make a figure of this size in inches with a centred heading and a grey note below it."""
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.text(0.5, 1 - 0.16 / height, heading, fontsize=12, ha="center", va="top", parse_math=False)
    figure.text(0.5, 1 - 0.45 / height, note, fontsize=8, color=_QUIET, ha="center", va="top")
    return figure


def _cell(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes without ticks at a position in inches from the upper left corner."""
    total_width, total_height = figure.get_size_inches()
    bottom = total_height - top - height
    bounds = (left / total_width, bottom / total_height, width / total_width, height / total_height)
    axes = figure.add_axes(bounds, xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color="#bbbbbb", lw=0.6)
    return axes


def _scale(values: FloatArray) -> float:
    """Largest magnitude, or 1 for zeros, so that colour and axis limits are never empty."""
    return float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def _draw_picture(axes: Axes, picture: FloatArray, limit: float = 1.0, **options: Any) -> None:
    axes.imshow(picture, cmap=_COLORMAP, vmin=-limit, vmax=limit, interpolation="nearest", **options)


def _draw_curve(axes: Axes, atom: FloatArray, color: str, limit: float) -> None:
    marker = "." if atom.size <= 24 else ""
    axes.axhline(0, color="#bbbbbb", lw=0.6)
    axes.plot(atom, color=color, lw=1.1, marker=marker, ms=3)
    axes.set_ylim(-1.12 * limit, 1.12 * limit)
    axes.margins(x=0.04)


def _draw_pair(upper: Axes, lower: Axes, true: FloatArray, learned: FloatArray, strength: float) -> None:
    """One true atom, its learned partner (NaN if there is none) and their correlation."""
    matched = bool(np.isfinite(learned).all())
    if side := _side(true.size):
        _draw_picture(upper, true.reshape(side, side), _scale(true))
        if matched:
            _draw_picture(lower, learned.reshape(side, side), _scale(learned))
    else:
        limit = _scale(np.concatenate([true, learned]))
        _draw_curve(upper, true, _TRUE, limit)
        if matched:
            _draw_curve(lower, learned, _LEARNED, limit)
    color = _QUIET if strength >= 0.9 else _BAD
    lower.set_xlabel(f"{strength:.3f}" if matched else "no partner", fontsize=8, color=color, labelpad=3)


def _grid(count: int, cell: tuple[float, float], stretch: float) -> tuple[int, int]:
    """Columns and rows of a grid whose outline is about `stretch` times as wide as high."""
    if count <= 4:
        return count, 1
    rows = math.ceil(count / math.ceil(math.sqrt(count * stretch * cell[1] / cell[0])))
    columns = math.ceil(count / rows)  # again, so that the last row is not nearly empty
    return columns, math.ceil(count / columns)


def _picture_grid(atoms: FloatArray, labels: _Labels, heading: str) -> Figure:
    """Square pictures as one mosaic, which stays fast for hundreds of atoms."""
    shown = labels.order[:MAX_PICTURES]
    labelled = any(labels.texts) and len(shown) <= MAX_CURVES
    tile = min(1.1, max(0.42, 7.5 / math.ceil(math.sqrt(1.4 * len(shown)))))
    gap = 0.06 * tile + 0.02
    zoom = math.ceil(_TILE_PIXELS / (side := _side(atoms.shape[1])))
    pixel = tile / (zoom * side)
    gaps = round((0.2 if labelled else gap) / pixel), round(gap / pixel)
    pitch = tile + gaps[1] * pixel, tile + gaps[0] * pixel
    columns, _ = _grid(len(shown), pitch, 1.4)
    sheet = mosaic(atoms[shown], columns, zoom, gaps)
    height, grid_width = (pixel * length for length in sheet.shape)
    grid_height = height + (gaps[0] * pixel if labelled else 0)
    width = max(_MIN_WIDTH, grid_width + 2 * _MARGIN + 0.9)
    note = "each atom on its own scale, white is zero" + labels.note + _omitted(len(shown), len(atoms))
    figure = _figure(width, _HEAD + grid_height + _MARGIN, heading, note)
    left = (width - grid_width) / 2
    axes = _cell(figure, left, _HEAD, grid_width, grid_height)
    axes.set_axis_off()
    _draw_picture(axes, sheet, extent=(0, grid_width, height, 0))
    row, column = np.divmod(np.arange(len(shown)), columns)
    x, y = column * pitch[0], row * pitch[1]
    corners = np.array([[0, 0, 1, 1, 0], [0, 1, 1, 0, 0]])[:, :, None] * tile
    framed = labels.framed[shown]
    for group, color, line in ((~framed, "#aaaaaa", 0.5), (framed, _BAD, 1.5)):
        axes.plot(x[group] + corners[0], y[group] + corners[1], color=color, lw=line)
    if labelled:
        for atom, middle, below in zip(shown, x + tile / 2, y + tile + 0.03, strict=True):
            color = labels.colors[atom]
            axes.text(middle, below, labels.texts[atom], fontsize=7, color=color, ha="center", va="top")
    # The picture does not reach below the labels of the last row.
    axes.set(xlim=(0, grid_width), ylim=(grid_height, 0), aspect="auto")
    _add_colorbar(figure, left + grid_width + 0.15, min(grid_height, 1.6), 1.0, ("−max", "0", "max"))
    return figure


def _curve_grid(atoms: FloatArray, labels: _Labels, heading: str) -> Figure:
    """Small curves on common axes limits."""
    cell, gap = (1.25, 0.8), (0.12, 0.27)
    pitch = (cell[0] + gap[0], cell[1] + gap[1])
    columns, rows = _grid(len(atoms), pitch, 1.4)
    limit = _scale(atoms)
    width = max(_MIN_WIDTH, columns * pitch[0] + 2 * _MARGIN)
    note = f"all between −{limit:.3g} and {limit:.3g}" + labels.note
    figure = _figure(width, _HEAD + rows * pitch[1] + 0.25, heading, note)
    left = (width - columns * pitch[0] + gap[0]) / 2
    for place, atom in enumerate(labels.order):
        row, column = divmod(place, columns)
        axes = _cell(figure, left + column * pitch[0], _HEAD + 0.12 + row * pitch[1], *cell)
        _draw_curve(axes, atoms[atom], _TRUE, limit)
        axes.set_title(f"{atom}   {labels.texts[atom]}".strip(), fontsize=7, color=labels.colors[atom], pad=2)
        if labels.framed[atom]:
            axes.spines[:].set(color=_BAD, lw=1.5)
    return figure


def _heat_map(atoms: FloatArray, labels: _Labels, heading: str) -> Figure:
    """One row of colours for each atom, for dictionaries too large for curves."""
    limit = _scale(atoms)
    height = min(9.0, max(4.0, 0.03 * len(atoms)))
    figure = _figure(8.0, _HEAD + height + 0.6, heading, "one atom per row" + labels.note)
    axes = figure.add_axes((0.1, 0.55 / (_HEAD + height + 0.6), 0.76, height / (_HEAD + height + 0.6)))
    _draw_picture(axes, atoms[labels.order], limit, aspect="auto")
    if labels.framed.any():
        axes.axhspan((~labels.framed).sum() - 0.5, len(atoms) - 0.5, fill=False, color=_BAD, lw=1.5)
    axes.set_xlabel("feature")
    axes.set_ylabel(labels.rank)
    _add_colorbar(figure, 0.88 * 8.0, height, limit, (f"−{limit:.3g}", "0", f"{limit:.3g}"))
    return figure


def _add_colorbar(figure: Figure, left: float, height: float, limit: float, labels: tuple[str, str, str]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = _cell(figure, left, _HEAD, 0.12, height)
    bar = figure.colorbar(ScalarMappable(Normalize(-limit, limit), _COLORMAP), cax=axes)
    bar.set_ticks([-limit, 0, limit], labels=labels)
    bar.ax.tick_params(labelsize=7, length=2)
    bar.outline.set(lw=0.5)
