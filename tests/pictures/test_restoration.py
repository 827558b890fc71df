"""The parts of denoising and inpainting, on patches with a known answer."""

import numpy as np
import pytest

from roadict.pictures import denoise, inpaint
from roadict.pictures.restoration import Options, Patches, centred, code_plane, learned_atoms, refined, sample_patches


@pytest.fixture(scope="module")
def planted():
    """Unit atoms, and exact combinations of two of them."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(size=(12, 64)).astype(np.float32)
    atoms -= atoms.mean(axis=1, keepdims=True)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((400, 12), np.float32)
    for row in codes:
        row[rng.choice(12, 2, replace=False)] = rng.choice([-1, 1], 2) * rng.uniform(1, 2, 2)
    return atoms, codes @ atoms


def pool_of(values, observed=None):
    visible = values if observed is None else np.where(observed, values, 0).astype(np.float32)
    return Patches(visible, observed, np.zeros((len(values), 1), np.float32))


def test_means_and_energies_are_those_of_the_observed_pixels():
    rng = np.random.default_rng(1)
    values, observed = rng.random((20, 9)).astype(np.float32), rng.random((20, 9)) < 0.6
    observed[0] = False
    patches = centred(values, observed)
    seen = np.where(observed, values, np.nan)[1:]
    np.testing.assert_allclose(patches.means[1:, 0], np.nanmean(seen, axis=1), rtol=1e-5)
    np.testing.assert_allclose(patches.energy()[1:], np.nanvar(seen, axis=1), rtol=1e-4)
    assert not patches.values[~observed].any()
    assert (patches.means[0], patches.energy()[0]) == (0, 0)


def test_sampled_patches_come_from_all_planes_and_from_distinct_positions():
    planes = [np.arange(120, dtype=np.float32).reshape(10, 12) ** 2, np.full((10, 12), -5, np.float32)]
    patches = sample_patches(planes, None, 8, 12, np.random.default_rng(2))
    flat = ~patches.values.any(axis=1)
    assert (patches.means[flat] == -5).all()
    assert (np.count_nonzero(flat), len(np.unique(patches.means[~flat]))) == (6, 6)
    assert len(sample_patches(planes, None, 8, 10**6, np.random.default_rng(2)).values) == 2 * 15


def test_true_atoms_are_preserved_by_refining_on_the_observed_pixels(planted):
    atoms, values = planted
    observed = np.random.default_rng(3).random(values.shape) < 0.6
    for pool in (pool_of(values), pool_of(values, observed)):
        again = refined(atoms, pool, 1e-3, 2, 1)
        assert (again * atoms).sum(axis=1).min() > 0.9999


def test_refining_lowers_the_error_of_the_codes(planted):
    atoms, values = planted
    rough = atoms + 0.05 * np.random.default_rng(4).normal(size=atoms.shape).astype(np.float32)
    rough /= np.linalg.norm(rough, axis=1, keepdims=True)
    pool = pool_of(values)

    def misfit(atoms):
        return np.linalg.norm(values - pool.codes(atoms, 1e-4, 2, 1) @ atoms)

    better = refined(rough, pool, 1e-4, 2, 1)
    np.testing.assert_allclose(np.linalg.norm(better, axis=1), 1, rtol=1e-5)
    assert misfit(better) < 0.5 * misfit(rough)


def test_unused_atoms_are_replaced_by_the_worst_coded_patches():
    axes = np.eye(64, dtype=np.float32)
    values = np.concatenate([axes[[0, 1, 2] * 5], 3 * axes[[20]], 2 * axes[[21]], 0.5 * axes[[22]]])
    again = refined(axes[[0, 1, 2, 10, 11]], pool_of(values), 0.01, 2, 1)
    np.testing.assert_allclose(again, axes[[0, 1, 2, 20, 21]], atol=1e-3)


def test_unused_atoms_become_patches_or_are_unchanged_where_nothing_is_coded():
    axes = np.eye(64, dtype=np.float32)
    again = refined(axes[:3], pool_of(0.01 * axes[[7]]), 1.0, 2, 1)
    np.testing.assert_allclose(again, axes[[7, 1, 2]], atol=1e-6)


def test_few_patches_get_few_atoms_and_the_progress_is_reported(planted):
    calls = []
    options = Options.checked(64, 3, 0, 1, lambda *call: calls.append(call))
    atoms = learned_atoms(pool_of(planted[1][:40]), options, level=0.1, code_level=0.1, max_atoms=2, sweeps=2)
    assert atoms.shape == (10, 64)
    assert calls[-3:] == [(3, 3, "learning the dictionary"), (1, 2, "refining the dictionary"), (2, 2, calls[-1][2])]


def test_patches_with_hardly_an_observed_pixel_are_coded_by_the_rough_filling(planted):
    observed = np.zeros((20, 20), bool)
    observed[:, 0] = True
    shares = []
    found = code_plane(
        np.full((20, 20), 0.7, np.float32),
        observed,
        planted[0],
        8,
        level=0.01,
        max_atoms=2,
        n_jobs=1,
        advance=shares.append,
    )
    np.testing.assert_allclose(found, 0.7, rtol=1e-5)
    assert shares[-1] == 1


def test_only_patches_with_wanted_pixels_are_coded(planted):
    rng = np.random.default_rng(5)
    plane, wanted = rng.random((24, 24)).astype(np.float32), np.zeros((24, 24), bool)
    wanted[3, 4] = True
    settings = {"level": 0.1, "max_atoms": 2, "n_jobs": 1, "advance": lambda share: None}
    part = code_plane(plane, None, planted[0], 8, wanted=wanted, **settings)
    np.testing.assert_allclose(part[wanted], code_plane(plane, None, planted[0], 8, **settings)[wanted], rtol=1e-6)
    np.testing.assert_array_equal(part[12:], plane[12:])


def test_options_out_of_range_are_refused():
    for change in ({"n_components": 0}, {"max_iter": 2.5}, {"n_jobs": 0}, {"random_state": -1}):
        good = {"n_components": 4, "max_iter": 3, "random_state": 0, "n_jobs": 1, "progress": None}
        with pytest.raises(ValueError, match=f"{next(iter(change))}="):
            Options.checked(**(good | change))


class PoolKnownError(Exception):
    """Ends a run when the pool is known."""


@pytest.mark.parametrize("name", ["denoising", "inpainting"])
def test_patches_with_too_little_detail_are_not_learned_from(monkeypatch, name):
    pools = []

    def learned_atoms(pool, *others, **settings):
        pools.append(pool)
        raise PoolKnownError

    monkeypatch.setattr(f"roadict.pictures.{name}.learned_atoms", learned_atoms)
    rng = np.random.default_rng(6)
    picture = 0.5 + rng.normal(0, 0.05, (40, 80))
    picture[:, 40:] += 0.3 * np.sin(np.arange(40))
    missing = np.zeros(picture.shape, bool)
    missing[:, :20] = rng.random((40, 20)) < 0.9
    with pytest.raises(PoolKnownError):
        denoise(picture, 0.05, random_state=0) if name == "denoising" else inpaint(picture, missing, random_state=0)
    (pool,) = pools
    if name == "denoising":
        assert len(pool.values) < 0.7 * 33 * 73  # half of the picture is noise
        assert pool.energy().min() > 0.05**2
    else:
        assert pool.observed.mean(axis=1).min() >= 0.25
