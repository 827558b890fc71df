import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from skimage.color import rgb2ycbcr

from roadict.metrics import psnr
from roadict.pictures.resize import luma, resize, rgb_to_ycbcr, ycbcr_to_rgb

from .conftest import luma8


def there_and_back(picture, scale):
    height, width = (length // scale * scale for length in picture.shape)
    picture = picture[:height, :width]
    return resize(resize(picture, (height // scale, width // scale)), picture.shape), picture


def test_set5_has_the_published_figures(shared):
    """MATLAB's imresize there and back; the paper's zebra and digit are in tests/experiments/test_images.py."""
    published = {
        2: {"baby": 37.1246, "bird": 36.7537, "butterfly": 27.4695, "head": 34.8968, "woman": 32.1728},
        3: {"baby": 33.9662, "bird": 32.4923, "butterfly": 24.0573, "head": 32.9298, "woman": 28.5670},
        4: {"baby": 31.8420, "bird": 30.0579, "butterfly": 22.1463, "head": 31.6750, "woman": 26.4486},
    }
    for scale, figures in published.items():
        for name, figure in figures.items():
            found = psnr(*there_and_back(luma8(shared / "set5" / f"{name}.png"), scale))
            assert found == pytest.approx(figure, abs=5e-4)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 50), st.integers(1, 50))
def test_a_constant_is_preserved_and_mirroring_commutes(height, width, tall, wide):
    np.testing.assert_allclose(resize(np.full((height, width), 0.7), (tall, wide)), 0.7, rtol=1e-12)
    picture = np.random.default_rng(height).random((height, width))
    turned = resize(picture[::-1].T, (wide, tall))
    np.testing.assert_allclose(turned, resize(picture, (tall, wide))[::-1].T, atol=1e-12)


def test_a_quadratic_is_reproduced_away_from_edges():
    # For Keys' kernel a = -1/2 is the one value that does so.
    x = np.arange(30.0)
    big = resize((x**2)[None], (1, 90))[0]
    at = (np.arange(90) + 0.5) / 3 - 0.5
    np.testing.assert_allclose(big[9:-9], at[9:-9] ** 2, rtol=1e-12)


def test_shrinking_agrees_with_pillows_bicubic_to_its_rounding():
    picture = np.random.default_rng(0).random((60, 45)).astype(np.float32)
    pillow = np.asarray(Image.fromarray(picture, mode=None).resize((15, 20), Image.Resampling.BICUBIC))
    ours = resize(picture, (20, 15))
    assert ours.dtype == np.float32
    # Pillow cuts at the edges where we mirror, so only the inside is the same.
    np.testing.assert_allclose(ours[2:-2, 2:-2], pillow[2:-2, 2:-2], atol=1e-5)


def test_channels_are_resized_independently():
    picture = np.random.default_rng(1).random((7, 9, 3))
    together = resize(picture, (14, 18))
    for channel in range(3):
        np.testing.assert_array_equal(together[..., channel], resize(picture[..., channel].copy(), (14, 18)))


def test_luma_and_chroma_are_those_of_scikit_image():
    picture = np.random.default_rng(2).random((6, 5, 3))
    np.testing.assert_allclose(rgb_to_ycbcr(picture) * 255, rgb2ycbcr(picture), atol=1e-10)
    np.testing.assert_allclose(ycbcr_to_rgb(rgb_to_ycbcr(picture)), picture, atol=1e-12)
    assert luma(np.ones((1, 1, 3)))[0, 0] * 255 == pytest.approx(235)
    np.testing.assert_array_equal(luma(picture[..., 0]), picture[..., 0])
