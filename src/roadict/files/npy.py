"""Arrays in NumPy's format, read more strictly than by NumPy: damage must not pass for other data."""

import lzma
import os
import re
import struct
import tokenize
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

DAMAGE_ERRORS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    OverflowError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
)
"""What zipfile and NumPy raise on damaged files, depending on which bytes are wrong."""
_UNWRITTEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|'descr': *'(?:[=\d]|.a|\|[fciuU](?!1'))")
"""Control characters; values of several bytes without a byte order, or repeated; an old name of text."""
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}
"""Format of the header's length, by version."""


class TrailingBytesError(ValueError):
    """Bytes follow the array: its header is damaged, or the file holds more than one."""


def read_array(stream: IO[bytes]) -> NDArray[Any]:
    """Read the one array in a stream; raises one of ``DAMAGE_ERRORS`` if that is not what it holds.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.eye(2))
    >>> _ = stream.write(b"more"), stream.seek(0)
    >>> read_array(stream)
    Traceback (most recent call last):
    roadict.files.npy.TrailingBytesError: bytes follow the array
    """
    check_header(stream)
    values: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise TrailingBytesError("bytes follow the array")
    return values


def map_array(path: str | os.PathLike[str]) -> np.memmap[Any, Any]:
    """Map the one array of a ``.npy`` file; raises like ``read_array``."""
    with open(path, "rb") as stream:
        check_header(stream)
        size = stream.seek(0, os.SEEK_END)
    values: np.memmap[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if size > values.offset + values.nbytes:
        raise TrailingBytesError("bytes follow the array")
    return values


def check_header(stream: IO[bytes]) -> None:
    """Refuse a header that NumPy reads but nobody writes: one wrong bit makes ``=f8``, ``|f8`` or ``4f8`` of ``<f8``.

    The stream is then back where it was.
    """
    start = stream.tell()
    major = np.lib.format.read_magic(stream)[0]
    kind = _LENGTHS[major]
    (length,) = struct.unpack(kind, stream.read(struct.calcsize(kind)))
    text = stream.read(length)
    stream.seek(start)
    if _UNWRITTEN.search(text):
        raise ValueError("the header is not one that is ever written")
