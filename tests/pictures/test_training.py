"""Samples, dictionaries and predictors for super-resolution, and where trained models are kept."""

import sys

import numpy as np
import pytest
from skimage import data

from roadict.pictures import SuperResolution, predictors
from roadict.pictures.anchors import apply_regressors, fit_regressors
from roadict.pictures.dictionaries import learn_dictionary
from roadict.pictures.training import gather
from roadict.pictures.upscaling import trained

PAGE = data.page()[:60, :90]
GATHER = {"features": "pixels", "edges": "mirrored", "axes": None, "flat": 0.0}


def samples_of(picture, **changes):
    settings = GATHER | {"turned": True, "at_most": 10**9} | changes
    return gather([picture.astype(np.float32) / 255], 2, 6, 2, rng=np.random.default_rng(0), **settings)


def test_turned_pictures_are_eight_and_teach_the_same_whichever_way_up():
    found, plain = samples_of(PAGE), samples_of(PAGE, turned=False)
    assert len(found.low) == len(found.high) == 8 * len(plain.low)
    for view in (PAGE.T, PAGE[::-1], PAGE[:, ::-1], np.rot90(PAGE)):
        turned = samples_of(view)
        for ours, theirs in zip(found, turned, strict=True):
            np.testing.assert_allclose(np.sort(ours.sum(axis=1)), np.sort(theirs.sum(axis=1)), atol=1e-5)


def test_about_as_many_samples_as_asked_for_none_of_them_flat():
    everything = samples_of(PAGE)
    some = samples_of(PAGE, at_most=1000)
    assert 800 < len(some.low) < 1200
    rows = {row.tobytes() for row in everything.high}
    assert all(row.tobytes() in rows for row in some.high)
    norms = np.linalg.norm(everything.low, axis=1)
    middle = float(np.median(norms))
    assert len(samples_of(PAGE, flat=middle).low) == np.count_nonzero(norms >= middle)


def test_every_regressor_learns_the_law_of_its_own_neighbourhood_on_both_sides_of_zero():
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
    told = []
    values = np.random.default_rng(1).normal(size=(60, 8))
    atoms = learn_dictionary(values, 6, progress=lambda *step: told.append(step), **(given | changes))
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-6)
    return values, atoms, told


def test_two_stage_methods_take_a_sixth_of_the_iterations():
    assert learn()[2][-1][1] == 12
    assert learn(method="mod")[2][-1] == (2, 2, "learning the dictionary")
    assert learn(method="mod", max_iter=3)[2][-1][1] == 1


def test_random_atoms_are_samples():
    values, atoms, _ = learn(method="random")
    likeness = atoms @ (values / np.linalg.norm(values, axis=1, keepdims=True)).T
    np.testing.assert_allclose(likeness.max(axis=1), 1)
    assert len(set(likeness.argmax(axis=1))) == 6


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
    SuperResolution(
        2, approach=approach, n_components=8, max_samples=50, epsilon=given, coder="omp", random_state=0
    ).fit([PAGE])
    assert seen == {"n_samples": 50, "epsilon": expected}


def test_models_are_kept_by_version_settings_and_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")

    def told(picture, **changes):
        said = []
        settings = {"n_components": 8, "method": "random", "random_state": 0, "n_jobs": 1} | changes
        model = trained(SuperResolution(2, **settings), [picture], told=said.append)
        assert model.n_jobs == settings["n_jobs"]
        return said[0].split()[0]

    other = PAGE.copy()
    other[3, 4] ^= 1
    assert [told(PAGE), told(PAGE), told(PAGE, n_jobs=2)] == ["training", "model", "model"]
    assert [told(other), told(PAGE.T), told(PAGE, random_state=1), told(PAGE, n_components=9)] == ["training"] * 4
    monkeypatch.setattr(sys.modules["roadict.pictures.upscaling"], "__version__", "another")
    assert [told(PAGE), told(PAGE)] == ["training", "model"]
