"""Read and write picture files; an error is one sentence with the problem and the remedy."""

import contextlib
import io
import logging
import os
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from roadict.files.atomic import atomic_write
from roadict.pictures import dtypes, png16

Pixels = NDArray[np.uint8] | NDArray[np.uint16]
SUFFIXES = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".bmp")
"""Extensions that can be written, and that are searched for in a folder."""
MAX_PIXELS = 2**28
"""Larger pictures are refused before they are unpacked: a small file can hold gigabytes. Phones take 200 million."""
_FORMATS = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF", ".jpg": "JPEG", ".jpeg": "JPEG", ".bmp": "BMP"}
_MODES = ("L", "LA", "RGB", "RGBA")
_VECTOR_FORMATS = ("EPS", "WMF")
# What Pillow and tifffile raise on damaged files, depending on the damaged bytes.
DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    LookupError,
    EOFError,
    struct.error,
    zlib.error,
    OverflowError,
    TypeError,
    AttributeError,
    RuntimeError,
)
_JPEG_QUALITY = 95
_JPEG_SIDE = 65_500
_ORIENTATION, _PHOTOMETRIC, _PLANES, _BITS = 274, 262, 284, 258  # tags of TIFF
_WHITE_IS_ZERO, _SEPARATE_PLANES = 0, 2
ONE_AT_A_TIME = threading.RLock()
"""Pillow's bound and the filters of warnings are those of the whole process, and the studio has several threads."""

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # else it logs damaged files next to our one line


class PictureFileError(ValueError):
    """A file that holds no usable picture, or whose format cannot hold the picture."""


def read_picture(path: str | os.PathLike[str]) -> Pixels:
    """Read a picture of 8 or 16 bits: grey or RGB, with alpha if the file has it.

    Black-and-white and palette pictures become grey and RGB; the Exif orientation is applied.

    Parameters
    ----------
    path : path

    Returns
    -------
    uint8 or uint16 array of shape (height, width), or (height, width, channels) with 2 (grey, alpha), 3 (RGB) or 4
    (RGB, alpha) channels

    Raises
    ------
    PictureFileError
        A ValueError: no picture, damaged, animated, too large, or neither grey nor RGB.
    OSError
        If the file cannot be opened, for example FileNotFoundError.
    """
    raw = Path(path).read_bytes()  # in memory, so that an OSError below comes from the contents and not from the disk
    if not raw:
        _refuse(path, "is empty", "save or copy it again")
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of metadata, harmless; and of sizes, which are refused below
            with opened(io.BytesIO(raw)) as image:
                return _pixels(path, raw, image)
    except Image.DecompressionBombError:
        _refuse(path, f"has more than {MAX_PIXELS:,} pixels", "cut or shrink it first")
    except UnidentifiedImageError:
        _refuse(path, "is no picture in a format that roadict reads", "convert it to PNG, TIFF, JPEG or BMP")
    except PictureFileError:
        raise
    except DAMAGE as error:
        raise PictureFileError(f"{os.fspath(path)} is damaged or cut short; save or copy it again") from error


@contextlib.contextmanager
def opened(source: str | os.PathLike[str] | io.BytesIO) -> Iterator[Image.Image]:
    """Open a picture of at most ``MAX_PIXELS``, without unpacking it; Pillow's own bound is lower.

    Raises
    ------
    PIL.Image.DecompressionBombError
        If it has more.
    """
    with ONE_AT_A_TIME:
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, MAX_PIXELS
        try:
            image = Image.open(source)
        finally:
            Image.MAX_IMAGE_PIXELS = before
    with image:
        if image.width * image.height > MAX_PIXELS:
            raise Image.DecompressionBombError
        yield image


def read_mask(path: str | os.PathLike[str]) -> dtypes.Plane:
    """Read a mask of any colours as one plane, nonzero where a pixel is marked; alpha is ignored."""
    picture = read_picture(path)
    colour, _ = dtypes.split(picture, dtypes.white(picture))
    return colour if colour.ndim == 2 else colour.max(axis=2)


def write_picture(path: str | os.PathLike[str], pixels: Pixels) -> None:
    """Write a picture in the format of its extension, atomically.

    Parameters
    ----------
    path : path
        Ends in .png, .tif, .tiff, .jpg, .jpeg or .bmp. Sixteen bits and alpha need PNG or TIFF.
    pixels : uint8 or uint16 array of shape (height, width) or (height, width, 2, 3 or 4)
    """
    check_writable(path, pixels)
    file_format = _FORMATS[Path(path).suffix.lower()]
    with atomic_write(path) as file:
        if pixels.dtype == np.uint16 and file_format == "PNG":
            png16.write(file, pixels.astype(np.uint16, copy=False))
        elif file_format == "TIFF":
            file.write(_tiff(pixels))
        else:
            image = Image.fromarray(np.ascontiguousarray(pixels))
            image.save(file, format=file_format, **({"quality": _JPEG_QUALITY} if file_format == "JPEG" else {}))


