"""Shared by the tests of the command line: data that is learned quickly, and comparisons of files."""

import struct

import numpy as np

from roadict.synthetic import planted

DATA = planted(120, 6, 8, sparsity=2, random_state=0).data
SHORT = ("--max-iter", "500", "--tol", "1e-2", "--seed", "0")  # converges: no warning
LEARN = ("-k", "8", "-o", "out.npz", "--max-iter", "5")


def arrays(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: values for name, values in archive.items() if name != "history_seconds"}


def assert_same_model(first, second):
    first, second = arrays(first), arrays(second)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


def picture_size(raw):
    """Width and height of a PNG."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert raw[-8:-4] == b"IEND"
    return struct.unpack(">II", raw[16:24])
