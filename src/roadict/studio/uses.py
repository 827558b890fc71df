"""Which signals, or which places of a picture, use each atom: plain values for the page, which draws them."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.drawing.grids import MAX_PICTURES, scale_of, side_of
from roadict.drawing.numbers import number
from roadict.metrics import STABLE
from roadict.pictures import SuperResolution
from roadict.pictures.places import PatchCodes, patch_codes
from roadict.pictures.restoration import centred
from roadict.tensors import is_sparse
from roadict.wording import agree

USERS = 6
"""Strongest users of an atom that are drawn."""
MAX_LENGTH = 128
"""Points of a curve; longer signals are thinned."""
MAX_VALUES = 300_000
"""Numbers of all users together, which bounds the size of the page."""
MAX_PATCHES = 4000
"""Patches of a picture that are coded to find the places of atoms."""
ATOMS_PER_PATCH = 4
CONTRAST = 0.02
"""Rms error at which the coding of a patch ends; white is 1."""
_MISSING = -128

Atoms = NDArray[np.floating]


def signal_uses(
    atoms: Atoms,
    codes: Any,
    signals: NDArray[Any],
    usage: NDArray[np.floating],
    stability: NDArray[np.floating] | None = None,
) -> dict[str, Any]:
    """Describe atoms, most used first, with the signals that have the largest coefficients.

    Parameters
    ----------
    atoms : array of shape (n_components, n_features)
    codes : array or sparse array of shape (n_samples, n_components), or None
        None: atoms have no users.
    signals : array of shape (n_samples, n_features)
    usage : array of shape (n_components,)
        Share of the signals that use each atom.
    stability : array of shape (n_components,), or None
        If it is known; atoms below ``STABLE`` are "doubted".
    """
    order = np.argsort(-usage, kind="stable")[:MAX_PICTURES]
    points = _points(atoms.shape[1])
    count = min(USERS, max(1, MAX_VALUES // (len(order) * len(points))))
    shown: dict[str, str] = {}
    described = []
    for k in order:
        users = []
        for row in _strongest(codes, k, count):
            top = scale_of(signals[row])
            coefficient = float(codes[row, k])
            users.append([int(row) + 1, _signed(coefficient), coefficient * scale_of(atoms[k]) / top])
            shown[str(row + 1)] = _packed(signals[row][points] / top)
        text = _share(round(usage[k] * len(signals)), len(signals), "signal", "signals")
        doubted = stability is not None and bool(stability[k] < STABLE)
        if stability is not None:
            text += f", stability {number(stability[k])}{': not to be trusted' * doubted}"
        values = _packed(own(atoms[k])[points])
        described.append({"name": int(k) + 1, "text": text, "values": values, "users": users, "doubted": doubted})
    return {"side": side_of(atoms.shape[1]), "atoms": described, "signals": shown}


def place_uses(atoms: Atoms, picture: NDArray[np.float32]) -> dict[str, Any]:
    """Describe atoms, most used first, with the patches of a grey picture (white is 1) that use them.

    Parameters
    ----------
    atoms : array of shape (n_components, side * side)
    picture : array of shape (height, width)
    """
    side, (height, width) = side_of(atoms.shape[1]), picture.shape
    step = max(1, math.ceil(math.sqrt((height - side + 1) * (width - side + 1) / MAX_PATCHES)))
    rows, columns = (np.arange(0, length - side + 1, step) for length in (height, width))
    windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side))
    values = windows[np.ix_(rows, columns)].reshape(-1, side * side)
    codes = centred(values, None).codes(atoms.astype(np.float32), CONTRAST, ATOMS_PER_PATCH, None)
    return _places(atoms, PatchCodes(codes, len(columns), side, step), width, height)


def detail_uses(model: SuperResolution, picture: NDArray[Any]) -> dict[str, Any]:
    """Describe atoms of a model, most used first, with the patches that use them when it enlarges a picture.

    Atoms are features, which nobody can see: the detail that the model predicts from them is described instead.
    """
    predictor, (height, width) = model.predictor_, picture.shape[:2]
    detail = predictor.detail(predictor.atoms, model.n_jobs)
    return _places(detail, patch_codes(model, picture, MAX_PATCHES), model.scale * width, model.scale * height)


def _places(atoms: Atoms, patches: PatchCodes, width: int, height: int) -> dict[str, Any]:
    """Describe atoms with the patches of a picture of this size that use them."""
    codes, step = np.abs(patches.codes), patches.step
    counts = np.count_nonzero(codes, axis=0)
    described = []
    for k in np.argsort(-counts, kind="stable")[:MAX_PICTURES]:
        users = np.flatnonzero(codes[:, k])
        strengths = np.ceil(255 * codes[users, k] / max(codes[users, k].max(initial=0), 1e-30))
        text = _share(counts[k], len(codes), "patch", "patches")
        places = {"at": _bytes(users.astype("<u2")), "strength": _bytes(strengths.astype(np.uint8))}
        described.append({"name": int(k) + 1, "text": text, "values": _packed(own(atoms[k]))} | places)
    cell = max(patches.size, step)
    grid = {"columns": patches.n_columns, "step": step, "cell": cell, "width": width, "height": height}
    return {"side": patches.size, "atoms": described, "grid": grid}


def own(atom: Atoms) -> Atoms:
    """Scale an atom to a largest magnitude of one."""
    scaled: Atoms = atom / scale_of(atom)
    return scaled


def _share(part: int, whole: int, one: str, many: str) -> str:
    return f"used by {part:,} of {whole:,} {agree(whole, one, many)} ({number(100 * part / whole)} %)"


def _strongest(codes: Any, k: int, count: int) -> Sequence[int]:
    if codes is None:
        return []
    column = codes[:, [k]].toarray()[:, 0] if is_sparse(codes) else codes[:, k]
    largest = np.argsort(-np.abs(column), kind="stable")[:count]
    return [int(row) for row in largest if column[row] != 0]


def _points(length: int) -> NDArray[np.intp]:
    if side_of(length):
        return np.arange(length)
    return np.linspace(0, length - 1, min(length, MAX_LENGTH)).round().astype(np.intp)


def _signed(value: float) -> str:
    return ("−" if value < 0 else "") + number(abs(value))


def _packed(values: NDArray[Any]) -> str:
    """Values of -1 to 1 as signed bytes, NaN as -128."""
    return _bytes(np.where(np.isnan(values), _MISSING, np.rint(127 * np.nan_to_num(values))).astype(np.int8))


def _bytes(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
