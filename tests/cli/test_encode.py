"""``roadict encode`` and ``roadict show``."""

import errno
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from program import assert_refused, contents
from roadict import SparseCoder, load
from roadict.cli import encode

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
    monkeypatch.setattr(encode, "BLOCK_ROWS", 50)
    assert roadict("encode", "model.npz", "data.npy", "-o", "codes.npy").code == 0
    np.testing.assert_allclose(np.load("codes.npy"), load("model.npz").transform(DATA), atol=1e-6)


# ---- sparse codes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "data.csv"])
@pytest.mark.parametrize("options", [(), ("-a", "omp", "-s", "2"), ("-a", "threshold"), ("-a", "basis-pursuit")])
def test_sparse_codes_are_the_dense_ones(roadict, folder, monkeypatch, name, options):
    monkeypatch.setattr(encode, "BLOCK_ROWS", 50)
    dense = roadict("encode", "model.npz", name, "-o", "dense.npy", *options)
    result = roadict("encode", "model.npz", name, "-o", "codes.npz", "--sparse", *options)
    assert result.code == 0, result.err
    assert result.out == dense.out.replace("dense.npy", "codes.npz")
    codes = scipy.sparse.load_npz("codes.npz")
    assert codes.format == "csr"
    np.testing.assert_array_equal(codes.toarray(), np.load("dense.npy"))
    assert codes.nnz == np.count_nonzero(np.load("dense.npy"))


def test_sparse_codes_with_missing_entries_in_float32(roadict, folder):
    holes = DATA.astype(np.float32)
    holes[3, 2] = np.nan
    np.save("holes.npy", holes)
    for output, more in (("dense.npy", ()), ("codes.npz", ("--sparse",))):
        assert roadict("encode", "model.npz", "holes.npy", "-o", output, "--missing", "-q", *more) == (0, "", "")
    codes = scipy.sparse.load_npz("codes.npz")
    assert codes.dtype == np.float32
    np.testing.assert_array_equal(codes.toarray(), np.load("dense.npy"))


def test_zeros_need_no_memory(roadict, folder):
    model, rng = load("model.npz"), np.random.default_rng(0)
    atoms = rng.standard_normal((500, 6))
    model.components_, model.atom_usage_, model.codes_ = atoms, np.ones(500), None
    model.save("wide.npz")
    np.save("long.npy", rng.standard_normal((30_000, 6)))
    options = ("-a", "omp", "-s", "2", "--sparse", "--jobs", "2")
    roadict("encode", "wide.npz", "data.npy", "-o", "codes.npz", *options)  # compiles
    tracemalloc.start()
    result = roadict("encode", "wide.npz", "long.npy", "-o", "codes.npz", *options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.code == 0, result.err
    codes = scipy.sparse.load_npz("codes.npz")
    assert codes.shape == (30_000, 500)
    assert peak < 8 * 30_000 * 500 / 5


def test_sparse_codes_need_an_npz_file(roadict, folder):
    before = contents(folder)
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npy", "--sparse")
    assert_refused(result, "output codes.npy must end in .npz")
    assert contents(folder) == before


def test_a_failure_leaves_the_old_codes(roadict, folder, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("codes.npz").write_bytes(b"mine")
    before = contents(folder)
    monkeypatch.setattr(os, "replace", full)
    assert_refused(roadict("encode", "model.npz", "data.npy", "-o", "codes.npz", "--sparse"), "no space left")
    assert contents(folder) == before


@pytest.mark.parametrize("more", [(), ("--sparse",)])
def test_data_cut_while_they_are_read(roadict, folder, monkeypatch, more):
    code = SparseCoder._transform

    def cut(coder, block, *arguments, **others):
        os.truncate("data.npy", 128 + 8 * 6 * 60)
        return code(coder, block, *arguments, **others)

    np.save("data.npy", np.tile(DATA, (300, 1)))  # more than is read ahead
    monkeypatch.setattr(SparseCoder, "_transform", cut)
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npz", *more)
    assert_refused(result, "data.npy ends within row")
    assert not Path("codes.npz").exists()


def test_errors_number_the_rows_of_the_file(roadict, folder, monkeypatch):
    monkeypatch.setattr(encode, "BLOCK_ROWS", 50)
    holes = DATA.copy()
    holes[77, 2] = np.nan
    np.save("holes.npy", holes)
    assert_refused(
        roadict("encode", "model.npz", "holes.npy", "-o", "codes.npz"),
        "holes.npy contains NaN in 1 place (first: row 78, column 3); pass --missing",
    )
    holes[78] = np.nan
    np.save("holes.npy", holes)
    assert_refused(
        roadict("encode", "model.npz", "holes.npy", "-o", "codes.npz", "--missing"),
        "holes.npy has 1 sample with no observed entry (first: row 79)",
    )


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_the_error_does_not_depend_on_the_unit(roadict, folder, monkeypatch, scale):
    monkeypatch.setattr(encode, "BLOCK_ROWS", 50)
    scaled = scale * DATA
    scaled[:50] = 0  # the first block has no unit
    np.save("scaled.npy", scaled)
    result = roadict("encode", "model.npz", "scaled.npy", "-o", "codes.npy", "-a", "omp", "-s", "1")
    residual = DATA[50:] - np.load("codes.npy")[50:] / scale @ load("model.npz").components_
    assert f"relative error {np.linalg.norm(residual) / np.linalg.norm(DATA[50:]):.3g}" in result.out


def test_codes_that_overflow_are_refused(roadict, folder):
    np.save("data.npy", np.vstack([DATA[:20], np.full(DATA.shape[1], 1.7e308)]))
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npz")
    assert_refused(result, "codes of data.npy overflow float64; rescale the signals")
    assert not Path("codes.npz").exists()


def test_more_coefficients_than_features_are_refused(roadict, folder):
    np.save("data.npy", DATA)
    result = roadict("encode", "model.npz", "data.npy", "-o", "codes.npz", "-a", "omp", "-s", 7)
    assert_refused(result, "--n-nonzero-coefs 7 must be at most 6, the number of features")


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


def test_bad_input_is_refused_before_anything_is_compiled(roadict, folder, monkeypatch):
    def compiled(names, dtype):
        raise AssertionError(names)

    monkeypatch.setattr("roadict.precompile.prepare", compiled)
    np.save("nan.npy", np.full((3, 6), np.nan))
    assert_refused(roadict("encode", "model.npz", "nan.npy", "-o", "c.npz"), "nan.npy")
    assert_refused(roadict("encode", "model.npz", "data.npy", "-o", "c.npz", "--alpha", "-1"), "--alpha")
