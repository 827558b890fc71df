"""Matrices from files: ``.npy``, ``.npz`` and text tables; errors give the place and the remedy."""

from __future__ import annotations

import contextlib
import csv
import glob
import itertools
import math
import os
import zipfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from roadict.files.npy import DAMAGE_ERRORS, TrailingBytesError, map_array, read_array

__all__ = ["TableError", "files_of", "read_matrix", "read_rows"]

LARGE_FILE = 2**26
"""Bytes above which an array in a file is not read at once."""
PARTS = "part-*.npy"
"""Files with rows in a folder of parts."""

Matrix = NDArray[np.float32] | NDArray[np.float64]
_TEXT_SUFFIXES = (".csv", ".txt", ".tsv")
_SUFFIXES = (".npy", ".npz", *_TEXT_SUFFIXES)
_MAX_TEXT = 24
_MAX_KEYS = 12
_QUOTE_REMEDY = "close or remove it, and double a quote inside quotes"
_Row = tuple[int, list[str]]


class TableError(ValueError):
    """A file does not hold the requested matrix of numbers."""


class _LongCellError(TableError):
    """A cell on one line is longer than ``csv.field_size_limit``."""


class _Layout(NamedTuple):
    """Format of a text table: its separator (None: blanks) and the number of lines before its first row."""

    separator: str | None
    skipped_lines: int


def read_matrix(path: str | os.PathLike[str], key: str | None = None) -> Matrix:
    r"""Read a matrix with one sample per row.

    Text tables may be separated by commas, semicolons, tabs or blanks, detected from the first row of
    numbers. One header line is skipped if all its cells are text. Empty cells become NaN, blank lines are
    skipped, and cells may be double-quoted, with separators and line breaks inside. Row numbers in errors
    count the lines of the file.

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
        _refuse(file, f"has {found}", f"convert or rename it to one of {', '.join(_SUFFIXES)}")
    if key is not None and suffix != ".npz":
        _refuse(file, f"has no arrays to choose from by key={key!r}", "leave the key out, it is for .npz files")
    if suffix in _TEXT_SUFFIXES:
        return _read_text(file)
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
            _refuse(path, f"has no arrays to choose from by key={key!r}", "leave the key out, it is for .npz files")
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


def _has_parts(path: Path) -> bool:
    return path.is_dir() or (glob.has_magic(path.name) and not path.exists())


def _read_parts(path: Path, rank: int, size: int) -> Matrix:
    files = files_of(path)
    if not files:
        pattern = PARTS if path.is_dir() else path.name
        _refuse(path, f"names no files {pattern}", "write the rows to part-0.npy, part-1.npy, ... in a folder")
    mapped = [map_matrix(file) for file in files]  # all files on every rank, so that all ranks detect a mismatch
    for file, values in zip(files, mapped, strict=True):
        if (values.shape[1], values.dtype) != (mapped[0].shape[1], mapped[0].dtype):
            kind, first = (f"{each.shape[1]} columns of {each.dtype}" for each in (values, mapped[0]))
            _refuse(file, f"has {kind}, but {files[0]} has {first}", "all parts must match")
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


def _refuse(file: Path, what: str, remedy: str) -> NoReturn:
    raise TableError(f"{file} {what}; {remedy}")


def _as_matrix(file: Path, values: NDArray[Any]) -> Matrix:
    """Check shape and dtype, and convert to float32 or float64."""
    _check_matrix(file, values)
    return as_floats(values)


def _check_matrix(file: Path, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "biuf":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "O": "pickled objects", "M": "dates"}
        what = kinds.get(values.dtype.kind, "records")
        _refuse(file, f"holds {what} (dtype {values.dtype})", "save an array of real numbers")
    if values.ndim != 2:
        remedy = "reshape it to (n_samples, n_features)"
        _refuse(file, f"holds an array of shape {values.shape}, which is not a matrix", remedy)
    if values.size == 0:
        _refuse(file, f"holds an empty matrix of shape {values.shape}", "save at least one row and one column")


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
        _refuse(file, "is damaged: bytes follow its array", "save or copy it again, one array per file")
    except DAMAGE_ERRORS as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            _refuse(file, "holds pickled objects, which roadict never opens", "save an array of real numbers")
        raise TableError(f"{file} is damaged or cut short; save or copy it again") from error


def _check_npy(file: Path, stream: BinaryIO) -> None:
    """Refuse a file that is not one of NumPy's; the stream is back at its start."""
    if stream.read(6) != b"\x93NUMPY":
        _refuse(file, "is not a NumPy array file", "write it with numpy.save, or correct its extension")
    stream.seek(0)


