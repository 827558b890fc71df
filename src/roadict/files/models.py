"""Model files: plain ``.npz`` archives, written atomically, that never run code when read."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from roadict.files.atomic import atomic_write
from roadict.files.npy import DAMAGE_ERRORS, read_array

__all__ = ["FORMAT_VERSION", "ModelFileError", "read_model", "write_model"]

FORMAT = "roadict-model"
FORMAT_VERSION = 1
_REQUIRED = ("format", "format_version", "kind", "parameters", "array_names")
_HEAD = (*_REQUIRED, "written_by")
"""Entries of every model."""
MAX_HEAD = 2**26
"""Bytes of the largest of them."""
# "file" and "allow_pickle" are arguments of numpy.savez_compressed itself.
_RESERVED = frozenset({*_HEAD, "file", "allow_pickle"})
_REMEDY = "restore it from a copy or save the model again"


class ModelFileError(ValueError):
    """A model file cannot be read: damaged, foreign, or from a newer roadict."""


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    parameters: Mapping[str, object],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model file: a compressed ``.npz`` that NumPy reads with ``allow_pickle=False``.

    Parameters
    ----------
    path : str or path-like
        Written atomically and exactly here: ``.npz`` is not appended.
    kind : str
        What the model is, for example "ROAD".
    parameters : mapping of str to None, bool, int, float, str or (nested) lists of these
        Stored as JSON. Tuples become lists and NumPy scalars become Python's; NaN and infinities are preserved.
    arrays : mapping of str to ndarray
        Any dtype without Python objects. Names must be identifiers other than the file's own entries.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.npz"
    >>> write_model(path, "ROAD", {"rho": 10.0}, {"components": np.eye(2)})
    >>> kind, parameters, arrays = read_model(path)
    >>> kind, parameters, arrays["components"].shape
    ('ROAD', {'rho': 10.0}, (2, 2))
    """
    if not kind.isprintable() or not kind.strip():
        raise ValueError(f"kind={kind!r} must be a printable, non-empty string; pass for example 'ROAD'")
    entries: dict[str, Any] = {
        "format": np.array(FORMAT),
        "format_version": np.array(FORMAT_VERSION),
        "written_by": np.array(_written_by()),
        "kind": np.array(kind),
        "parameters": np.array(_to_json(parameters)),
    }
    # A damaged table of contents may hide entries without zipfile noticing; this list reveals it.
    entries["array_names"] = np.array([_array_name(name) for name in arrays], dtype=np.str_)
    for name, values in arrays.items():
        entries[name] = _plain_array(name, values)
    with atomic_write(path) as file:
        np.savez_compressed(file, **entries)


