"""The paper's digits, literally."""

import numpy as np
import pytest

from roadict.experiments import literal
from roadict.experiments.plan import PictureProblem
from roadict.metrics import psnr
from roadict.pictures.recipe import Recipe
from roadict.pictures.training import enlarge, shrink

PICTURES = np.random.default_rng(0).random((4, 3, 3)).repeat(8, axis=1).repeat(8, axis=2)
RECIPE = Recipe(patch_size=6, stride=4, rho=10.0, epsilon=0.0)


def enlarged(approach, method, picture=PICTURES[0], recipe=RECIPE):
    problem = PictureProblem("digit", 2, approach, 24, 60)
    return literal.enlarge_literally(shrink(picture, 2), PICTURES[:3], problem, method, recipe, 3)


@pytest.mark.parametrize("approach", ["yang-literal", "zeyde-literal"])
@pytest.mark.parametrize("method", ["road", "mod"])
def test_a_training_picture_becomes_sharper_than_by_bicubic(approach, method):
    big, high = enlarged(approach, method)
    assert high.shape == (24, 36)
    bicubic = enlarge(shrink(PICTURES[0], 2), 2)
    assert psnr(big, PICTURES[0]) > psnr(bicubic, PICTURES[0]) + 1


def test_the_second_dictionary_fits_pixels_to_the_learners_own_codes(monkeypatch):
    found, learned = [], literal._learned

    def watched(data, *others):
        found.append((data, *learned(data, *others)))
        return found[-1][1:]

    monkeypatch.setattr(literal, "_learned", watched)
    _, high = enlarged("zeyde-literal", "road")
    [(low, atoms, codes)] = found
    pixels = np.concatenate([literal._patches(picture, 6, 4) for picture in PICTURES[:3]])
    assert low.shape == pixels.shape
    np.testing.assert_allclose(codes.T @ (codes @ high - pixels), 0, atol=1e-8)
    assert np.linalg.norm(low - codes @ atoms) < 0.2 * np.linalg.norm(low)


@pytest.mark.parametrize("coder", ["lasso", "omp"])
def test_random_patches_are_coded_as_the_recipe_says(coder):
    recipe = Recipe(patch_size=6, stride=4, coder=coder, n_nonzero_coefs=2)
    big, high = enlarged("zeyde-literal", "random", PICTURES[3], recipe)
    assert big.shape == PICTURES[3].shape
    assert np.isfinite(high).all()
