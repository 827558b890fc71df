"""Matrices from files in blocks of rows."""

import tracemalloc

import numpy as np
import pytest

from roadict.files.blocks import read_blocks
from roadict.files.tables import TableError, read_matrix

ROWS = np.arange(42.0).reshape(14, 3)


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "f2", "i2", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [1, 5, 7, 14, 100])
def test_blocks_are_the_matrix(tmp_path, dtype, order, n_rows):
    path = tmp_path / "data.npy"
    np.save(path, ROWS.astype(dtype, order=order))
    total, blocks = read_blocks(path, None, n_rows)
    blocks = list(blocks)
    expected = read_matrix(path)
    assert total == len(ROWS)
    assert [len(block) for block in blocks] == [n_rows] * (14 // n_rows) + [14 % n_rows] * (14 % n_rows > 0)
    assert {block.dtype for block in blocks} == {expected.dtype}
    np.testing.assert_array_equal(np.concatenate(blocks), expected)


def test_other_files(tmp_path):
    np.savez(tmp_path / "data.npz", signals=ROWS, other=ROWS[:2])
    np.savetxt(tmp_path / "data.csv", ROWS, delimiter=",")
    for name, key in (("data.npz", "signals"), ("data.csv", None)):
        total, blocks = read_blocks(tmp_path / name, key, 4)
        assert total == 14
        np.testing.assert_array_equal(np.concatenate(list(blocks)), ROWS)
    np.save(tmp_path / "data.npy", ROWS)
    with pytest.raises(TableError, match="leave the key out"):
        read_blocks(tmp_path / "data.npy", "signals", 4)
    with pytest.raises(FileNotFoundError):
        read_blocks(tmp_path / "none.npy", None, 4)


def test_a_block_is_all_that_is_read_at_once(tmp_path):
    np.save(tmp_path / "data.npy", np.ones((100_000, 10)))
    tracemalloc.start()
    n_read = sum(len(block) for block in read_blocks(tmp_path / "data.npy", None, 1000)[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_read == 100_000
    assert peak < 8e6 / 10


def test_a_file_that_is_too_short(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, ROWS)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TableError, match=r"data\.npy is damaged or cut short"):
        read_blocks(path, None, 4)


def test_a_file_that_is_cut_while_it_is_read(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.ones((20_000, 3)))
    _, blocks = read_blocks(path, None, 5000)
    assert len(next(blocks)) == 5000
    with path.open("r+b") as file:
        file.truncate(128 + 24 * 7000 + 5)
    with pytest.raises(TableError, match=r"data\.npy ends within row 7001 of 20000: it has become shorter"):
        next(blocks)
