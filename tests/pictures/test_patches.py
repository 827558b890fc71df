import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.util import view_as_windows

from roadict.pictures.patches import PatchMean, all_patches, bands, extract, starts

FLOATS = st.floats(-1e6, 1e6, width=32)


@st.composite
def grids(draw):
    size = draw(st.integers(1, 6))
    shape = draw(st.tuples(st.integers(size, 14), st.integers(size, 14)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return draw(hnp.arrays(dtype, shape, elements=FLOATS)), size, draw(st.integers(1, size))


@given(grids())
def test_unchanged_patches_give_back_the_picture_to_the_last_bit(grid):
    picture, size, stride = grid
    back = PatchMean(picture.shape, size, picture.dtype)
    back.add(all_patches(picture, size, stride), *(starts(length, size, stride) for length in picture.shape))
    assert back.mean.dtype == picture.dtype
    np.testing.assert_array_equal(back.mean, picture)


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
def test_every_pixel_is_covered_and_no_patch_leaves_the_picture(length, size, stride):
    if size > length or stride > size:
        with pytest.raises(ValueError, match=r"patch|stride"):
            starts(length, size, stride)
        return
    first = starts(length, size, stride)
    covered = np.unique(first[:, None] + np.arange(size))
    np.testing.assert_array_equal(covered, np.arange(length))
    assert len(np.unique(first)) == len(first)
    assert (np.diff(first)[:-1] == stride).all()


def test_the_number_of_patches_is_the_papers():
    assert len(starts(28, 6, 4)) ** 2 == 49  # a digit: the last row and column are clamped
    assert len(starts(174, 9, 3)) * len(starts(213, 9, 3)) == 3864


def test_patches_are_those_of_scikit_image():
    picture = np.random.default_rng(0).random((20, 17))
    expected = view_as_windows(picture, (5, 5), step=3).reshape(-1, 25)
    np.testing.assert_array_equal(all_patches(picture, 5, 3), expected)


def test_the_mean_is_over_all_patches_that_cover_a_pixel_in_any_bands():
    rng = np.random.default_rng(1)
    patches = rng.random((9 * 8, 16))
    rows, columns = starts(13, 4, 1)[:9], starts(11, 4, 1)
    total, count = np.zeros((13, 11)), np.zeros((13, 11))
    for patch, (y, x) in zip(patches.reshape(-1, 4, 4), ((y, x) for y in rows for x in columns), strict=True):
        total[y : y + 4, x : x + 4] += patch
        count[y : y + 4, x : x + 4] += 1
    mean, done = PatchMean((13, 11), 4), 0
    for band in bands(rows, len(columns), 20):
        mean.add(patches[done : done + len(band) * len(columns)], band, columns)
        done += len(band) * len(columns)
    np.testing.assert_array_equal(mean.count, count)
    np.testing.assert_allclose(mean.mean[count > 0], (total / np.maximum(count, 1))[count > 0], rtol=1e-13)


def test_only_the_requested_patches_are_copied():
    picture = np.lib.stride_tricks.as_strided(np.zeros(1), (100_000, 100_000), (0, 0))  # 80 GB if it were real
    assert extract(picture, 9, np.array([50_000]), np.array([0, 70_000])).shape == (2, 81)