def read_model(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file written by `write_model`, without ever running code from it.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    kind : str
    parameters : dict
        With lists where tuples were written.
    arrays : dict of str to ndarray
        Without the file's own entries.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, or needs a newer roadict; the message states which.
    OSError
        If the file cannot be opened, for example FileNotFoundError.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.npz"
    >>> _ = path.write_text("not a model")
    >>> read_model(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    roadict.files.models.ModelFileError: ...notes.npz is not a roadict model but something else ...
    """
    # Read first and parse from memory: every OSError here comes from the disk, and none below does.
    raw = Path(path).read_bytes()
    if not raw.startswith(b"PK"):
        what = "is empty" if not raw else "is not a roadict model but something else (no .npz archive)"
        _refuse(path, what, "pass a file written by roadict")
    with _open(path, raw) as archive:
        entries = {name.removesuffix(".npy"): name for name in archive.namelist()}
        # The names first: an entry that does not belong to a model may be of any size once it is inflated.
        head = {name: _read_entry(path, archive, entries[name], MAX_HEAD) for name in _HEAD if name in entries}
        if "format" not in head or _text(head["format"]) != FORMAT:
            held = ", ".join(sorted(entries)[:8]) or "nothing"
            remedy = "pass a file written by roadict"
            _refuse(path, f"is an .npz file but not a roadict model (it holds {held})", remedy)
        _check_version(path, head)
        names = _array_names(path, head, set(entries))
        arrays = {name: _read_entry(path, archive, entries[name]) for name in names}
    _check_byte_order(path, head | arrays)
    kind = _text(head["kind"])
    if kind is None:
        _refuse(path, "has an entry 'kind' that is not text", _REMEDY)
    return kind, _from_json(path, _text(head["parameters"])), arrays


def _array_names(path: str | os.PathLike[str], head: Mapping[str, NDArray[Any]], entries: set[str]) -> list[str]:
    """Return the names of the arrays, if all entries are there and no others."""
    missing = [name for name in _REQUIRED if name not in head]
    names = [] if missing else head["array_names"].ravel().tolist()
    missing = missing or [name for name in names if name not in entries]
    if missing:
        _refuse(path, f"lacks the entry {' and '.join(map(repr, missing))}", _REMEDY)
    surplus = sorted(entries.difference(names, _HEAD))
    if surplus:
        _refuse(path, f"has entries that are not the model's ({', '.join(map(repr, surplus[:8]))})", _REMEDY)
    return names


def _refuse(path: str | os.PathLike[str], what: str, remedy: str) -> NoReturn:
    raise ModelFileError(f"{os.fspath(path)} {what}; {remedy}")


def _open(path: str | os.PathLike[str], raw: bytes) -> zipfile.ZipFile:
    """Open an archive held in memory."""
    try:
        return zipfile.ZipFile(io.BytesIO(raw))
    except DAMAGE_ERRORS as error:
        raise ModelFileError(f"{os.fspath(path)} is damaged or cut short; {_REMEDY}") from error


def _read_entry(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str, largest: float = math.inf
) -> NDArray[Any]:
    """Return the array of an entry of at most so many bytes."""
    entry = repr(name.removesuffix(".npy"))
    if archive.getinfo(name).file_size > largest:
        _refuse(path, f"has an entry {entry} of {archive.getinfo(name).file_size:,} bytes", _REMEDY)
    try:
        # Reading a member to its end verifies its checksum before NumPy parses the header.
        return read_array(io.BytesIO(archive.read(name)))
    except DAMAGE_ERRORS as error:
        if "allow_pickle" in str(error):
            what = f"holds pickled objects at its entry {entry}, which roadict never opens"
            _refuse(path, what, "save plain arrays instead")
        raise ModelFileError(f"{os.fspath(path)} is damaged or cut short at its entry {entry}; {_REMEDY}") from error


def _check_byte_order(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays in two byte orders: one machine writes a model, and one wrong bit makes ``>f8`` of ``<f8``."""
    native = {array.dtype.isnative for array in arrays.values() if array.dtype.byteorder != "|"}
    if len(native) > 1:
        _refuse(path, "is damaged: its entries have two byte orders", _REMEDY)


def _check_version(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse formats that this version cannot read."""
    entry = arrays.get("format_version")
    if entry is None or entry.ndim != 0 or entry.dtype.kind not in "iu" or int(entry) < 1:
        _refuse(path, "lacks the entry 'format_version' or has a wrong one", _REMEDY)
    if int(entry) > FORMAT_VERSION:
        writer = _text(arrays["written_by"]) if "written_by" in arrays else None
        newer = f"{writer} or newer" if writer else f"a newer roadict that reads format {int(entry)}"
        _refuse(
            path,
            f"has model format {int(entry)} and this roadict reads formats up to {FORMAT_VERSION}",
            f"install {newer}",
        )


def _text(entry: NDArray[Any]) -> str | None:
    """Return the string in a 0-dimensional text array, None for any other array."""
    return str(entry[()]) if entry.ndim == 0 and entry.dtype.kind == "U" else None


def _from_json(path: str | os.PathLike[str], text: str | None) -> dict[str, Any]:
    try:
        parameters = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{os.fspath(path)} has parameters that are not JSON; {_REMEDY}") from error
    if not isinstance(parameters, dict):
        _refuse(path, "has parameters that are not a JSON object", _REMEDY)
    return parameters


def _to_json(parameters: Mapping[str, object]) -> str:
    for name in parameters:
        if not isinstance(name, str):
            raise ValueError(f"parameter name {name!r} must be a string; rename it")
    return json.dumps({name: _plain_value(name, value) for name, value in parameters.items()})


def _plain_value(name: str, value: object) -> object:
    """Return `value` in the types of JSON; raise a ValueError that names the parameter for others."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain_value(name, item) for item in value]
    raise ValueError(
        f"parameter {name!r} has type {type(value).__name__}, which a model file cannot hold; "
        f"pass None, a bool, number, string or list of these, or store it among the arrays"
    )


def _array_name(name: str) -> str:
    if not name.isidentifier() or name in _RESERVED:
        raise ValueError(
            f"array name {name!r} must be an identifier other than {', '.join(sorted(_RESERVED))}; rename it"
        )
    return name


def _plain_array(name: str, values: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.hasobject:
        raise ValueError(f"array {name!r} has dtype {array.dtype}, which would need pickling; store numbers or text")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _written_by() -> str:
    try:
        return f"roadict {metadata.version('roadict')}"
    except metadata.PackageNotFoundError:
        return ""