def _read_npy(file: Path) -> NDArray[Any]:
    with file.open("rb") as stream:
        _check_npy(file, stream)
        with _damage_refused(file):
            return read_array(stream)


def _read_npz(file: Path, key: str | None) -> NDArray[Any]:
    with file.open("rb") as stream:
        if stream.read(2) != b"PK":
            _refuse(file, "is not an .npz archive", "write it with numpy.savez, or correct its extension")
        stream.seek(0)
        with _damage_refused(file), zipfile.ZipFile(stream) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            with archive.open(members[_choose_key(file, list(members), key)]) as member:
                return read_array(member)  # to the end, where the checksum is verified


def _choose_key(file: Path, keys: list[str], key: str | None) -> str:
    """Return the key of the array to read: the given one, or the only one."""
    listed = ", ".join(keys[:_MAX_KEYS]) + (", ..." if len(keys) > _MAX_KEYS else "")
    if not keys:
        _refuse(file, "holds no arrays", "save one with numpy.savez")
    if key is None:
        if len(keys) > 1:
            _refuse(file, f"holds {len(keys)} arrays ({listed})", "pass one of them as the key, or one array alone")
        return keys[0]
    if key not in keys:
        _refuse(file, f"has no array {key!r}", f"choose one of: {listed}")
    return key


def _read_text(file: Path) -> NDArray[np.float64]:
    with file.open("rb") as stream:
        start = stream.read(1 << 16)
    if b"\0" in start:
        _refuse(file, "is not text but binary data", "correct its extension or export it as CSV in UTF-8")
    try:
        layout = _find_layout(file)
        try:
            return _read_plain(file, layout)
        except ValueError:
            # Empty or quoted cells, or an error: the slow pass finds out which.
            return _read_cells(file, layout)
    except UnicodeDecodeError as error:
        raise TableError(f"{file} is not text in UTF-8; export it as CSV in UTF-8") from error


def _open_text(file: Path) -> TextIO:
    """Open without the byte-order mark that spreadsheets write."""
    return file.open(encoding="utf-8-sig")


def _is_blank(line: str) -> bool:
    # Not strip(): a line of tabs alone is a row of empty cells.
    return not line.strip(" \r\n")


def _find_layout(file: Path) -> _Layout:
    """Find the separator, and whether the first row is a header."""
    # A header may contain commas or blanks; the row after it determines the separator.
    separator, rows = _first_rows(file, 2)
    if not rows:
        _refuse(file, "is empty", "put one sample on each line")
    first, cells = rows[0]
    numbers = [_number(cell) for cell in cells if cell.strip()]
    if numbers and all(number is None for number in numbers):
        if len(rows) == 1:
            text = (separator or " ").join(cells)
            _refuse(file, f"holds no numbers, only {_short(text.strip())}", "put one sample on each line")
        return _Layout(separator, rows[1][0] - 1)
    return _Layout(_first_rows(file, 1)[0], first - 1)


