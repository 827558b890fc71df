"""Matrices from files: ``.npy``, ``.npz`` and text tables; errors give the place and the remedy."""

from __future__ import annotations

import contextlib
import glob
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from roadict.files.byte_order import seems_swapped
from roadict.files.npy import DAMAGE_ERRORS, TrailingBytesError, map_array, read_array
from roadict.files.text import TableError, position_in_text, read_text, refuse
from roadict.wording import plural, some

__all__ = ["TableError", "files_of", "position", "read_matrix", "read_rows"]

LARGE_FILE = 2**26
"""Bytes above which an array in a file is not read at once."""
PARTS = "part-*.npy"
"""Files with rows in a folder of parts."""

Matrix = NDArray[np.float32] | NDArray[np.float64]
_TEXT_SUFFIXES = (".csv", ".txt", ".tsv")
_SUFFIXES = (".npy", ".npz", *_TEXT_SUFFIXES)
_MAX_KEYS = 12


def read_matrix(path: str | os.PathLike[str], key: str | None = None) -> Matrix:
    r"""Read a matrix with one sample per row.

    Text tables may be separated by commas, semicolons, tabs or blanks, detected from the first row of
    numbers. One header line is skipped if all its cells are text. A first column without a name, in a header with
    names, is an index: it is left out, with a warning. Empty cells and ``NA`` become NaN, blank lines are skipped,
    and cells may be double-quoted, with separators and line breaks inside. Row numbers in errors count the lines of
    the file.

    Parameters
    ----------
    path : str or path-like
        A ``.npy``, ``.npz``, ``.csv``, ``.tsv`` or ``.txt`` file.
    key : str, optional
        The array to read from an ``.npz`` file that holds several.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        float32 for float32 and float16 files, else float64. NaN and infinities are preserved.

    Raises
    ------
    TableError
        If the contents are not a non-empty matrix of real numbers.
    OSError
        If the file cannot be opened, for example FileNotFoundError.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "signals.csv"
    >>> _ = path.write_text("left;right\n1;2.5\n3;\n")
    >>> read_matrix(path)
    array([[1. , 2.5],
           [3. , nan]])
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        found = f"the extension {suffix!r}" if suffix else "no extension"
        refuse(file, f"has {found}", f"convert or rename it to one of {', '.join(_SUFFIXES)}")
    if key is not None and suffix != ".npz":
        refuse(file, f"has no arrays to choose from by key={key!r}", "leave the key out, it is for .npz files")
    if suffix in _TEXT_SUFFIXES:
        return read_text(file)
    values = _read_npy(file) if suffix == ".npy" else _read_npz(file, key)
    return _as_matrix(file, values)


def read_rows(path: Path, key: str | None, rank: int, size: int) -> Matrix:
    """Read one rank's share of the rows, which may be empty; shares are in rank order.

    Parameters
    ----------
    path : Path
        A file of ``read_matrix``; a ``.npy`` file is read in part, other kinds completely. Or a folder with files
        ``part-*.npy``, or a pattern such as ``day-*.npy``: each rank then reads complete files, sorted by name.
    key : str or None
        As for ``read_matrix``.
    rank, size : int

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        A large ``.npy`` file is not read, but mapped.
    """
    if _has_parts(path):
        if key is not None:
            refuse(path, f"has no arrays to choose from by key={key!r}", "leave the key out, it is for .npz files")
        return _read_parts(path, rank, size)
    if path.suffix.lower() != ".npy" or key is not None or not path.is_file():
        rows = read_matrix(path, key)
        return rows[len(rows) * rank // size : len(rows) * (rank + 1) // size]
    values: Any = map_matrix(path)
    first, end = len(values) * rank // size, len(values) * (rank + 1) // size
    if _is_large(values):
        start = values.offset + first * values.strides[0]
        return np.memmap(path, values.dtype, "r", start, (end - first, values.shape[1]))
    if size == 1:
        return read_matrix(path)
    return as_floats(values[first:end])


def _is_large(values: Any) -> bool:
    """Whether an array in a file is to be read in pieces."""
    numbers = values.dtype.kind in "biu" or values.dtype in (np.dtype(np.float32), np.dtype(np.float64))
    itemsize = values.dtype.itemsize if values.dtype.kind == "f" else np.dtype(np.float64).itemsize
    return bool(numbers and values.flags.c_contiguous and values.size * itemsize > LARGE_FILE)


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files that ``read_rows`` reads: the path itself or its parts, sorted by name."""
    if not _has_parts(path):
        return (path,)
    folder, pattern = (path, PARTS) if path.is_dir() else (path.parent, path.name)
    return tuple(sorted(folder.glob(pattern)))


def position(path: Path, row: int, column: int | None = None) -> str:
    r"""Name the place of an entry, or a row, that ``read_rows`` has read, counting from 1; row and column are indices.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "signals.csv"
    >>> _ = path.write_text("left,right\n1,2\n3,NA\n")
    >>> position(path, 1, 1), position(path, 1)
    ('line 3, column 2', 'line 3')
    """
    if not _has_parts(path):
        if path.suffix.lower() in _TEXT_SUFFIXES:
            return position_in_text(path, row, column)
        return f"row {row + 1}" + ("" if column is None else f", column {column + 1}")
    for file in files_of(path):
        if row < (n_rows := len(map_matrix(file))):
            return f"{file.name}, {position(file, row, column)}"
        row -= n_rows
    return f"row {row + 1}"


