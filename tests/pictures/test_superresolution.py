from dataclasses import replace

import numpy as np
import pytest
from skimage import data
from sklearn import clone
from sklearn.exceptions import NotFittedError

from roadict.coders import registry as coders
from roadict.files.models import ModelFileError, read_model, write_model
from roadict.pictures import Recipe, SuperResolution, predictors, tiles
from roadict.pictures.anchors import apply_regressors, fit_regressors
from roadict.pictures.resize import resize
from roadict.pictures.superresolution import saved_parameters

from .conftest import eight_bits

FEW = Recipe(max_samples=500)
QUICK = {"n_components": 32, "max_iter": 15, "recipe": FEW, "random_state": 0, "n_jobs": 1}
# What version 0.1.0 wrote next to the arrays, for SuperResolution(2, approach="zeyde", coder="omp").
PARAMETERS_OF_0_1_0 = {
    "scale": 2,
    "approach": "zeyde",
    "method": "road",
    "n_components": 512,
    "features": "derivatives",
    "patch_size": None,
    "stride": None,
    "epsilon": None,
    "rho": "auto",
    "max_iter": 120,
    "max_samples": 4000,
    "coder": "omp",
    "alpha": 0.03,
    "n_nonzero_coefs": 3,
    "back_projection": 1,
}


