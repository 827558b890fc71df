"""Text tables: separators, headers, indices, quoted and missing cells; errors give the place and the remedy."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from roadict.wording import plural

MISSING = frozenset({"NA", "N/A", "n/a", "<NA>", "#N/A", "NULL", "null", "None"})
"""Cells that mean the same as empty ones; Na is sodium."""
_MAX_TEXT = 24
_QUOTE_REMEDY = "close or remove it, and double a quote inside quotes"
_Row = tuple[int, list[str]]


class TableError(ValueError):
    """A file does not hold the requested matrix of numbers."""


_COUNTED = 10
"""Rows from which on a column that counts them is taken for an index."""


class _LongCellError(TableError):
    """A cell on one line is longer than ``csv.field_size_limit``."""


class _Layout(NamedTuple):
    """Format of a text table: its separator (None: blanks), the lines before its first row, whether it has an index."""

    separator: str | None
    skipped_lines: int
    has_index: bool = False


def refuse(file: Path, what: str, remedy: str) -> NoReturn:
    """Raise TableError."""
    raise TableError(f"{file} {what}; {remedy}")


def read_text(file: Path) -> NDArray[np.float64]:
    """Read a table of numbers, with NaN for cells without one; warns of an index that is left out."""
    with file.open("rb") as stream:
        start = stream.read(1 << 16)
    if b"\0" in start:
        refuse(file, "is not text but binary data", "correct its extension or export it as CSV in UTF-8")
    try:
        layout = _find_layout(file)
        try:
            values = _read_plain(file, layout)
        except ValueError:
            # Empty or quoted cells, or an error: the slow pass finds out which.
            values = _read_cells(file, layout)
    except UnicodeDecodeError as error:
        raise TableError(f"{file} is not text in UTF-8; export it as CSV in UTF-8") from error
    if layout.has_index:
        text = "has a first column without a name, which is taken for an index and left out"
        warnings.warn(f"{file} {text}; name it in the header if it belongs to the data", stacklevel=2)
    elif _counts_rows(values):
        name = ", or its name in the header," if layout.skipped_lines else ""
        text = f"has a first column that only counts the rows; delete it{name} if it is an index and no data"
        warnings.warn(f"{file} {text}", stacklevel=2)
    return values


def _counts_rows(values: NDArray[np.float64]) -> bool:
    """Whether the first of several columns is 0, 1, 2, ... or 1, 2, 3, ..., too often for chance."""
    if len(values) < _COUNTED or values.shape[1] == 1 or values[0, 0] not in (0, 1):
        return False
    return np.array_equal(values[:, 0], values[0, 0] + np.arange(len(values)))


def position_in_text(file: Path, row: int, column: int | None) -> str:
    """Return line and column of an entry of ``read_text``, counting from 1; without a column only the line."""
    layout = _find_layout(file)
    with _open_text(file) as stream:
        lines = (number for number, _ in _rows(file, stream, layout.separator) if number > layout.skipped_lines)
        line = next(itertools.islice(lines, row, None))
    return f"line {line}" + ("" if column is None else f", column {column + 1 + layout.has_index}")


def _open_text(file: Path) -> TextIO:
    """Open without the byte-order mark that spreadsheets write."""
    return file.open(encoding="utf-8-sig")


def _is_blank(line: str) -> bool:
    # Not strip(): a line of tabs alone is a row of empty cells.
    return not line.strip(" \r\n")


def _find_layout(file: Path) -> _Layout:
    """Find the separator, and whether the first row is a header and the first column an index."""
    # A header may contain commas or blanks; the row after it determines the separator.
    separator, rows = _first_rows(file, 2)
    if not rows:
        refuse(file, "is empty", "put one sample on each line")
    first, cells = rows[0]
    numbers = [_number(cell) for cell in cells if cell.strip() and cell.strip() not in MISSING]
    if numbers and all(number is None for number in numbers):
        if len(rows) == 1:
            text = (separator or " ").join(cells)
            refuse(file, f"holds no numbers, only {_short(text.strip())}", "put one sample on each line")
        return _Layout(separator, rows[1][0] - 1, _names_all_but_first(cells, rows[1][1]))
    if len(rows) == 2 and cells[1:] == [str(i) for i in range(len(cells) - 1)] and _names_all_but_first(*_cells(rows)):
        return _Layout(separator, rows[1][0] - 1, True)  # columns without names, as pandas numbers them
    return _Layout(_first_rows(file, 1)[0], first - 1)


def _cells(rows: list[_Row]) -> list[list[str]]:
    return [cells for _, cells in rows]


def _names_all_but_first(header: list[str], row: list[str]) -> bool:
    """Whether a header names all columns but the first, which then holds names or numbers of the rows."""
    named = [bool(cell.strip()) for cell in header]
    return len(named) == len(row) > 1 and named[1:] == [True] * (len(row) - 1) and not named[0] and bool(row[0].strip())


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
                refuse(file, f"has a quote in line {lines[0]} that is never closed", _QUOTE_REMEDY)
            yield lines[0], cells
            lines.clear()
    except csv.Error:
        bound = f"{csv.field_size_limit()} characters"
        if len(lines) > 1:
            refuse(file, f"has a quote in line {lines[0]} that is not closed within {bound}", _QUOTE_REMEDY)
        what = f"{file} has a cell of more than {bound} in line {lines[0]}, which is not a number"
        raise _LongCellError(f"{what}; replace or remove it") from None


def _number(cell: str) -> float | None:
    """Return the value of a cell, NaN for an empty or missing one, None for text."""
    try:
        # float() would also accept 1_000 and digits of other scripts.
        return float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        return math.nan if not cell.strip() or cell.strip() in MISSING else None


def _read_plain(file: Path, layout: _Layout) -> NDArray[np.float64]:
    """Read a table of numbers without empty or quoted cells, fast."""
    with _open_text(file) as stream:
        values = np.loadtxt(
            stream,
            dtype=np.float64,
            comments=None,
            delimiter=layout.separator,
            skiprows=layout.skipped_lines,
            ndmin=2,
        )
    return values[:, layout.has_index :]


def _read_cells(file: Path, layout: _Layout) -> NDArray[np.float64]:
    """Read cell by cell: handles empty and quoted cells, and locates errors."""
    values = array("d")
    width = 0
    with _open_text(file) as stream:
        for number, cells in _rows(file, stream, layout.separator):
            if number <= layout.skipped_lines:
                continue
            values.extend(_row(file, number, cells, layout.has_index))
            width = width or len(cells)
            if len(cells) != width:
                what = f"has {plural(len(cells), 'cell')} in line {number} and {width} in its first row"
                refuse(file, what, "give every row the same number of cells")
    return np.array(values, dtype=np.float64).reshape(-1, width - layout.has_index)


def _row(file: Path, number: int, cells: list[str], first: int) -> list[float]:
    """Return the values of one row from the cell ``first`` on; refuse a cell of text."""
    row: list[float] = []
    for column, cell in enumerate(cells[first:], start=first + 1):
        value = _number(cell)
        if value is None:
            _refuse_text(file, number, column, cell)
        row.append(value)
    return row


def _refuse_text(file: Path, row: int, column: int, cell: str) -> NoReturn:
    text = cell.strip()
    decimal_comma = text.count(",") == 1 and _number(text.replace(",", ".")) is not None
    remedy = (
        "write decimals with a point"
        if decimal_comma
        else "replace it, leave the cell empty, or remove the column if all of it is text"
    )
    refuse(file, f"has {_short(text)} in line {row}, column {column}, which is not a number", remedy)


def _short(text: str) -> str:
    return repr(text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "...")