def _has_parts(path: Path) -> bool:
    return path.is_dir() or (glob.has_magic(path.name) and not path.exists())


def _read_parts(path: Path, rank: int, size: int) -> Matrix:
    files = files_of(path)
    if not files:
        pattern = PARTS if path.is_dir() else path.name
        refuse(path, f"names no files {pattern}", "write the rows to part-0.npy, part-1.npy, ... in a folder")
    mapped = [map_matrix(file) for file in files]  # all files on every rank, so that all ranks detect a mismatch
    for file, values in zip(files, mapped, strict=True):
        if (values.shape[1], values.dtype) != (mapped[0].shape[1], mapped[0].dtype):
            kind, first = (f"{plural(each.shape[1], 'column')} of {each.dtype}" for each in (values, mapped[0]))
            refuse(file, f"has {kind}, but {files[0]} has {first}", "all parts must match")
    own = mapped[len(files) * rank // size : len(files) * (rank + 1) // size]
    return as_floats(np.concatenate([mapped[0][:0], *own]))


def map_matrix(file: Path) -> NDArray[Any]:
    """Memory-map the matrix in a ``.npy`` file."""
    with file.open("rb") as stream:
        _check_npy(file, stream)
    with _damage_refused(file):
        values: NDArray[Any] = map_array(file)
    _check_matrix(file, values)
    return values


def _as_matrix(file: Path, values: NDArray[Any]) -> Matrix:
    """Check shape and dtype, and convert to float32 or float64."""
    _check_matrix(file, values)
    return as_floats(values)


def _check_matrix(file: Path, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "biuf":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "O": "pickled objects", "M": "dates"}
        what = kinds.get(values.dtype.kind, "records")
        refuse(file, f"holds {what} (dtype {values.dtype})", "save an array of real numbers")
    if values.ndim != 2:
        remedy = "reshape it to (n_samples, n_features)"
        refuse(file, f"holds an array of shape {values.shape}, which is not a matrix", remedy)
    if values.size == 0:
        refuse(file, f"holds an empty matrix of shape {values.shape}", "save at least one row and one column")
    if seems_swapped(values):
        said, meant = ("little", "big") if values.dtype.newbyteorder("<") == values.dtype else ("big", "little")
        what = f"says {said}-endian, but its values make sense only as {meant}-endian: its header seems damaged"
        refuse(file, what, f"copy it again, or read it as {meant}-endian and save that")


def as_floats(values: NDArray[Any]) -> Matrix:
    single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    if single:
        return np.ascontiguousarray(values, dtype=np.float32)
    return np.ascontiguousarray(values, dtype=np.float64)


@contextlib.contextmanager
def _damage_refused(file: Path) -> Iterator[None]:
    """Turn the errors of NumPy and zipfile on bad contents into one TableError."""
    try:
        yield
    except TableError:
        raise
    except TrailingBytesError:
        refuse(file, "is damaged: bytes follow its array", "save or copy it again, one array per file")
    except DAMAGE_ERRORS as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            refuse(file, "holds pickled objects, which roadict never opens", "save an array of real numbers")
        raise TableError(f"{file} is damaged or cut short; save or copy it again") from error


def _check_npy(file: Path, stream: BinaryIO) -> None:
    """Refuse a file that is not one of NumPy's; the stream is back at its start."""
    if stream.read(6) != b"\x93NUMPY":
        refuse(file, "is not a NumPy array file", "write it with numpy.save, or correct its extension")
    stream.seek(0)


def _read_npy(file: Path) -> NDArray[Any]:
    with file.open("rb") as stream:
        _check_npy(file, stream)
        with _damage_refused(file):
            return read_array(stream)


def _read_npz(file: Path, key: str | None) -> NDArray[Any]:
    with file.open("rb") as stream:
        if stream.read(2) != b"PK":
            refuse(file, "is not an .npz archive", "write it with numpy.savez, or correct its extension")
        stream.seek(0)
        with _damage_refused(file), zipfile.ZipFile(stream) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            with archive.open(members[_choose_key(file, list(members), key)]) as member:
                return read_array(member)  # to the end, where the checksum is verified


def _choose_key(file: Path, keys: list[str], key: str | None) -> str:
    """Return the key of the array to read: the given one, or the only one."""
    listed = some(keys, _MAX_KEYS)
    if not keys:
        refuse(file, "holds no arrays", "save one with numpy.savez")
    if key is None:
        if len(keys) > 1:
            what = f"{'is a model of roadict and ' * ('written_by' in keys)}holds {len(keys)} arrays ({listed})"
            refuse(file, what, "pass one of them as the key, or one array alone")
        return keys[0]
    if key not in keys:
        refuse(file, f"has no array {key!r}", f"choose one of: {listed}")
    return key
