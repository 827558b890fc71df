"""PNG files with 16 bits per colour channel, which Pillow reads at 8 bits and does not write."""

import struct
import zlib
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from roadict.kernels import kernel

Pixels = NDArray[np.uint16]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
_COLOUR_TYPE = {channels: kind for kind, channels in _CHANNELS.items()}
_LEVEL = 6


def is_png16(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a PNG with 16 bits per channel."""
    return start.startswith(SIGNATURE) and len(start) > 25 and start[24] == 16 and start[25] in _CHANNELS


def decode(raw: bytes) -> Pixels:
    """Pixels of a complete PNG file for which ``is_png16`` holds.

    Returns
    -------
    uint16 array of shape (height, width) or (height, width, channels)

    Raises
    ------
    ValueError, struct.error, zlib.error
        If the file is damaged or interlaced.
    """
    width, height = struct.unpack(">II", raw[16:24])
    channels = _CHANNELS[raw[25]]
    if raw[28]:
        raise ValueError("interlaced")
    row_bytes = 2 * width * channels
    expected = height * (row_bytes + 1)
    # Decompress no more than the header announces: a small file may hold gigabytes of zeros.
    stream = zlib.decompressobj().decompress(b"".join(_data_chunks(raw)), expected)
    if len(stream) != expected:
        raise ValueError("cut short")
    lines = np.frombuffer(stream, np.uint8).reshape(height, row_bytes + 1)
    if lines[:, 0].max() > 4:
        raise ValueError("unknown filter")
    plain = np.zeros((height, row_bytes), np.uint8)
    _unfilter(lines, plain, 2 * channels)
    pixels = plain.view(">u2").astype(np.uint16)
    return pixels.reshape(height, width) if channels == 1 else pixels.reshape(height, width, channels)


def _data_chunks(raw: bytes) -> list[bytes]:
    """Contents of the IDAT chunks, their checksums verified."""
    chunks, offset = [], len(SIGNATURE)
    while True:
        length, kind = struct.unpack(">I4s", raw[offset : offset + 8])
        body = raw[offset + 8 : offset + 8 + length]
        (checksum,) = struct.unpack(">I", raw[offset + 8 + length : offset + 12 + length])
        if checksum != zlib.crc32(kind + body):
            raise ValueError("wrong checksum")
        if kind == b"IDAT":
            chunks.append(body)
        if kind == b"IEND":
            return chunks
        offset += 12 + length


@kernel
def _unfilter(lines, plain, step):
    """Undo the five filters of PNG: none, left, up, their mean, and Paeth's choice."""
    height, row_bytes = plain.shape
    for y in range(height):
        kind = lines[y, 0]
        for x in range(row_bytes):
            left = np.int64(plain[y, x - step]) if x >= step else np.int64(0)
            up = np.int64(plain[y - 1, x]) if y > 0 else np.int64(0)
            corner = np.int64(plain[y - 1, x - step]) if x >= step and y > 0 else np.int64(0)
            guess = np.int64(0)
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            elif kind == 4:
                sum_ = left + up - corner
                far_left, far_up, far_corner = np.abs(sum_ - left), np.abs(sum_ - up), np.abs(sum_ - corner)
                if far_left <= far_up and far_left <= far_corner:
                    guess = left
                elif far_up <= far_corner:
                    guess = up
                else:
                    guess = corner
            plain[y, x] = (np.int64(lines[y, x + 1]) + guess) & 255


def write(file: BinaryIO, pixels: Pixels) -> None:
    """Write a PNG with 16 bits per channel.

    Parameters
    ----------
    file : binary file
    pixels : uint16 array of shape (height, width) or (height, width, 2, 3 or 4)
    """
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    plain = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    lines = np.empty((height, plain.shape[1] + 1), np.uint8)
    lines[:, 0] = 2  # "up": smooth pictures have small differences
    lines[0, 1:] = plain[0]
    lines[1:, 1:] = plain[1:] - plain[:-1]
    header = struct.pack(">IIBBBBB", width, height, 16, _COLOUR_TYPE[channels], 0, 0, 0)
    file.write(SIGNATURE)
    for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), _LEVEL)), (b"IEND", b"")):
        file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