def _first_rows(file: Path, count: int) -> tuple[str | None, list[_Row]]:
    """Return the separator of the last of the first rows, and these rows."""
    # Semicolons before commas, because of decimal commas; blanks last, as they may follow the others. Separators that
    # give numbers first: with a wrong separator quotes open and close in odd places.
    for numeric, separator in itertools.product((True, False), (";", "\t", ",", None)):
        with contextlib.suppress(TableError if numeric else _LongCellError), _open_text(file) as stream:
            rows = list(itertools.islice(_rows(file, stream, separator), count))
            cells = rows[-1][1] if rows else []
            if len(cells) > 1 and (not numeric or _are_numbers(cells)):
                return separator, rows
    with _open_text(file) as stream:
        return None, list(itertools.islice(_rows(file, stream, None), count))


def _are_numbers(cells: list[str]) -> bool:
    return any(cell.strip() for cell in cells) and None not in map(_number, cells)


def _rows(file: Path, stream: TextIO, separator: str | None) -> Iterator[_Row]:
    """Yield the rows that are not blank, each with the number of the line where it starts."""
    blanks = separator is None
    lines: list[int] = []  # of the current row: quoted cells may contain line breaks

    def texts() -> Iterator[str]:
        for number, line in enumerate(stream, start=1):
            if not _is_blank(line):
                lines.append(number)
                yield " ".join(line.split()) if blanks else line
        lines.append(0)  # a separate row, unless a quote is still open
        yield ""

    reader = csv.reader(texts(), delimiter=separator or " ", skipinitialspace=not blanks)
    try:
        for cells in reader:
            if lines == [0]:
                return
            if lines[-1] == 0:
                _refuse(file, f"has a quote in line {lines[0]} that is never closed", _QUOTE_REMEDY)
            yield lines[0], cells
            lines.clear()
    except csv.Error:
        bound = f"{csv.field_size_limit()} characters"
        if len(lines) > 1:
            _refuse(file, f"has a quote in line {lines[0]} that is not closed within {bound}", _QUOTE_REMEDY)
        what = f"{file} has a cell of more than {bound} in line {lines[0]}, which is not a number"
        raise _LongCellError(f"{what}; replace or remove it") from None


def _number(cell: str) -> float | None:
    """Return the value of a cell, NaN for an empty one, None for text."""
    try:
        # float() would also accept 1_000 and digits of other scripts.
        return float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        return None if cell.strip() else math.nan


def _read_plain(file: Path, layout: _Layout) -> NDArray[np.float64]:
    """Read a table of numbers without empty or quoted cells, fast."""
    with _open_text(file) as stream:
        return np.loadtxt(
            stream,
            dtype=np.float64,
            comments=None,
            delimiter=layout.separator,
            skiprows=layout.skipped_lines,
            ndmin=2,
        )


def _read_cells(file: Path, layout: _Layout) -> NDArray[np.float64]:
    """Read cell by cell: handles empty and quoted cells, and locates errors."""
    values = array("d")
    width = 0
    with _open_text(file) as stream:
        for number, cells in _rows(file, stream, layout.separator):
            if number <= layout.skipped_lines:
                continue
            values.extend(_row(file, number, cells))
            width = width or len(cells)
            if len(cells) != width:
                what = f"has {len(cells)} cells in line {number} and {width} in its first row"
                _refuse(file, what, "give every row the same number of cells")
    return np.array(values, dtype=np.float64).reshape(-1, width)


def _row(file: Path, number: int, cells: list[str]) -> list[float]:
    """Return the values of one row; refuse a cell of text."""
    row: list[float] = []
    for column, cell in enumerate(cells, start=1):
        value = _number(cell)
        if value is None:
            _refuse_text(file, number, column, cell)
        row.append(value)
    return row


def _refuse_text(file: Path, row: int, column: int, cell: str) -> NoReturn:
    text = cell.strip()
    decimal_comma = text.count(",") == 1 and _number(text.replace(",", ".")) is not None
    remedy = "write decimals with a point" if decimal_comma else "replace or remove it, or leave the cell empty"
    _refuse(file, f"has {_short(text)} in line {row}, column {column}, which is not a number", remedy)


def _short(text: str) -> str:
    return repr(text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "...")
