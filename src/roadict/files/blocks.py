"""Matrices from files in blocks of rows, for work that needs no more than one block at a time."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.files.tables import Matrix, TableError, as_floats, map_matrix, read_matrix


def read_blocks(path: Path, key: str | None, n_rows: int) -> tuple[int, Iterator[Matrix]]:
    """Return the number of rows of a matrix, and an iterator over blocks of at most ``n_rows`` of them.

    A ``.npy`` file in C order is read block by block; any other file of ``read_matrix`` is read at once.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "signals.npy"
    >>> np.save(path, np.ones((5, 3)))
    >>> total, blocks = read_blocks(path, None, 2)
    >>> total, [block.shape for block in blocks]
    (5, [(2, 3), (2, 3), (1, 3)])
    """
    if path.suffix.lower() == ".npy" and key is None and path.is_file():
        mapped: Any = map_matrix(path)  # checks the header, and that the file is as long as that says
        if mapped.flags.c_contiguous:
            file = RowFile(str(path), mapped.offset, mapped.dtype, mapped.shape)
            ends = [min(first + n_rows, len(mapped)) for first in range(0, len(mapped), n_rows)]
            return len(mapped), (as_floats(file.read(n_rows * i, end)) for i, end in enumerate(ends))
    values = read_matrix(path, key)
    return len(values), (values[first : first + n_rows] for first in range(0, len(values), n_rows))


class RowFile:
    """A matrix in a file, row by row, read instead of mapped: a mapped file that is cut while in use ends the process.

    Parameters
    ----------
    path : str
    offset : int
        Bytes before the first row.
    dtype : dtype
    shape : (int, int)
        In C order.
    """

    def __init__(self, path: str, offset: int, dtype: np.dtype[Any], shape: tuple[int, int]) -> None:
        self._path, self._offset, self._dtype, self._shape = path, offset, dtype, shape
        self._row_bytes = dtype.itemsize * shape[1]
        try:
            self._known = os.stat(path)
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: OSError) -> TableError:
        return TableError(f"{self._path} can no longer be read ({error.strerror}); restore it and start again")

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows ``start`` to ``stop``; raises TableError if the file is not what it was."""
        try:
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                file.seek(self._offset + start * self._row_bytes)
                content = file.read((stop - start) * self._row_bytes)
        except OSError as error:
            raise self._lost(error) from None
        if len(content) < (stop - start) * self._row_bytes:
            row = max(status.st_size - self._offset, 0) // max(self._row_bytes, 1)
            raise TableError(
                f"{self._path} ends within row {row + 1} of {self._shape[0]}: it has become shorter while it was "
                "read; start again when the file is complete"
            )
        if not os.path.samestat(status, self._known) or status.st_mtime_ns != self._known.st_mtime_ns:
            raise TableError(f"{self._path} has been replaced or changed while it was read; start again")
        return np.frombuffer(content, self._dtype).reshape(-1, self._shape[1])
