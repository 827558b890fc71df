"""Enlarge in one call: where the model comes from and is saved, and what is refused."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from skimage import data

from roadict.cli import pictures as commands
from roadict.pictures import Recipe, SuperResolution, upscale
from roadict.pictures.files import write_picture
from roadict.pictures.upscaling import trained

PAGE = data.page()[:60, :90]
SMALL = data.coins()[:20, :24]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of models of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path / "cache" / "roadict"


@pytest.fixture(scope="module")
def model():
    return SuperResolution(2, method="random", n_components=16, random_state=0, n_jobs=1).fit([data.page()])


def test_models_are_cached_by_version_settings_and_pictures(monkeypatch):
    def source(picture, **changes):
        messages = []
        settings = {"n_components": 8, "method": "random", "random_state": 0, "n_jobs": 1} | changes
        model = trained(SuperResolution(2, **settings), [picture], message=messages.append)
        assert model.n_jobs == settings["n_jobs"]
        return messages[0].split()[0]

    other = PAGE.copy()
    other[3, 4] ^= 1
    assert [source(PAGE), source(PAGE), source(PAGE, n_jobs=2)] == ["training", "model", "model"]
    assert [source(other), source(PAGE.T), source(PAGE, random_state=1)] == ["training"] * 3
    assert [source(PAGE, n_components=9), source(PAGE, recipe=Recipe(back_projection=0))] == ["training"] * 2
    assert [source(PAGE, recipe=Recipe()), source(PAGE, recipe=Recipe(engine="numba"))] == ["model"] * 2
    monkeypatch.setattr(sys.modules["roadict.pictures.upscaling"], "__version__", "another")
    assert [source(PAGE), source(PAGE)] == ["training", "model"]


def test_numpy_scalars_find_the_same_model(cache):
    for scale in (2, np.int64(2)):
        trained(SuperResolution(scale, method="random", n_components=8, random_state=0), [PAGE])
    assert len(list(cache.iterdir())) == 1


def test_training_pictures_are_used_and_the_model_is_saved(cache):
    pictures, messages = [data.page(), data.camera()[::4, ::4]], []
    settings = {"approach": "zeyde", "method": "random", "random_state": 5}
    expected = SuperResolution(2, **settings).fit(pictures).predict(SMALL)
    for _ in range(2):
        found = upscale(SMALL, 2, train=pictures, n_jobs=1, message=messages.append, **settings)
        np.testing.assert_array_equal(found, expected)
    (path,) = cache.iterdir()
    assert messages == ["training on 2 pictures, once", f"model saved in {path}", f"model from {path}"]


@pytest.mark.parametrize("stop", [lambda snapshot: snapshot.iteration == 2, lambda snapshot: snapshot.stop()])
def test_a_model_whose_training_was_stopped_is_not_saved(cache, stop):
    messages = []
    model = SuperResolution(2, n_components=8, max_iter=4, random_state=0)
    trained(model, [PAGE], callback=stop, message=messages.append)
    assert not cache.exists()
    assert messages[-1] == "training was stopped early: the model is not saved"
    trained(model, [PAGE], callback=lambda snapshot: None, message=messages.append)
    assert len(list(cache.iterdir())) == 1


def test_a_model_is_used_with_the_requested_threads_and_is_unchanged(model, monkeypatch):
    threads, predict = [], SuperResolution.predict

    def watched(self, *arguments):
        threads.append(self.n_jobs)
        return predict(self, *arguments)

    monkeypatch.setattr(SuperResolution, "predict", watched)
    expected = model.predict(SMALL)
    for n_jobs in (None, 2):
        np.testing.assert_array_equal(upscale(SMALL, 2, model=model, n_jobs=n_jobs), expected)
    assert threads == [1, 1, 2]
    assert model.n_jobs == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": [PAGE]}, "{0}train and {0}model exclude each other: a model is already trained"),
        (
            {"approach": "zeyde"},
            "{0}approach and {0}method do not apply to {0}model, which is already trained: leave them out",
        ),
        (
            {"method": "ksvd"},
            "{0}approach and {0}method do not apply to {0}model, which is already trained: leave them out",
        ),
        ({"scale": 3}, "the model enlarges by 2, not by 3; pass {0}scale 2, or another {0}model"),
    ],
)
def test_function_and_command_refuse_settings_that_conflict_with_a_trained_model(model, program, settings, message):
    with pytest.raises(ValueError, match=f"^{message.format('')}$"):
        upscale(SMALL, **({"scale": 2, "model": model} | settings))
    Path("folder").mkdir()
    write_picture("folder/page.png", PAGE)
    write_picture("small.png", SMALL)
    model.save("model.npz")
    options = {"scale": 2} | settings | ({"train": "folder"} if "train" in settings else {})
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    result = program("upscale", "small.png", "-o", "big.png", "--model", "model.npz", *given)
    assert result == (2, "", f"roadict: error: {message.format('--')}\n")


def test_function_and_command_have_the_same_defaults():
    of_function, of_command = (inspect.signature(each).parameters for each in (upscale, commands.upscale))
    pairs = {"scale": "scale", "approach": "approach", "method": "method", "random_state": "seed", "n_jobs": "jobs"}
    for ours, theirs in pairs.items():
        assert of_function[ours].default == of_command[theirs].default
