"""Drawings for the page as HTML: they take its colours, light or dark, and need no files."""

import base64
import html
import io
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Atoms = NDArray[np.floating]
Label = Callable[[float], str]
MAX_ATOMS = 256
MAX_CURVES = 64
WIDTH, HEIGHT = 320, 180
_LEFT, _BOTTOM, _TOP, _RIGHT = 48, 20, 8, 8
_POINTS = 400
"""Points of a curve at most; more cannot be told apart."""


def objective_curve(runs: Sequence[Sequence[float]]) -> str:
    """Draw the objective against the iteration, the latest start in front of the others."""
    longest = max((len(run) for run in runs), default=0)
    if longest < 2:
        return _empty("The objective will be drawn here.")
    settled = np.concatenate([run[min(2, len(run) - 1) :] for run in runs])  # the first steps may be off any scale
    low, high = float(np.min(settled)), float(np.max(settled))
    curves = [(run, "now" if run is runs[-1] else "before") for run in runs]
    return _chart(curves, longest, low, high, _plain, "Objective against the iteration")


def residual_curves(curves: dict[str, NDArray[np.float64]]) -> str:
    """Draw positive curves of equal length on a log scale, with their names."""
    logs = {name: np.log10(np.where(values > 0, values, np.nan)) for name, values in curves.items()}
    finite = np.concatenate([values[np.isfinite(values)] for values in logs.values()])
    longest = max(len(values) for values in logs.values())
    if longest < 2 or len(finite) == 0:
        return _empty("Too few iterations to draw.")
    drawn = [(values, f"series-{i}") for i, values in enumerate(logs.values())]
    keys = "".join(
        f'<text class="series-{i}" x="{_LEFT + 8 + 50 * i}" y="{HEIGHT - _BOTTOM - 7}">{html.escape(name)}</text>'
        for i, name in enumerate(curves)
    )
    low, high = float(finite.min()), float(finite.max())
    low -= 0.15 * (high - low)  # room for the names
    return _chart(drawn, longest, low, high, _power, ", ".join(curves), keys)


def usage_bars(usage: NDArray[np.floating]) -> str:
    """Draw the share of samples that use each atom, the most used first."""
    shares = -np.sort(-np.asarray(usage, np.float64))
    top = float(shares[0]) or 1.0
    step = (WIDTH - _LEFT - _RIGHT) / len(shares)
    inside = HEIGHT - _BOTTOM - _TOP
    bars = "".join(
        f'<rect x="{_LEFT + i * step:.2f}" width="{max(0.8 * step, 0.5):.2f}" '
        f'y="{_TOP + inside * (1 - share / top):.1f}" height="{inside * share / top:.1f}"/>'
        for i, share in enumerate(shares)
    )
    text = f"Share of samples that use each of {len(shares)} atoms"
    return _svg(f'<g class="bars">{bars}</g>{_frame(0, top, lambda value: f"{100 * value:.3g} %", len(shares))}', text)


def atoms_picture(atoms: Atoms | None) -> str:
    """Draw atoms: square ones as pictures, others as curves, or as columns of grey where they are many."""
    if atoms is None:
        return _empty("The atoms will be drawn here.")
    shown = atoms[:MAX_ATOMS]
    text = f"{len(shown)} of {len(atoms)} atoms" if len(shown) < len(atoms) else f"{len(atoms)} atoms"
    side = math.isqrt(atoms.shape[1])
    if side * side == atoms.shape[1]:
        return _image(_mosaic(shown, side), text)
    if len(atoms) <= MAX_CURVES:
        return _small_curves(shown)
    return _image(_grey(shown).T, text, "rd-atoms rd-columns-of-grey")


def data_uri(image: Image.Image) -> str:
    """A picture as an address that holds it."""
    file = io.BytesIO()
    image.save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _plain(value: float) -> str:
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _power(value: float) -> str:
    return f"{10**value:.0e}"


def _empty(text: str) -> str:
    return f'<div class="rd-empty" style="aspect-ratio: {WIDTH} / {HEIGHT}">{text}</div>'


def _svg(inside: str, text: str) -> str:
    box, label = f"0 0 {WIDTH} {HEIGHT}", html.escape(text)
    return f'<svg class="rd-chart" viewBox="{box}" role="img" aria-label="{label}">{inside}</svg>'