def small_of(picture, scale):
    return resize(picture, tuple(length // scale for length in picture.shape[:2]))


@pytest.fixture(scope="module")
def model():
    return SuperResolution(2, **QUICK).fit([data.page(), data.camera()[::2, ::2]])


@pytest.mark.parametrize(
    ("approach", "last"), [("anchored", "fitting the atoms' regressors"), ("zeyde", "coding patches")]
)
def test_all_stages_of_the_training_report_progress(approach, last, monkeypatch):
    monkeypatch.setattr(predictors, "BATCH", 2000)
    calls = []
    model = SuperResolution(2, approach=approach, **(QUICK | {"n_components": 20, "max_iter": 4}))
    model.fit([data.page(), data.coins()], lambda *call: calls.append(call))
    texts = list(dict.fromkeys(text for _, _, text in calls))
    assert texts == ["finding the axes of the features", "gathering patches", "learning the dictionary", last]
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    assert calls[-1][:2] == (1000, 1000)
    for text in texts:
        assert len([other for _, _, other in calls if other == text]) > 1


def test_back_projection_makes_the_result_shrink_to_the_input(model, monkeypatch):
    small = data.coins()[:60, :70] / 255
    misfit = {}
    for rounds in (0, 1, 3):
        monkeypatch.setattr(model, "recipe", replace(FEW, back_projection=rounds))
        misfit[rounds] = np.abs(small_of(model.predict(small), 2) - small).mean()
    assert misfit[3] < misfit[1] < 0.6 * misfit[0]


@pytest.mark.parametrize("patch_size", [None, 16])
def test_tiles_leave_no_seams(monkeypatch, patch_size):
    recipe = replace(FEW, patch_size=patch_size)
    model = SuperResolution(2, method="random", **(QUICK | {"recipe": recipe})).fit([data.page()[:120, :120]])
    picture = data.astronaut()[100:140, 200:250] / 255
    for rounds in (0, 3):
        model.set_params(recipe=replace(recipe, back_projection=rounds))
        monkeypatch.setattr(tiles, "SIDE", 256)
        whole = model.predict(picture)
        for side in (16, 33):
            monkeypatch.setattr(tiles, "SIDE", side)
            np.testing.assert_allclose(model.predict(picture), whole, rtol=0, atol=1e-6)


def test_dtype_range_and_channels_are_preserved(model):
    colour = data.astronaut()[:20, :24]
    expected = model.predict(colour)
    assert (expected.shape, expected.dtype) == ((40, 48, 3), np.uint8)
    unit = model.predict(colour / 255)
    assert unit.dtype == np.float64
    np.testing.assert_array_equal(eight_bits(unit), expected)
    np.testing.assert_allclose(model.predict((colour / 255).astype(np.float32)), unit, atol=1e-6)
    np.testing.assert_allclose(model.predict(colour.astype(float)), unit * 255, atol=0.51)  # floats of 0 to 255
    deep = model.predict(colour.astype(np.uint16) * 257)
    assert deep.dtype == np.uint16
    np.testing.assert_allclose(deep / 257, expected, atol=0.51)


@pytest.mark.parametrize("approach", ["anchored", "zeyde", "yang"])
def test_floats_of_any_range_give_the_same_picture(approach):
    picture = data.coins()[:24, :30]
    fitted = [
        SuperResolution(2, approach=approach, method="random", **QUICK).fit([training])
        for training in (data.page(), data.page() * 1.0)
    ]
    expected = fitted[0].predict(picture)
    for floats, unit in ((picture / 255, 1), (picture * 1.0, 255), (picture * 257.0, 65535)):
        for model in fitted:
            np.testing.assert_allclose(model.predict(floats) / unit, expected / 255, atol=0.51 / 255)
    assert np.isfinite(fitted[0].predict(picture * 1e300)).all()


def test_alpha_is_enlarged_by_bicubic_and_does_not_change_the_colours(model):
    colour = data.astronaut()[:16, :20]
    alpha = (np.arange(320).reshape(16, 20, 1) % 256).astype(np.uint8)
    both = model.predict(np.dstack([colour, alpha]))
    np.testing.assert_array_equal(both[..., :3], model.predict(colour))
    expected = eight_bits(resize(alpha[..., 0] / 255, (32, 40))).astype(int)
    assert np.abs(both[..., 3] - expected).max() <= 1  # float32 rounds a tie the other way
    grey = model.predict(np.dstack([colour[..., 0], alpha]))
    np.testing.assert_array_equal(grey[..., 0], model.predict(colour[..., 0]))
    np.testing.assert_array_equal(grey[..., 1], both[..., 3])


def test_grey_colours_stay_grey(model):
    grey = np.repeat(data.coins()[:20, :20, None], 3, axis=2)
    big = model.predict(grey).astype(int)
    assert np.ptp(big, axis=2).max() <= 1


def test_regressors_find_a_linear_law():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(4000, 6)).astype(np.float32)
    low /= np.linalg.norm(low, axis=1, keepdims=True)
    law = rng.normal(size=(6, 9)).astype(np.float32)
    regressors = fit_regressors(low, low @ law, low[:5], 2000, 1)
    new = rng.normal(size=(50, 6)).astype(np.float32)
    np.testing.assert_allclose(apply_regressors(new, low[:5], regressors), new @ law, atol=0.02)


def test_codes_that_are_all_zero_leave_the_bicubic():
    recipe = Recipe(alpha=50.0, back_projection=0)
    empty = SuperResolution(2, approach="zeyde", method="random", **(QUICK | {"recipe": recipe}))
    small = data.coins()[:20, :20] / 255
    found = empty.fit([data.page()[:60, :60]]).predict(small)
    np.testing.assert_allclose(found, np.clip(resize(small, (40, 40)), 0, 1), atol=1e-6)


@pytest.mark.parametrize("approach", ["anchored", "zeyde", "yang"])
def test_a_saved_model_gives_the_same_picture(tmp_path, approach):
    fitted = SuperResolution(2, approach=approach, method="random", **QUICK).fit([data.page()])
    fitted.save(tmp_path / "model.npz")
    again = SuperResolution.load(tmp_path / "model.npz")
    assert again.get_params() == fitted.get_params() | {"n_jobs": None}
    picture = data.coins()[:20, :20]
    np.testing.assert_array_equal(again.predict(picture), fitted.predict(picture))


def test_the_same_seed_gives_the_same_model_on_any_number_of_threads():
    parameters = QUICK | {"n_components": 16}
    first = SuperResolution(2, **parameters).fit([data.page()])
    second = SuperResolution(2, **(parameters | {"n_jobs": 2})).fit([data.page()])
    np.testing.assert_array_equal(first.predictor_.atoms, second.predictor_.atoms)
    np.testing.assert_array_equal(first.predictor_.regressors, second.predictor_.regressors)


def test_a_loaded_model_codes_with_the_requested_threads(tmp_path, monkeypatch):
    SuperResolution(2, approach="zeyde", method="random", **QUICK).fit([data.page()]).save(tmp_path / "model.npz")
    again = SuperResolution.load(tmp_path / "model.npz")
    again.n_jobs = 3
    threads = []

    def encode(*arguments, n_jobs, **others):
        threads.append(n_jobs)
        return coders.encode(*arguments, n_jobs=1, **others)

    monkeypatch.setattr(predictors, "encode", encode)
    again.predict(data.coins()[:10, :10])
    assert threads == [3]


@pytest.mark.parametrize(
    ("approach", "method", "change", "same"),
    [
        ("zeyde", "mod", {"coder": "omp"}, False),
        ("anchored", "mod", {"coder": "omp"}, True),
        ("zeyde", "road", {"coder": "omp"}, True),
        ("zeyde", "road", {"rho": 10.0}, False),
    ],
)
def test_what_the_atoms_depend_on(approach, method, change, same):
    first, second = (
        SuperResolution(2, approach=approach, method=method, **(QUICK | {"recipe": recipe}))
        .fit([data.page()])
        .predictor_.atoms
        for recipe in (FEW, replace(FEW, **change))
    )
    assert np.array_equal(first, second) == same


def test_a_clone_learns_the_same(model):
    settings = {"approach": "zeyde", "method": "ksvd", "n_components": 9, "max_iter": 7, "n_jobs": 1}
    original = SuperResolution(4, recipe=Recipe(coder="omp"), random_state=3, **settings)
    assert clone(original).get_params() == original.get_params()
    assert original.get_params() == settings | {"scale": 4, "recipe": Recipe(coder="omp"), "random_state": 3}
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict(np.zeros((9, 9)))
    fresh.set_params(n_components=8).fit([data.page()[:60, :60]])
    assert fresh.predictor_.atoms.shape[0] == 8
    assert model.predictor_.atoms.shape[0] == 32


def test_models_of_version_0_1_0_open(tmp_path):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(4 * 6 * 6, 20)))[0].astype(np.float32)
    atoms = rng.normal(size=(512, 20)).astype(np.float32)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    high = 0.01 * rng.normal(size=(512, 36)).astype(np.float32)
    arrays = {"atoms": atoms, "high": high, "weight": np.array(0.02), "axes": axes}
    write_model(tmp_path / "old.npz", "SuperResolution", PARAMETERS_OF_0_1_0, arrays)
    model = SuperResolution.load(tmp_path / "old.npz")
    assert model.get_params() == SuperResolution(2, approach="zeyde", recipe=Recipe(coder="omp")).get_params()
    assert model.predict(data.coins()[:12, :15]).shape == (24, 30)
    model.save(tmp_path / "new.npz")
    _, parameters, again = read_model(tmp_path / "new.npz")
    assert parameters == PARAMETERS_OF_0_1_0  # so that version 0.1.0 opens it, too
    for name, values in arrays.items():
        np.testing.assert_array_equal(again[name], values)


