"""Pixels: mosaics are compared atom by atom, and files are read by Pillow."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from roadict.drawing.raster import data_uri, grey, mosaic, own_scale, png


@pytest.mark.parametrize(("count", "columns", "zoom", "gap"), [(7, 3, 1, (1, 1)), (4, 4, 3, (5, 2)), (1, 1, 2, (0, 0))])
def test_a_mosaic_holds_every_atom_on_its_own_scale_and_nothing_else(count, columns, zoom, gap):
    atoms = np.random.default_rng(0).standard_normal((count, 9)) * 10.0 ** np.arange(count)[:, None]
    atoms[0] = 0
    sheet = mosaic(atoms, columns, zoom, gap)
    seen = np.zeros(sheet.shape, bool)
    for number, atom in enumerate(atoms):
        top = number // columns * (3 * zoom + gap[0])
        left = number % columns * (3 * zoom + gap[1])
        largest = max(abs(value) for value in atom) or 1.0
        for i in range(3 * zoom):
            for j in range(3 * zoom):
                value = atom[3 * (i // zoom) + j // zoom] / largest
                assert sheet[top + i, left + j] == pytest.approx(value, abs=1e-15)
                seen[top + i, left + j] = True
    assert np.isnan(sheet[~seen]).all()
    assert seen[-1].any()
    assert seen[:, -1].any()


def test_scales_are_symmetric_and_tiny_atoms_are_visible():
    np.testing.assert_array_equal(own_scale(np.array([[1e-300, -2e-300], [0, 0]])), [[0.5, -1], [0, 0]])


def test_greys_have_zero_in_the_middle_and_nan_is_transparent():
    assert grey(np.array([[-1.0, 0.0, 1.0, np.nan]])).tolist() == [[[0, 255], [128, 255], [255, 255], [0, 0]]]


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 2), (4, 5, 3), (4, 5, 4)])
def test_files_hold_the_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    for picture in (pixels, pixels / 255, np.asfortranarray(pixels)):
        head, _, body = data_uri(png(picture)).partition(",")
        assert head == "data:image/png;base64"
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(body)))), pixels)
    assert np.asarray(Image.open(io.BytesIO(png(np.array([[-1.0, 2.0]]))))).tolist() == [[0, 255]]
