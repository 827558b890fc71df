"""``roadict learn -k auto`` and ``-k A:B`` choose the number of atoms by hidden entries."""

from pathlib import Path

import numpy as np
import pytest

from program import assert_refused
from roadict import ROADCV, load
from roadict.synthetic import planted

DATA = planted(300, 8, 12, sparsity=2, snr_db=25, random_state=90_200).data


@pytest.fixture
def planted_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", DATA)
    return tmp_path


def test_a_range_writes_the_model_that_the_library_would_and_its_curve(roadict, planted_folder):
    result = roadict("learn", "data.npy", "-k", "9:15:3", "-o", "out.npz", "--seed", 0)
    assert result.code == 0, result.err
    model, expected = load("out.npz"), ROADCV([9, 12, 15], random_state=0).fit(DATA)
    assert model.n_components_ == 12
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.cv_results_["hidden_error"], expected.cv_results_["hidden_error"])
    table = [line.split() for line in result.out.splitlines()[1:4]]
    assert [row[0] for row in table] == ["9", "12", "15"]
    assert [row[-1] == "chosen" for row in table] == [False, True, False]
    assert "curve: out-components.svg" in result.out
    assert "<svg" in Path("out-components.svg").read_text()
    codes = roadict("encode", "out.npz", "data.npy", "-o", "codes.npy")
    assert codes.code == 0, codes.err
    assert np.load("codes.npy").shape == (300, 12)


def test_auto_finds_the_true_number(roadict, planted_folder):
    result = roadict("learn", "data.npy", "-k", "auto", "-o", "out.npz", "--seed", 0, "--quiet")
    assert (result.code, result.out) == (0, "")
    assert abs(load("out.npz").n_components_ - 12) <= 1


def test_a_curve_without_a_clear_minimum_is_reported(roadict, planted_folder):
    result = roadict("learn", "data.npy", "-k", "9:12:3", "-o", "out.npz", "--seed", 0)
    assert "the largest number tried is chosen" in result.out
    # Dense combinations of three directions: four atoms represent them as well as three.
    rng = np.random.default_rng(90_201)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 8))
    np.save("data.npy", X + 0.05 * rng.standard_normal(X.shape))
    result = roadict("learn", "data.npy", "-k", "3:4", "-o", "out.npz", "--seed", 0)
    assert "the curve is flat: more than 3 atoms do not predict hidden entries clearly worse" in result.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-k", "1:2:3:4"), "--components 1:2:3:4 must be a number, a range such as 16:64 or 16:64:4, or auto"),
        (("-k", "8:"), "--components 8: must be a number"),
        (("-k", "16:8"), "--components 16:8 must be a range from 1 or more"),
        (("-k", "0:8"), "--components 0:8 must be a range from 1 or more"),
        (("-k", "4:8:0"), "step 0; it must be at least 1"),
        (("-k", "auto", "--method", "ksvd"), "-k auto chooses the number of atoms for --method road only"),
        (("-k", "auto", "--epsilon", "0.1"), "--epsilon does not go with -k auto"),
        (("-k", "4:8", "--alpha", "0.1"), "--alpha does not go with -k 4:8"),
        (("-k", "auto", "--checkpoint", "folder"), "-k auto writes no checkpoints"),
        (("-k", "auto", "--formulation", "inexact"), "--formulation inexact must be 'constrained' or 'lasso'"),
        (("-k", "200:400"), "--components 400 is more than the 300 samples"),
    ],
)
def test_nonsense_is_refused(roadict, planted_folder, options, message):
    assert_refused(roadict("learn", "data.npy", "-o", "out.npz", *options), message)
    assert not Path("out.npz").exists()
