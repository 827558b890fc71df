import numpy as np
import pytest

from roadict.metrics import psnr
from roadict.pictures import denoise
from roadict.pictures.denoising import noise_level

from .conftest import eight_bits

QUICK = {"n_components": 32, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def noisy(scene):
    return scene + np.random.default_rng(5).normal(0, 0.08, scene.shape)


@pytest.fixture(scope="module")
def cleaned(noisy):
    return denoise(noisy, 0.08, **QUICK)


def test_noise_is_removed(scene, noisy, cleaned):
    assert psnr(cleaned, scene) > psnr(noisy, scene) + 6


def test_units_do_not_matter(noisy, cleaned):
    scaled = denoise(noisy * 256, 0.08 * 256, **QUICK)
    assert np.abs(scaled / 256 - cleaned).mean() < 2e-3


def test_integer_pictures_give_integers(scene, noisy):
    result = denoise(eight_bits(noisy), 20, **QUICK)
    assert (result.dtype, result.shape) == (np.uint8, scene.shape)
    assert psnr(result / 255, scene) > psnr(noisy, scene) + 5


def test_colours_are_denoised_and_alpha_is_unchanged(scene):
    colour = np.dstack([scene, scene[::-1], 1 - scene, scene.T])
    noise = np.random.default_rng(6).normal(0, 0.08, colour.shape) * [1, 1, 1, 0]
    result = denoise(colour + noise, 0.08, **QUICK)
    np.testing.assert_array_equal(result[..., 3], colour[..., 3])
    assert psnr(result, colour) > psnr(colour + noise, colour) + 5


def test_grey_pictures_stored_as_rgb_are_grey(noisy):
    grey = noisy[:24, :24]
    for sigma in (0.08, "auto"):
        result = denoise(np.dstack([grey] * 3), sigma, **QUICK)
        np.testing.assert_array_equal(result, np.dstack([denoise(grey, sigma, **QUICK)] * 3))


def test_the_noise_is_estimated(scene, noisy):
    assert noise_level(noisy, "auto") == pytest.approx(0.08, rel=0.2)
    assert noise_level(eight_bits(noisy), 51.0) == pytest.approx(0.2)
    assert psnr(denoise(noisy, **QUICK), scene) > psnr(noisy, scene) + 5


def test_pictures_with_nothing_to_learn():
    flat = np.random.default_rng(7).normal(0.5, 0.05, (40, 40))
    assert denoise(flat, 0.05, **QUICK)[8:-8, 8:-8].std() < 0.01
    np.testing.assert_array_equal(denoise(flat, 0.0), flat)
    assert denoise(np.eye(8), 0.1, **QUICK).shape == (8, 8)
    for black in (np.zeros((20, 20), np.uint8), np.full((20, 20, 3), [10, 200, 30], np.uint8)):
        np.testing.assert_array_equal(denoise(black, **QUICK), black)


@pytest.mark.parametrize("side", [9, 12, 16])
def test_small_pictures_with_little_noise(scene, side):
    """They have patches for fewer atoms than so low a noise bound requires."""
    small = scene[30 : 30 + side, 40 : 40 + side]
    noisy = small + np.random.default_rng(8).normal(0, 0.01, small.shape)
    for sigma in (0.01, "auto"):
        assert psnr(denoise(noisy, sigma, max_iter=5, random_state=0), small) > 20


def test_the_progress_is_of_the_whole_job():
    calls = []
    colour = np.random.default_rng(9).random((12, 12, 3))
    denoise(colour, 0.25, **(QUICK | {"max_iter": 4}), progress=lambda *call: calls.append(call))
    texts = list(dict.fromkeys(text for _, _, text in calls))
    assert texts == ["learning the dictionary", "refining the dictionary", "coding patches"]
    steps = [done for done, _, _ in calls]
    assert steps == sorted(steps)
    assert {total for _, total, _ in calls} == {1000}
    assert (steps[0], steps[-1]) == (0, 1000)
    coding = [done for done, _, text in calls if text == "coding patches"]
    assert len(coding) == 3, "one plane after the other"
    assert max(done for done, _, text in calls if text != "coding patches") < coding[0]


def test_errors_name_the_remedy():
    with pytest.raises(ValueError, match="7 x 9 pixels; each side must have at least 8"):
        denoise(np.zeros((9, 7)))
    with pytest.raises(ValueError, match="sigma='much' must be 'auto' or a number"):
        denoise(np.zeros((9, 9)), "much")
    with pytest.raises(ValueError, match="sigma=-1"):
        denoise(np.zeros((9, 9)), -1)
    with pytest.raises(ValueError, match="sigma=25 is more than white, 1; give it in the units of the picture"):
        denoise(np.zeros((9, 9)), 25)
    with pytest.raises(ValueError, match="more than white, 255"):
        denoise(np.zeros((9, 9), np.uint8), 1e200)


def test_a_callback_gets_the_dictionary_and_may_stop_its_learning(scene):
    seen = []

    def stop_at_the_third(snapshot):
        seen.append(snapshot.dictionary)
        return snapshot.iteration == 3

    denoise(scene[:24, :24], 0.05, n_components=8, random_state=0, callback=stop_at_the_third)
    assert len(seen) == 3
    assert seen[0].shape == (8, 64)
    assert not np.array_equal(seen[0], seen[2])
