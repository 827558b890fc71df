"""``roadict encode`` and ``roadict show``."""

from pathlib import Path

import numpy as np
import pytest

from roadict import SparseCoder, load
from roadict.cli import app as cli

from .small import DATA, SHORT, picture_size


@pytest.mark.parametrize("output", ["codes.npz", "codes.npy"])
def test_encode_equals_transform(roadict, folder, output):
    result = roadict("encode", "model.npz", "data.csv", "-o", output)
    assert result.code == 0, result.err
    loaded = np.load(output)
    codes = loaded["codes"] if output.endswith(".npz") else loaded
    expected = load("model.npz").transform(DATA)
    np.testing.assert_allclose(codes, expected, atol=1e-9)
    error = np.linalg.norm(DATA - expected @ load("model.npz").components_) / np.linalg.norm(DATA)
    assert f"relative error {error:.3g}" in result.out
    assert f"{(expected != 0).sum(axis=1).mean():.2f} coefficients per sample" in result.out


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--algorithm", "omp"), {"algorithm": "omp"}),
        (("--algorithm", "omp", "--n-nonzero-coefs", "2"), {"algorithm": "omp", "n_nonzero_coefs": 2}),
        (("-a", "sp", "-s", "2"), {"algorithm": "sp", "n_nonzero_coefs": 2}),
        (("--algorithm", "mp", "--epsilon", "0.1"), {"algorithm": "mp", "epsilon": 0.1}),
        (("--algorithm", "basis-pursuit", "--jobs", "1"), {"algorithm": "basis-pursuit"}),
        (("--alpha", "0.3"), {"algorithm": "lasso", "alpha": 0.3}),
        (("--algorithm", "half"), {"algorithm": "half"}),
    ],
)
def test_encode_by_other_coders(roadict, folder, options, settings):
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npy", *options)
    assert result.code == 0, result.err
    expected = SparseCoder(load("model.npz").components_, **settings).transform(DATA)
    np.testing.assert_array_equal(np.load("codes.npy"), expected)


def test_encode_defaults_to_the_weight_of_the_fit(roadict, folder):
    assert roadict("encode", "model.npz", "data.npy", "-o", "codes.npy", "-a", "threshold").code == 0
    model = load("model.npz")
    expected = SparseCoder(model.components_, algorithm="threshold", alpha=model.transform_alpha_).transform(DATA)
    np.testing.assert_array_equal(np.load("codes.npy"), expected)


def test_encode_with_missing_entries(roadict, folder):
    holes = DATA.copy()
    holes[3, 2] = np.nan
    np.save("holes.npy", holes)
    assert roadict("encode", "model.npz", "holes.npy", "-o", "codes.npy", "--missing", "-q") == (0, "", "")
    codes, complete = np.load("codes.npy"), load("model.npz").transform(DATA)
    others = np.arange(len(DATA)) != 3
    np.testing.assert_allclose(codes[others], complete[others], atol=1e-9)
    assert np.abs(codes[3] - complete[3]).max() > 1e-3


def test_encode_handles_more_samples_than_one_block(roadict, folder, monkeypatch):
    monkeypatch.setattr(cli, "ENCODE_ROWS", 50)
    assert roadict("encode", "model.npz", "data.npy", "-o", "codes.npy").code == 0
    np.testing.assert_allclose(np.load("codes.npy"), load("model.npz").transform(DATA), atol=1e-6)


def test_encoding_float32_does_not_warn_for_every_sample(roadict, folder):
    np.save("single.npy", DATA.astype(np.float32))
    roadict("learn", "single.npy", "-k", 12, "-o", "out.npz", *SHORT)
    result = roadict("encode", "out.npz", "single.npy", "-o", "codes.npy")
    assert result.code == 0
    assert result.err.count("warning") <= 1
    assert np.load("codes.npy").dtype == np.float32


def test_show_draws_the_atoms(roadict, folder):
    result = roadict("show", "model.npz", "-o", "atoms.png")
    assert (result.code, result.out, result.err) == (0, "atoms: atoms.png\n", "")
    raw = Path("atoms.png").read_bytes()
    assert len(raw) > 5000
    width, height = picture_size(raw)
    assert 400 <= width <= 3000
    assert 200 <= height <= 3000
    from matplotlib.image import imread

    assert len(np.unique(imread("atoms.png").reshape(-1, 4), axis=0)) > 10  # something was drawn
    assert roadict("show", "model.npz", "-o", "atoms.SVG").code == 0
    assert b"<svg" in Path("atoms.SVG").read_bytes()
