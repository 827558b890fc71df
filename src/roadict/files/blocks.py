"""Matrices from files in blocks of rows, for work that needs no more than one block at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roadict.files.tables import Matrix, TableError, _as_floats, _mapped, read_matrix


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
        mapped: Any = _mapped(path)  # checks the header, and that the file is as long as that says
        if mapped.flags.c_contiguous:
            return len(mapped), _read_blocks(path, n_rows, mapped.shape, mapped.dtype, mapped.offset)
    values = read_matrix(path, key)
    return len(values), (values[first : first + n_rows] for first in range(0, len(values), n_rows))


def _read_blocks(
    path: Path, n_rows: int, shape: tuple[int, int], dtype: np.dtype[Any], offset: int
) -> Iterator[Matrix]:
    """Read instead of mapping: a mapped file that is cut while it is in use ends the process."""
    with path.open("rb") as stream:
        stream.seek(offset)
        for first in range(0, shape[0], n_rows):
            count = min(n_rows, shape[0] - first)
            values = np.fromfile(stream, dtype, count * shape[1])
            if len(values) < count * shape[1]:
                raise TableError(
                    f"{path} ends within row {first + len(values) // shape[1]} of {shape[0]}, counting from 0: it was "
                    "cut while it was read; run the command again when the file is complete"
                )
            yield _as_floats(values.reshape(count, shape[1]))
