import numpy as np
import pytest
from skimage.restoration import inpaint_biharmonic

from roadict.metrics import psnr
from roadict.pictures import inpaint
from roadict.pictures.inpainting import rough_filling

from .conftest import eight_bits

QUICK = {"n_components": 64, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def scene():
    """Two fields of stripes some four pixels wide: a texture that smoothness cannot predict."""
    y, x = np.mgrid[:40, :40]
    return 0.5 + 0.3 * np.where(x + y < 44, np.sin(1.5 * x + 0.8 * y), np.sin(1.6 * y - 0.4 * x))


@pytest.fixture(scope="module")
def missing(scene):
    return np.random.default_rng(8).random(scene.shape) < 0.5


@pytest.fixture(scope="module")
def filled(scene, missing):
    return inpaint(np.where(missing, np.nan, scene), missing, **QUICK)


def test_textures_are_filled_better_than_by_smoothness(scene, missing, filled):
    smooth = inpaint_biharmonic(np.where(missing, 0, scene), missing)
    assert psnr(filled, scene) > psnr(smooth, scene) + 4


def test_observed_pixels_are_unchanged_and_missing_values_are_ignored(scene, missing, filled):
    np.testing.assert_array_equal(filled[~missing], scene[~missing])
    for mark in (0.123, -1e300):
        np.testing.assert_array_equal(inpaint(np.where(missing, mark, scene), missing, **QUICK), filled)


@pytest.mark.parametrize(("factor", "offset"), [(1, 0.3), (1000, 0), (255, 0)])
def test_floats_of_any_range(scene, missing, filled, factor, offset):
    """A little above white, about twelve bits, eight bits."""
    picture = factor * (scene + offset)
    result = inpaint(np.where(missing, 0, picture), missing, **QUICK)
    assert psnr(result / factor - offset, scene) > psnr(filled, scene) - 2


def test_transparent_pixels_are_the_mask_and_become_opaque(scene, missing):
    picture = np.dstack([eight_bits(np.where(missing, 1, scene)), eight_bits(~missing)])
    result = inpaint(picture, **QUICK)
    assert (result[..., 1] == 255).all()
    np.testing.assert_array_equal(result[..., 0][~missing], picture[..., 0][~missing])
    for white, opaque in ((255, 1), (255, 255), (65535, 65535)):
        floats = np.dstack([0.6 * white * scene, np.where(missing, 0.0, opaque)])[:12, :12]
        floats[0, 0, 1] = 0.7 * opaque
        assert (inpaint(floats, **QUICK)[1:, :, 1] == opaque).all()
    by_mask = inpaint(picture[..., 0], missing.astype(np.uint8), **QUICK)
    np.testing.assert_array_equal(result[..., 0], by_mask)


def test_transparent_pixels_of_floats_may_be_nan_and_the_progress_is_reported():
    grey, missing = np.full((12, 12), 0.5), np.eye(12, dtype=bool)
    grey[:, ::2] *= 0.9
    calls = []
    picture = np.dstack([np.where(missing, np.nan, grey), ~missing])
    result = inpaint(picture, **QUICK, progress=lambda *call: calls.append(call))
    np.testing.assert_array_equal(result[..., 0][~missing], grey[~missing])
    assert np.abs(result[..., 0] - grey).max() < 0.1
    steps = [done for done, _, _ in calls]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 1000)
    assert [text for *_, text in calls][-10:] == ["coding patches"] + 9 * ["coding the filled picture"]
    np.testing.assert_allclose(np.diff(steps[-9:]), np.diff(steps[-9:]).mean(), atol=1)


def test_colours_holes_and_single_pixels(scene):
    colour = eight_bits(np.dstack([scene, scene[::-1], 1 - scene]))
    hole = np.zeros(scene.shape, bool)
    hole[18:28, 4:14] = True
    result = inpaint(np.where(hole[..., None], 0, colour).astype(np.uint8), hole, **QUICK)
    assert psnr(result[hole], colour[hole], 255) > 15  # the hole is wider than a patch
    one = np.zeros(scene.shape, bool)
    one[10, 10] = True
    result = inpaint(np.where(one[..., None], 255, colour).astype(np.uint8), one, **QUICK)
    assert np.abs(result[10, 10].astype(int) - colour[10, 10]).max() < 25


def test_the_rough_filling_is_a_mean_of_its_surroundings():
    plane = np.full((40, 40), 3.0, np.float32)
    missing = np.ones((40, 40), bool)
    missing[0, 0] = False
    np.testing.assert_allclose(rough_filling(np.where(missing, 9, plane), missing), 3.0, rtol=1e-3)


def test_errors_name_the_remedy(scene):
    with pytest.raises(ValueError, match=r"mask has shape \(1, 1\) and the picture \(40, 40\)"):
        inpaint(scene, np.ones((1, 1)))
    with pytest.raises(ValueError, match="all pixels are missing"):
        inpaint(scene, np.ones(scene.shape))
    with pytest.raises(ValueError, match="no pixel is missing"):
        inpaint(scene, np.zeros(scene.shape))
    with pytest.raises(ValueError, match="there is no mask"):
        inpaint(scene)
    with pytest.raises(ValueError, match="each side must have at least 8"):
        inpaint(np.zeros((4, 9)), np.eye(4, 9))


def test_a_callback_may_stop_the_learning(scene):
    seen = []

    def stop(snapshot):
        seen.append(snapshot.iteration)
        return True

    missing = np.zeros((24, 24), bool)
    missing[10:12] = True
    inpaint(scene[:24, :24], missing, n_components=8, random_state=0, callback=stop)
    assert seen == [1]
