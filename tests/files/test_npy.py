"""One wrong bit in a header, and what follows an array, are noticed."""

import io
import zipfile

import numpy as np
import pytest

from roadict import AlternatingDictionaryLearning, load
from roadict.files.blocks import read_blocks
from roadict.files.models import ModelFileError
from roadict.files.tables import TableError, read_matrix

HEADER = 128
"""Bytes before the numbers in the files of these tests."""
ORDER = 21
"""Where the byte order stands among them."""


def flipped(raw, bit):
    damaged = bytearray(raw)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def accepted(path, raw, read, error):
    """Return the bits of the header that can be flipped unnoticed; any other error than ``error`` is raised."""
    bits = []
    for bit in range(8 * HEADER):
        path.write_bytes(flipped(raw, bit))
        if is_read(path, read, error):
            bits.append(bit)
    return bits


def is_read(path, read, error):
    """Whether a file is read, or refused in one line."""
    try:
        read(path)
    except error as refusal:
        message = str(refusal)
    else:
        return True
    assert str(path) in message
    assert "\n" not in message
    return False


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


@pytest.mark.parametrize("read", [read_matrix, lambda path: list(read_blocks(path, None, 50))])
@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">f8", "<i8"])
def test_no_bit_of_a_header_can_be_flipped(tmp_path, dtype, read):
    """Not even that of the byte order: < is > with another bit 1."""
    raw = npy(np.arange(720.0).reshape(120, 6).astype(dtype))
    assert raw[ORDER : ORDER + 3] == dtype.encode()
    assert accepted(tmp_path / "a.npy", raw, read, TableError) == []


@pytest.mark.parametrize("dtype", ["<u2", "<i4"])
def test_only_the_byte_order_of_short_whole_numbers_cannot_be_told(tmp_path, dtype):
    raw = npy(np.arange(720).reshape(120, 6).astype(dtype))
    assert accepted(tmp_path / "a.npy", raw, read_matrix, TableError) == [8 * ORDER + 1]


@pytest.mark.parametrize("dtype", ["|u1", "|b1"])
def test_single_bytes_have_no_byte_order(tmp_path, dtype):
    values = np.arange(720).reshape(120, 6).astype(dtype)
    path = tmp_path / "a.npy"
    for bit in accepted(path, npy(values), read_matrix, TableError):
        path.write_bytes(flipped(npy(values), bit))
        np.testing.assert_array_equal(read_matrix(path), values)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_bytes_after_an_array_are_refused(tmp_path, name):
    path = tmp_path / name
    twice = npy(np.eye(3)) + npy(np.ones((4, 3)))
    if name.endswith("npz"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.npy", twice)
    else:
        path.write_bytes(twice)
    for read in (read_matrix, lambda path: read_blocks(path, None, 2)):
        with pytest.raises(TableError, match=r"bytes follow its array.*one array per file"):
            read(path)


def test_headers_of_other_writers_are_read(tmp_path):
    """The order of the keys, blanks, padding and the sign of single bytes are up to them."""
    path = tmp_path / "a.npy"
    numbers = np.arange(6.0).reshape(2, 3)
    for text in (
        "{'shape':(2,3),'fortran_order':False,'descr':'<f8'}",
        "{'descr': 'f8', 'fortran_order': False, 'shape': (2, 3)}\n",
    ):
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + numbers.tobytes())
        np.testing.assert_array_equal(read_matrix(path), numbers)
    text = "{'descr': '<i1', 'fortran_order': False, 'shape': (2, 3), }"
    whole = numbers.astype(np.int8)
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + whole.tobytes())
    np.testing.assert_array_equal(read_matrix(path), numbers)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The entries of a model."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    data = np.random.default_rng(0).standard_normal((12, 4))
    AlternatingDictionaryLearning(3, n_nonzero_coefs=1, max_iter=2, tol=0, random_state=0).fit(data).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_damaged_headers_in_models_with_good_checksums_are_refused(tmp_path, members):
    path = tmp_path / "model.npz"
    rng = np.random.default_rng(0)
    unnoticed = []
    for name, raw in members.items():
        for bit in {8 * ORDER + 1, *rng.choice(8 * HEADER, 60, replace=False)}:
            with zipfile.ZipFile(path, "w") as archive:
                for each, content in members.items():
                    archive.writestr(each, flipped(raw, bit) if each == name else content)
            if is_read(path, load, ModelFileError):
                unnoticed.append((name, bit // 8))
    assert unnoticed == []
