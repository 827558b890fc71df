"""Files of either byte order are read, and those in which it is wrong are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from roadict import AlternatingDictionaryLearning, load
from roadict.files.byte_order import seems_swapped
from roadict.files.tables import TableError, read_matrix

FLOATS, INTEGERS = ("f2", "f4", "f8"), ("i2", "u2", "i4", "u4", "i8", "u8")
OTHER = ">" if np.dtype("<f8").isnative else "<"
"""The order that is not this machine's."""
SHAPE = (60, 7)


def float_data():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(SHAPE)
    return {
        "normal": normal,
        "small": 1e-3 * normal,
        "sparse": normal * (rng.random(SHAPE) < 0.1),
        "single precision": normal.astype(np.float32),
        "skew": np.exp(2 * normal),
        "holes": np.where(rng.random(SHAPE) < 0.3, np.nan, normal),
        "grey": rng.integers(0, 256, SHAPE) / 255,
        "whole": rng.integers(-500, 500, SHAPE),
        "binary": rng.random(SHAPE) < 0.3,
    }


def integer_data(dtype):
    rng = np.random.default_rng(0)
    ends = (10, 256, 1000, 4096)
    unsigned = {f"below {end}": rng.integers(0, end, SHAPE) for end in ends}
    return unsigned | ({f"within {end}": rng.integers(-end, end, SHAPE) for end in ends} if dtype[0] == "i" else {})


def constants(dtype):
    """Of a single value neither order is odd."""
    values = (0, 1, 7, 255, 256, 300) if dtype[0] in "iu" else (0.0, 0.1, 1.0, 7.0, -2.5, 300.0)
    return {f"constant {value}": np.full(SHAPE, value) for value in values}


def left_justified(dtype):
    """Sound of 16 bits in 32, and grey values of 8 bits in all others."""
    rng, bits = np.random.default_rng(0), 8 * int(dtype[1:])
    grey = {"grey": rng.integers(0, 128, SHAPE) << (bits - 8)} if bits < 64 else {}
    return grey | ({"sound": rng.normal(0, 3000, SHAPE).astype(np.int64) << 16} if dtype == "i4" else {})


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_files_of_both_orders_are_read(tmp_path, dtype, order):
    data = float_data() if dtype in FLOATS else integer_data(dtype) | left_justified(dtype)
    for name, values in (data | constants(dtype)).items():
        numbers = values.astype(order + dtype)
        np.save(tmp_path / "a.npy", numbers)
        np.testing.assert_array_equal(read_matrix(tmp_path / "a.npy"), numbers, err_msg=name)


@pytest.mark.parametrize("dtype", [*FLOATS, "i8", "u8"])
def test_numbers_in_the_wrong_order_are_refused(tmp_path, dtype):
    data = float_data() if dtype in FLOATS else integer_data(dtype)
    for name, values in data.items():
        right = values.astype(np.dtype(dtype))
        np.save(tmp_path / "a.npy", right.view(OTHER + dtype))
        with pytest.raises(TableError, match=r"a\.npy says \w+-endian, but its .* only as \w+-endian.*; copy it again"):
            print(name, read_matrix(tmp_path / "a.npy"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_in_the_other_order_are_not_taken_for_this_machines(dtype):
    for values in float_data().values():
        assert seems_swapped(values.astype(OTHER + dtype).view(dtype))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_any_numbers_of_common_size_are_read_in_both_orders(data):
    shape = data.draw(arrays.array_shapes(min_dims=2, max_dims=2, max_side=12))
    dtype = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    if dtype in FLOATS:
        elements = st.one_of(st.just(0.0), st.floats(-1e4, 1e4, width=16).filter(lambda value: abs(value) > 1e-3))
    else:
        elements = st.integers(0 if dtype[0] == "u" else -99, 99)
    values = data.draw(arrays.arrays(dtype, shape, elements=elements))
    for order in "<>":
        assert not seems_swapped(values.astype(order + dtype))


def test_a_large_matrix_is_judged_by_a_part(tmp_path):
    values = np.random.default_rng(0).standard_normal((3000, 100))
    for order in "CF":
        assert not seems_swapped(np.asarray(values, order=order))
        assert seems_swapped(np.asarray(values, order=order).view(OTHER + "f8"))


def test_models_of_machines_with_the_other_order_open(tmp_path):
    """All their entries have that order."""
    path = tmp_path / "model.npz"
    data = np.random.default_rng(0).standard_normal((12, 4))
    model = AlternatingDictionaryLearning(3, n_nonzero_coefs=1, max_iter=2, tol=0, random_state=0).fit(data)
    model.save(path)
    with np.load(path) as archive:
        entries = {name: array.astype(array.dtype.newbyteorder(OTHER)) for name, array in archive.items()}
    np.savez(path, **entries)
    np.testing.assert_array_equal(load(path).components_, model.components_)