def _chart(
    curves: Sequence[tuple[Sequence[float] | NDArray[np.float64], str]],
    longest: int,
    low: float,
    high: float,
    label: Label,
    text: str,
    more: str = "",
) -> str:
    """Curves over 1, 2, ... within a frame; what lies beyond it is cut off."""
    reach = (high - low) or abs(high) or 1.0
    low, high = low - 0.04 * reach, high + 0.04 * reach
    lines = "".join(f'<path class="{kind}" d="{_path(values, longest, low, high)}"/>' for values, kind in curves)
    window = f'x="{_LEFT}" y="{_TOP}" width="{WIDTH - _LEFT - _RIGHT}" height="{HEIGHT - _TOP - _BOTTOM}"'
    box = f'viewBox="{_LEFT} {_TOP} {WIDTH - _LEFT - _RIGHT} {HEIGHT - _TOP - _BOTTOM}"'
    return _svg(f"<svg {window} {box}>{lines}</svg>{more}{_frame(low, high, label, longest)}", text)


def _path(values: Sequence[float] | NDArray[np.float64], longest: int, low: float, high: float) -> str:
    heights = np.asarray(values, np.float64)
    chosen = np.unique(np.linspace(0, len(heights) - 1, min(len(heights), _POINTS)).round().astype(int))
    x = _LEFT + chosen / max(longest - 1, 1) * (WIDTH - _LEFT - _RIGHT)
    y = _TOP + (high - heights[chosen]) / (high - low) * (HEIGHT - _TOP - _BOTTOM)
    # A value that is none leaves a gap: the pen is lifted.
    words, lifted = [], True
    for across, down in zip(x, np.clip(y, -1e4, 1e4), strict=True):
        if np.isfinite(down):
            words.append(f"{'M' if lifted else 'L'}{across:.1f} {down:.1f}")
        lifted = not np.isfinite(down)
    return "".join(words)


def _frame(low: float, high: float, label: Label, count: int) -> str:
    """Axes with the smallest and largest value, and the first and last number."""
    floor = HEIGHT - _BOTTOM
    return (
        f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{WIDTH - _RIGHT}"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{label(high)}</text>'
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">{label(low)}</text>'
        f'<text x="{_LEFT}" y="{HEIGHT - 6}">1</text>'
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{count}</text>'
    )


def _grey(atoms: Atoms) -> NDArray[np.uint8]:
    """Each atom on its own scale, zero in the middle."""
    largest = np.maximum(np.abs(atoms).max(axis=1, keepdims=True), 1e-30)
    grey: NDArray[np.uint8] = np.rint(127.5 + 127.5 * atoms / largest).astype(np.uint8)
    return grey


def _mosaic(atoms: Atoms, side: int) -> NDArray[np.uint8]:
    """Square atoms in rows, transparent between them: grey and alpha."""
    columns = math.ceil(math.sqrt(len(atoms) * WIDTH / HEIGHT))
    rows = math.ceil(len(atoms) / columns)
    tiles = np.zeros((rows * columns, side + 1, side + 1, 2), np.uint8)
    tiles[: len(atoms), :side, :side, 0] = _grey(atoms).reshape(-1, side, side)
    tiles[: len(atoms), :side, :side, 1] = 255
    sheet = tiles.reshape(rows, columns, side + 1, side + 1, 2).swapaxes(1, 2)
    return np.ascontiguousarray(sheet.reshape(rows * (side + 1), columns * (side + 1), 2)[:-1, :-1])


def _image(pixels: NDArray[np.uint8], text: str, kind: str = "rd-atoms") -> str:
    return f'<img class="{kind}" src="{data_uri(Image.fromarray(np.ascontiguousarray(pixels)))}" alt="{text}">'


def _small_curves(atoms: Atoms) -> str:
    """One small curve for each atom, all on one scale."""
    columns = math.ceil(math.sqrt(len(atoms)))
    rows = math.ceil(len(atoms) / columns)
    width, height = WIDTH / columns, HEIGHT / rows
    limit = float(np.abs(atoms).max()) or 1.0
    x = np.linspace(0.1, 0.9, atoms.shape[1]) * width
    drawn = []
    for i, atom in enumerate(atoms):
        left, middle = i % columns * width, (i // columns + 0.5) * height
        points = " ".join(
            f"{left + a:.1f},{middle - 0.42 * height * v / limit:.1f}" for a, v in zip(x, atom, strict=True)
        )
        zero = f"M{left + 0.1 * width:.1f} {middle:.1f}h{0.8 * width:.1f}"
        drawn.append(f'<path class="axis" d="{zero}"/><polyline class="now" points="{points}"/>')
    return _svg("".join(drawn), f"{len(atoms)} atoms")