def test_foreign_and_damaged_model_files(tmp_path, model):
    write_model(tmp_path / "road.npz", "ROAD", {}, {})
    with pytest.raises(ModelFileError, match="holds a 'ROAD' model"):
        SuperResolution.load(tmp_path / "road.npz")
    arrays = model.predictor_.arrays() | {"axes": model.axes_}
    for change in ({"axes": model.axes_[:, 1:]}, {"regressors": np.zeros(3)}, {"axes": model.axes_ * np.nan}):
        write_model(tmp_path / "bad.npz", "SuperResolution", saved_parameters(model), arrays | change)
        with pytest.raises(ModelFileError, match="not a complete"):
            SuperResolution.load(tmp_path / "bad.npz")
    for change in ({"alpha": -1.0}, {"scale": 7}, {"taste": "salty"}):
        write_model(tmp_path / "bad.npz", "SuperResolution", saved_parameters(model) | change, arrays)
        with pytest.raises(ModelFileError, match="not a complete"):
            SuperResolution.load(tmp_path / "bad.npz")


def test_errors_name_the_remedy(model):
    for parameters, message in (
        ({"scale": 5}, "scale=5 must be 2, 3 or 4"),
        ({"scale": 2.0}, "scale=2.0 must be 2, 3 or 4"),
        ({"scale": np.array([2, 3])}, "must be 2, 3 or 4"),
        ({"approach": "magic"}, "approach='magic' must be one of"),
        ({"n_components": 0}, "n_components=0"),
        ({"recipe": Recipe(stride=40)}, "stride=40 must be at most"),
        ({"recipe": {"rho": 10.0}}, "must be a roadict.pictures.Recipe or None"),
    ):
        with pytest.raises(ValueError, match=message):
            SuperResolution(**parameters).fit([data.page()])
    for recipe, message in (
        ({"features": "smell"}, "features='smell' must be"),
        ({"coder": "morse"}, "coder='morse' must be"),
        ({"engine": "abacus"}, "engine='abacus' must be one of"),
        ({"rho": -1.0}, "rho=-1.0"),
        ({"epsilon": np.nan}, "epsilon=nan"),
        ({"alpha": -0.1}, "alpha=-0.1"),
        ({"patch_size": 2.5}, "patch_size=2.5"),
        ({"stride": 0}, "stride=0"),
        ({"max_samples": 0}, "max_samples=0"),
        ({"n_nonzero_coefs": 0}, "n_nonzero_coefs=0"),
        ({"back_projection": -1}, "back_projection=-1"),
    ):
        with pytest.raises(ValueError, match=message):
            Recipe(**recipe)
    with pytest.raises(ValueError, match="no training pictures"):
        SuperResolution().fit([])
    with pytest.raises(ValueError, match="patches for n_components=512"):
        SuperResolution().fit([data.page()[:20, :20]])
    with pytest.raises(ValueError, match="training picture 1 has 5 x 5 pixels"):
        SuperResolution().fit([np.zeros((5, 5))])
    with pytest.raises(ValueError, match="is not fitted yet; call fit, or load a model"):
        SuperResolution().predict(np.zeros((9, 9)))
    with pytest.raises(ValueError, match="2 x 2 pixels; each side must have at least 3"):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="dtype int64"):
        model.predict(np.zeros((9, 9), int))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((9, 9), np.nan))


def test_a_callback_gets_the_dictionary_of_every_iteration():
    seen = []
    fresh = SuperResolution(2, n_components=8, max_iter=3, recipe=Recipe(epsilon=0.8), random_state=0)
    fresh.fit([data.page()], callback=lambda snapshot: seen.append(snapshot.dictionary.shape[0]))
    assert seen == [8, 8, 8]
