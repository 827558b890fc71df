"""Figures of dictionaries and of the run that learned them.

Figures are made without pyplot, so they need no display and leave no global state behind; `save_figure`
writes them, and notebooks show them. Matplotlib is imported on first use.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.drawing.grids import (
    BAD,
    HEAD,
    LEARNED,
    MARGIN,
    MAX_CURVES,
    MIN_WIDTH,
    QUIET,
    TRUE,
    Labels,
    cell_at,
    curve_grid,
    draw_curve,
    draw_picture,
    headed_figure,
    heat_map,
    omitted,
    picture_grid,
    scale_of,
    side_of,
)
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

Atoms = NDArray[np.floating]
FOUND = 0.99
"""|Correlation| above which a true atom counts as found."""
MAX_PAIRS = 32
_FORMATS = (".png", ".pdf", ".svg")
_ERROR = "#3a8a4d"
_CURVES = {
    "primal": "primal residual",
    "dual": "dual residual",
    "code_change": "change of codes",
    "atom_change": "change of atoms",
    "stationarity": "stationarity",
    "error": "data error",
}


def atoms_figure(
    components: ArrayLike,
    title: str | None = None,
    usage: ArrayLike | None = None,
    stability: ArrayLike | None = None,
) -> Figure:
    """Draw the atoms of a dictionary; where they are numbered, ``components_[0]`` is atom 1.

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
    if side_of(atoms.shape[1]):
        return picture_grid(atoms, labels, heading)
    if len(atoms) <= MAX_CURVES:
        return curve_grid(atoms, labels, heading)
    return heat_map(atoms, labels, heading)


def aligned_atoms(estimated: Atoms, truth: Atoms) -> Atoms:
    """Learned atoms in the order and with the signs of the true ones; NaN where none is left."""
    indices, signs = match_atoms(estimated, truth)
    aligned: Atoms = np.where((indices >= 0)[:, None], estimated[indices] * signs[:, None], np.nan)
    return aligned


def found_atoms(estimated: Atoms, truth: Atoms) -> int:
    """Number of true atoms that have a learned one; both of unit norm.

    Examples
    --------
    >>> found_atoms(np.array([[0.0, -1.0], [0.6, 0.8]]), np.eye(2))
    1
    """
    return int((np.sum(truth * aligned_atoms(estimated, truth), axis=1) > FOUND).sum())


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
    aligned = aligned_atoms(learned, true)
    strength = np.nan_to_num(np.sum(aligned * true, axis=1))
    heading = title or f"True and learned atoms: {found_atoms(learned, true)} of {len(true)} correlate above {FOUND}"
    shown = min(len(true), MAX_PAIRS)
    note = f"|correlation| below each pair, {strength.mean():.4f} on average" + omitted(shown, len(true))

    side = side_of(true.shape[1])
    cell = (0.9, 0.9) if side else (1.2, 0.75)
    columns = min(8, shown)
    blocks = math.ceil(shown / columns)
    step_x, step_y = cell[0] + 0.14, 2 * cell[1] + 0.52
    width = max(MIN_WIDTH, columns * step_x + 2 * MARGIN + 0.3)
    figure = headed_figure(width, HEAD + blocks * step_y + 0.1, heading, note)
    left = (width - columns * step_x) / 2 + 0.14
    for pair in range(shown):
        block, column = divmod(pair, columns)
        x, y = left + column * step_x, HEAD + block * step_y
        upper = cell_at(figure, x, y, *cell)
        lower = cell_at(figure, x, y + cell[1] + 0.06, *cell)
        _draw_pair(upper, lower, true[pair], aligned[pair], strength[pair])
        if column == 0:
            for axes, label, color in ((upper, "true", TRUE), (lower, "learned", LEARNED)):
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
    figure.suptitle(title or f"{plural(length, 'iteration')}{_penalty_text(history)}", fontsize=12)
    left, right = figure.subplots(1, 2)
    iterations = np.arange(1, length + 1)
    marker = "o" if length < 4 else ""
    left.plot(iterations, curves["objective"], color=TRUE, lw=1.6, marker=marker)
    left.set(xlabel="iteration", ylabel="objective")
    for key, color in ((first, TRUE), (second, LEARNED), ("stationarity", BAD), ("error", _ERROR)):
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
    left.plot(length, objective, "D", color=TRUE, mfc="none", ms=7, label=label)
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
        raise ValueError(
            f"{name} has shape {numbers.shape}; pass {plural(n_atoms, 'finite number')}, one for each atom"
        )
    return numbers


def _labels(shares: FloatArray | None, stability: FloatArray | None, n_atoms: int) -> Labels:
    framed = np.zeros(n_atoms, dtype=bool)
    if stability is not None:
        framed = stability < STABLE
        doubted = f"{framed.sum()} below {STABLE} (red): not to be trusted" if framed.any() else f"none below {STABLE}"
        note = f"\nmost stable first, {doubted}"
        texts, key, rank = [f"{value:.3f}" for value in stability], -stability, "atom, by rank of stability"
        colors = [BAD if bad else QUIET for bad in framed]
    elif shares is not None:
        unused = int((shares <= 0).sum())
        note = " · most used first" + (f", {unused} unused" if unused else "")
        texts = [f"{100 * share:.3g} %" if share > 0 else "unused" for share in shares]
        key, rank = -shares, "atom, by rank of usage"
        colors = [QUIET if share > 0 else BAD for share in shares]
    else:
        texts, colors, key, note, rank = [""] * n_atoms, [QUIET] * n_atoms, np.zeros(n_atoms), "", "atom"
    return Labels(np.argsort(key, kind="stable"), texts, colors, framed, note, rank)


def _penalty_text(history: Mapping[str, ArrayLike]) -> str:
    if "rho" not in history:
        return ""
    rho = np.asarray(history["rho"], dtype=np.float64)
    rho = rho[np.isfinite(rho)]
    if not len(rho):
        return ""
    first, last = f"{rho[0]:.4g}", f"{rho[-1]:.4g}"
    return f", ρ = {first}" + (f" → {last}" if last != first else "")


def _draw_pair(upper: Axes, lower: Axes, true: FloatArray, learned: FloatArray, strength: float) -> None:
    """One true atom, its learned partner (NaN if there is none) and their correlation."""
    matched = bool(np.isfinite(learned).all())
    if side := side_of(true.size):
        draw_picture(upper, true.reshape(side, side), scale_of(true))
        if matched:
            draw_picture(lower, learned.reshape(side, side), scale_of(learned))
    else:
        limit = scale_of(np.concatenate([true, learned]))
        draw_curve(upper, true, TRUE, limit)
        if matched:
            draw_curve(lower, learned, LEARNED, limit)
    color = QUIET if strength >= 0.9 else BAD
    lower.set_xlabel(f"{strength:.3f}" if matched else "no partner", fontsize=8, color=color, labelpad=3)
