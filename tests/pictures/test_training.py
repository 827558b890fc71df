"""Samples, dictionaries and predictors for super-resolution."""

import numpy as np
import pytest
from skimage import data

from roadict.pictures import Recipe, SuperResolution, predictors
from roadict.pictures.anchors import apply_regressors, fit_regressors
from roadict.pictures.dictionaries import learn_dictionary
from roadict.pictures.training import Sampling, gather

PAGE = data.page()[:60, :90]
SAMPLING = Sampling(scale=2, size=6, stride=2, features="pixels", edges="mirrored")


def samples_of(picture, **changes):
    settings = {"axes": None, "min_norm": 0.0, "augment": True, "max_samples": 10**9} | changes
    return gather([picture.astype(np.float32) / 255], SAMPLING, rng=np.random.default_rng(0), **settings)


def test_augmented_pictures_are_eight_and_give_the_same_samples_in_any_orientation():
    found, plain = samples_of(PAGE), samples_of(PAGE, augment=False)
    assert len(found.low) == len(found.high) == 8 * len(plain.low)
    for view in (PAGE.T, PAGE[::-1], PAGE[:, ::-1], np.rot90(PAGE)):
        turned = samples_of(view)
        for ours, theirs in zip(found, turned, strict=True):
            np.testing.assert_allclose(np.sort(ours.sum(axis=1)), np.sort(theirs.sum(axis=1)), atol=1e-5)


def test_about_as_many_samples_as_requested_and_none_below_the_norm():
    everything = samples_of(PAGE)
    some = samples_of(PAGE, max_samples=1000)
    assert 800 < len(some.low) < 1200
    rows = {row.tobytes() for row in everything.high}
    assert all(row.tobytes() in rows for row in some.high)
    norms = np.linalg.norm(everything.low, axis=1)
    middle = float(np.median(norms))
    assert len(samples_of(PAGE, min_norm=middle).low) == np.count_nonzero(norms >= middle)


def test_every_regressor_learns_the_map_of_its_own_neighbourhood_in_both_signs():
    rng = np.random.default_rng(0)
    atoms = np.eye(6, dtype=np.float32)[:2]
    which = rng.integers(0, 2, 3000)
    low = rng.choice([-1, 1], (3000, 1)) * (atoms[which] + 0.2 * rng.normal(size=(3000, 6)))
    low = (low / np.linalg.norm(low, axis=1, keepdims=True)).astype(np.float32)
    laws = rng.normal(size=(2, 6, 4)).astype(np.float32)
    high = np.einsum("nf,nfp->np", low, laws[which])
    regressors = fit_regressors(low, high, atoms, 1200, 1)
    assert np.abs(apply_regressors(low, atoms, regressors) - high).mean() < 0.02


def learn(**changes):
    given = {"method": "road", "epsilon": 0.5, "max_iter": 12, "seed": np.random.SeedSequence(0), "n_jobs": 1}
    calls = []
    values = np.random.default_rng(1).normal(size=(60, 8))
    atoms = learn_dictionary(values, 6, progress=lambda *call: calls.append(call), **(given | changes))
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-6)
    return values, atoms, calls


def test_two_stage_methods_run_a_sixth_of_the_iterations():
    assert learn()[2][-1][1] == 12
    assert learn(method="mod")[2][-1] == (2, 2, "learning the dictionary")
    assert learn(method="mod", max_iter=3)[2][-1][1] == 1


def test_random_atoms_are_samples():
    values, atoms, _ = learn(method="random")
    similarity = atoms @ (values / np.linalg.norm(values, axis=1, keepdims=True)).T
    np.testing.assert_allclose(similarity.max(axis=1), 1)
    assert len(set(similarity.argmax(axis=1))) == 6


@pytest.mark.parametrize("approach", ["anchored", "zeyde"])
def test_two_stage_methods_learn_with_the_number_of_coefficients_of_the_recipe(approach):
    seen = []
    for count in (1, 4):
        model = SuperResolution(
            2,
            approach=approach,
            method="mod",
            n_components=8,
            max_iter=12,
            recipe=Recipe(max_samples=200, coder="omp", n_nonzero_coefs=count),
            random_state=0,
        )
        model.fit([PAGE], callback=lambda snapshot: seen.append((snapshot.codes != 0).sum(axis=1).max()))
    assert seen == [1, 1, 4, 4]


@pytest.mark.parametrize(
    ("approach", "given", "expected"), [("anchored", None, 0.3), ("zeyde", None, 0.05), ("zeyde", 0.2, 0.2)]
)
def test_the_dictionary_is_learned_from_few_samples_with_the_bound_that_was_given(
    monkeypatch, approach, given, expected
):
    seen = {}

    def learn_dictionary(samples, n_components, *, epsilon, **others):
        seen.update(n_samples=len(samples), epsilon=epsilon)
        return samples[:n_components] / np.linalg.norm(samples[:n_components], axis=1, keepdims=True)

    monkeypatch.setattr(predictors, "learn_dictionary", learn_dictionary)
    recipe = Recipe(max_samples=50, epsilon=given, coder="omp")
    SuperResolution(2, approach=approach, n_components=8, recipe=recipe, random_state=0).fit([PAGE])
    assert seen == {"n_samples": 50, "epsilon": expected}
