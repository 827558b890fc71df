"""Atoms that patches use, against the features that an enlargement computes and a search by hand."""

import numpy as np
import pytest
from skimage.data import astronaut, camera

from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.places import patch_codes
from roadict.pictures.predictors import Anchored

ALL = 10**6


def fitted(scale=2, approach="anchored", **recipe):
    model = SuperResolution(
        scale,
        approach=approach,
        method="random",
        n_components=24,
        recipe=Recipe(max_samples=200, **recipe),
        random_state=0,
        n_jobs=1,
    )
    return model.fit([camera()[:96, 160:256]])


def features_in_predict(model, picture):
    """Features of all patches, row by row, as ``predict`` hands them to its predictor."""
    seen, true = [], model.predictor_

    class Spy:
        def detail(self, low, n_jobs):
            seen.append(low)
            return true.detail(low, n_jobs)

    model.predictor_ = Spy()
    model.predict(picture)
    model.predictor_ = true
    return np.concatenate(seen)


@pytest.mark.parametrize(
    ("scale", "picture", "recipe"),
    [
        (2, astronaut()[100:130, 200:222], {}),
        (3, camera()[100:120, 200:231], {}),
        (2, camera()[100:121, 200:216], {"features": "pixels", "patch_size": 5, "stride": 1}),
    ],
)
def test_every_patch_uses_the_anchor_that_is_most_like_it(scale, picture, recipe):
    model = fitted(scale, **recipe)
    places = patch_codes(model, picture, ALL)
    low, atoms = features_in_predict(model, picture), model.predictor_.atoms
    assert len(places.codes) == len(low)
    height, width = (scale * length for length in picture.shape[:2])
    assert places.n_columns == (width - places.size) // places.step + 1
    assert len(low) == places.n_columns * ((height - places.size) // places.step + 1)
    for features, codes in zip(low, places.codes, strict=True):
        likeness = [abs(sum(features * atom)) for atom in atoms]
        (used,) = np.flatnonzero(codes)
        assert likeness[used] == pytest.approx(max(likeness), rel=1e-3)
        assert abs(codes[used]) == pytest.approx(likeness[used], rel=1e-3)
    assert np.count_nonzero(places.codes) == len(low)


@pytest.mark.parametrize("coder", ["lasso", "omp"])
def test_codes_of_coupled_dictionaries_give_the_detail(coder):
    model, picture = fitted(approach="zeyde", coder=coder), camera()[100:120, 200:220]
    places = patch_codes(model, picture, ALL)
    detail = model.predictor_.detail(features_in_predict(model, picture), 1)
    np.testing.assert_allclose(places.codes @ model.predictor_.high, detail, atol=1e-4)
    assert 1 < np.count_nonzero(places.codes, axis=1).mean() < 24


def test_of_many_patches_some_are_coded_evenly_spaced():
    model, picture = fitted(), camera()[100:140, 200:250]
    every, some = patch_codes(model, picture, ALL), patch_codes(model, picture, 100)
    grid, times = every.codes.reshape(-1, every.n_columns, 24), some.step // every.step
    assert 60 < len(some.codes) <= 130
    assert (times > 1, some.size) == (True, every.size)
    np.testing.assert_allclose(some.codes, grid[::times, ::times].reshape(-1, 24), atol=1e-6)


def test_flat_patches_use_no_atom():
    model, picture = fitted(3), np.full((30, 40), 77, np.uint8)
    picture[:, :12] = camera()[100:130, 200:212]
    used = np.count_nonzero(patch_codes(model, picture, ALL).codes, axis=1).reshape(28, 38)
    assert (used[:, :10] == 1).all()
    assert not used[:, 16:].any()


def test_codes_name_the_regressor_that_predicts_a_patch():
    atoms, rng = fitted().predictor_.atoms, np.random.default_rng(0)
    low = rng.normal(size=(200, atoms.shape[1])).astype(np.float32)
    regressors = np.zeros((24, atoms.shape[1], 4), np.float32)
    regressors[7] = 1
    predictor = Anchored(atoms, regressors)
    np.testing.assert_array_equal(predictor.detail(low, 1).any(axis=1), predictor.codes(low, 1)[:, 7] != 0)
    assert 0 < np.count_nonzero(predictor.codes(low, 1)[:, 7]) < 200