def check_writable(path: str | os.PathLike[str], pixels: Pixels, scale: int = 1) -> None:
    """Refuse a format that cannot hold such a picture, enlarged; call it before long work."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        _refuse(path, f"has the extension {suffix!r}", f"name it as one of {', '.join(SUFFIXES)}")
    if _FORMATS[suffix] == "PNG":
        return
    if _FORMATS[suffix] == "TIFF":
        if pixels.dtype == np.uint16 and pixels.ndim == 3 and pixels.shape[2] == 2:
            _refuse(path, f"cannot hold 16-bit grey with transparency as {suffix}", "name it .png")
        return
    side = scale * max(pixels.shape[:2])
    if _FORMATS[suffix] == "JPEG" and side > _JPEG_SIDE:
        _refuse(path, f"cannot hold a side of {side} pixels as {suffix}, but {_JPEG_SIDE}", "name it .png or .tif")
    if pixels.dtype != np.uint8:
        _refuse(path, f"cannot hold 16 bits as {suffix}", "name it .png or .tif")
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        _refuse(path, f"cannot hold transparency as {suffix}", "name it .png or .tif")


def _refuse(path: str | os.PathLike[str], what: str, remedy: str) -> NoReturn:
    raise PictureFileError(f"{os.fspath(path)} {what}; {remedy}")


def _pixels(path: str | os.PathLike[str], raw: bytes, image: Image.Image) -> Pixels:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a camera's JPEG with previews after the picture
        _refuse(path, f"has {frames} frames", "save one of them as a picture of its own")
    if image.format in _VECTOR_FORMATS:  # Pillow would run another program on them
        _refuse(path, "is a vector drawing, not pixels", "convert it to PNG")
    if png16.is_png16(raw):
        return _png16(path, raw, image)
    if image.format == "TIFF":
        return _read_tiff(path, raw, image)
    image.load()
    return _from_pillow(path, image)


def _from_pillow(path: str | os.PathLike[str], image: Image.Image) -> Pixels:
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    if image.mode == "1":
        image = image.convert("L")
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    elif image.mode in ("L", "RGB") and "transparency" in image.info:
        image = image.convert(image.mode + "A")
    if image.mode not in _MODES:
        _refuse(path, f"has {image.mode} colours", "convert it to grey or RGB of 8 or 16 bits")
    return np.array(image)


def _png16(path: str | os.PathLike[str], raw: bytes, image: Image.Image) -> Pixels:
    """Read a PNG of 16 bits, with its transparent colour and its Exif orientation."""
    try:
        pixels = png16.decode(raw)
    except ValueError as error:
        if "interlaced" in str(error):
            _refuse(path, "is an interlaced PNG of 16 bits", "save it without interlacing")
        raise
    hidden = image.info.get("transparency")
    if hidden is not None and (pixels.ndim == 2 or pixels.shape[2] == 3):
        shown = (pixels.reshape(*pixels.shape[:2], -1) != hidden).any(axis=2)
        pixels = np.dstack([pixels, shown * np.uint16(65535)])
    return _upright(pixels, image.getexif().get(_ORIENTATION, 1))


def _read_tiff(path: str | os.PathLike[str], raw: bytes, image: Image.Image) -> Pixels:
    """Read a TIFF, with tifffile where Pillow would reduce 16 bits per colour to 8."""
    tags: Any = image.tag_v2  # type: ignore[attr-defined]
    grey = image.mode.startswith("I;16")
    negative = grey and tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO
    if 16 not in np.atleast_1d(tags.get(_BITS, 1)) or grey:
        image.load()
        pixels = _from_pillow(path, image)
        return np.iinfo(np.uint16).max - pixels if negative else pixels
    try:
        colours: NDArray[Any] = tifffile.imread(io.BytesIO(raw))
    except (ValueError, LookupError) as error:
        if "imagecodecs" in str(error):
            _refuse(path, "is a compressed TIFF of 16 bits per colour", "save it with ZIP or without compression")
        raise
    if colours.ndim == 3 and tags.get(_PLANES) == _SEPARATE_PLANES:
        colours = np.moveaxis(colours, 0, 2)
    if colours.dtype != np.uint16 or colours.ndim != 3 or image.mode == "CMYK" or colours.shape[2] not in (2, 3, 4):
        _refuse(path, f"has {image.mode} colours of {colours.dtype}", "convert it to grey or RGB of 8 or 16 bits")
    return _upright(colours, tags.get(_ORIENTATION, 1))


def _upright(pixels: NDArray[np.uint16], orientation: int) -> Pixels:
    """Rotate and mirror by an Exif orientation, 1 to 8."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _tiff(pixels: Pixels) -> bytes:
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    file = io.BytesIO()
    tifffile.imwrite(
        file,
        np.ascontiguousarray(pixels),
        photometric="rgb" if channels >= 3 else "minisblack",
        extrasamples=["unassalpha"] if channels in (2, 4) else None,
        planarconfig="contig" if channels > 1 else None,
        compression="zlib",
        metadata=None,
    )
    return file.getvalue()
