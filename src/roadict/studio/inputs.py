"""Read and check uploads and fields of the page before any work; every error is one sentence."""

import contextlib
import io
import math
import os
import re
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadict.drawing.raster import data_uri
from roadict.files.tables import read_matrix
from roadict.pictures import dtypes, files
from roadict.wording import path_problem, plural

MAX_BYTES = 128 * 2**20
"""Of an upload, such as a photo that is then shrunk."""
MAX_TABLE_BYTES = 32 * 2**20
MAX_PIXELS = 4_000_000
"""Larger pictures are shrunk or cut first: they would take long."""
MAX_STATE = 100_000_000
"""Atoms × entries × signals; ROAD holds a little more than two arrays of this size."""
_NO_PICTURES = (".npy", ".csv", ".tsv")
TABLES = (*_NO_PICTURES, ".txt")  # a text may be anything
PICTURES = (*files.SUFFIXES, ".gif", ".webp")
_OF_SIGNALS = {"(n_samples, n_features)": "(signals, entries)", "one sample on each line": "one signal on each line"}
"""On the page a sample is something to try."""
PREVIEW = 640
"""Pixels of the longer side of a preview."""


def read_picture(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read a picture of at most ``MAX_PIXELS``.

    Parameters
    ----------
    path : path

    Returns
    -------
    uint8 or uint16 array of shape (height, width) or (height, width, channels)
    """
    file = Path(path)
    if is_too_large(file):
        raise ValueError(
            f"{file.name} has more than {MAX_PIXELS:,} pixels; shrink it or cut a part out, or use the command line"
        )
    return read_large_picture(file)


def read_large_picture(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read a picture of any number of pixels, to make it smaller."""
    file = _not_too_large(path, MAX_BYTES)
    if file.suffix.lower() in _NO_PICTURES:
        raise ValueError(f"{file.name} is a table and no picture; open it in the tab “Signals”")
    with _without_folder(file):
        return dtypes.check_picture(file.name, files.read_picture(file))


def read_mask(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read a mask of any number of pixels as one plane, nonzero where a pixel is marked."""
    file = _not_too_large(path, MAX_BYTES)
    with _without_folder(file):
        return files.read_mask(file)


def is_too_large(path: str | os.PathLike[str]) -> bool:
    """Whether a picture has more than ``MAX_PIXELS``, by its header: it is not decompressed.

    Not if it has so many that nothing reads it, or is damaged: it cannot be made smaller either.
    """
    with files.ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of more pixels than are read
        with contextlib.suppress(*files.DAMAGE, Image.DecompressionBombError), files.opened(path) as image:
            return image.width * image.height > MAX_PIXELS
    return False


def read_table(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read a matrix, one sample per row, from .npy or text.

    Archives (.npz) are for the command line: a small one can decompress to gigabytes.
    """
    return read_table_and_notes(path)[0]


def read_table_and_notes(path: str | os.PathLike[str]) -> tuple[NDArray[Any], list[str]]:
    """The same, and what there is to say of it: that an index was left out, for instance."""
    file = _not_too_large(path, MAX_TABLE_BYTES)
    if file.suffix.lower() not in TABLES:
        remedy = (
            "open it in the tab “Pictures”" if file.suffix.lower() in PICTURES else "convert it, one signal per row"
        )
        raise ValueError(f"{file.name} is none of {', '.join(TABLES)}; {remedy}")
    with files.ONE_AT_A_TIME, _without_folder(file), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        data = read_matrix(file)
    return data, [str(warning.message).replace(f"{file.parent}{os.sep}", "") for warning in caught]


def check_state(shape: tuple[int, ...], n_components: int | None, *, blocks: bool = True) -> None:
    """Refuse a problem that would not fit in memory: ROAD's blocks, or the codes of a method without them."""
    n_samples, n_features = shape
    atoms = 2 * n_features if n_components is None else n_components
    if (numbers := atoms * n_samples * (n_features if blocks else 1)) > MAX_STATE:
        sizes = [plural(atoms, "atom"), plural(n_features, "entry"), plural(n_samples, "signal")]
        raise ValueError(
            f"{' × '.join(sizes if blocks else sizes[::2])} make {numbers:,} numbers; the studio accepts at "
            f"most {MAX_STATE:,}: choose fewer atoms or signals, or use the command line"
        )


def parse_number(name: str, text: str, default: str = "auto") -> float | None:
    """Parse a field as a number of 0 or more; None for an empty field or the word for its default.

    Examples
    --------
    >>> parse_number("noise", " 12.5 "), parse_number("noise", "auto")
    (12.5, None)
    """
    if text.strip() in ("", default):
        return None
    value: float = math.nan
    for kind in (float, int):  # exactly, if it is a whole number
        with contextlib.suppress(ValueError):
            value = kind(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} is {text.strip()}; it must be a number of 0 or more, or {default}")
    return value


def parse_count(name: str, text: str, smallest: int = 1, default: str = "auto") -> int | None:
    """Parse a field as a whole number; None for an empty field or the words for its default.

    Examples
    --------
    >>> parse_count("Atoms", "32", default="twice"), parse_count("Atoms", "twice", default="twice")
    (32, None)
    """
    value: float | None = math.nan
    with contextlib.suppress(ValueError):
        value = parse_number(name, text, default)
    if value is not None and not (value >= smallest and value == int(value)):
        raise ValueError(f"{name} is {text.strip()}; it must be a whole number of at least {smallest}, or {default}")
    return None if value is None else int(value)


def parse_range(name: str, text: str) -> tuple[str, int | None]:
    """Parse a field as numbers to try; returns them as the command line has them, and the largest, None if unknown.

    Examples
    --------
    >>> parse_range("Numbers to try", " 16:64"), parse_range("Numbers to try", "")
    (('16:64', 64), ('auto', None))
    """
    given = text.strip()
    if given in ("", "auto"):
        return "auto", None
    if not (match := re.fullmatch(r"(\d+):(\d+)(:\d+)?", given)):
        raise ValueError(f"{name} is {given}; it must be a range such as 16:64 or 16:64:4, or auto")
    return given, int(match[2])


def copy_upload(source: str | os.PathLike[str], folder: Path, taken: Sequence[str] = ()) -> str:
    """Copy an upload to the folder of a job, under another name if its own is taken; return the name."""
    name = Path(source).name
    if name in taken:
        name = f"{Path(source).stem}-mask{Path(source).suffix}"
    shutil.copyfile(source, folder / name)
    return name


def describe(picture: NDArray[Any]) -> str:
    """Describe size, colours and bits of a picture.

    Examples
    --------
    >>> describe(np.zeros((20, 30, 4), np.uint8))
    '30 × 20 pixels, colour with transparency, 8 bits'
    """
    channels = 1 if picture.ndim == 2 else picture.shape[2]
    kind = "grey" if channels < 3 else "colour"
    alpha = " with transparency" if channels in (2, 4) else ""
    return f"{picture.shape[1]} × {picture.shape[0]} pixels, {kind}{alpha}, {8 * picture.dtype.itemsize} bits"


def for_screen(picture: NDArray[Any]) -> Image.Image:
    """Convert to 8 bits for the browser; grey or RGB, with alpha if there is one."""
    shown = picture if picture.dtype == np.uint8 else (picture >> 8).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(shown))


def thumbnail_uri(image: Image.Image) -> str:
    """A small picture as a data URI: a PNG if it may be transparent, else a JPEG, which is smaller."""
    file = io.BytesIO()
    kind = "png" if image.mode in ("LA", "RGBA") else "jpeg"
    image.save(file, format=kind, **({"quality": 85} if kind == "jpeg" else {}))
    return data_uri(file.getvalue(), kind)


@contextlib.contextmanager
def _without_folder(file: Path) -> Any:
    """Name files in errors as the user does, without the folder of uploads."""
    try:
        yield
    except (ValueError, OSError) as error:
        said = path_problem(file, error) if isinstance(error, OSError) else str(error)
        sentence = said.replace(f"{file.parent}{os.sep}", "")
        for words, others in _OF_SIGNALS.items():
            sentence = sentence.replace(words, others)
        raise ValueError(sentence) from error


def _not_too_large(path: str | os.PathLike[str], limit: int) -> Path:
    file = Path(path)
    with _without_folder(file):
        size = file.stat().st_size
    if size > limit:
        raise ValueError(f"{file.name} has more than {limit >> 20} MB; use the command line for it")
    return file
