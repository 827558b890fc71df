"""``roadict learn`` writes the model that the library would fit, for every method."""

import re
from pathlib import Path

import numpy as np
import pytest

from program import assert_refused, contents
from roadict import ROAD, load
from roadict.studio.commands import learn_command
from roadict.studio.naming import as_fields
from roadict.synthetic import planted

from .small import DATA, LEARN, SHORT, assert_same_model


@pytest.mark.parametrize("name", ["data.npy", "data.npz", "data.csv"])
def test_learn_writes_the_model_that_the_library_would(roadict, folder, name):
    result = roadict("learn", name, "-k", 8, "-o", "out.npz", *SHORT)
    assert result.code == 0, result.err
    assert "120 samples of 6 features, float64" in result.err
    assert "converged after" in result.out
    assert result.out.splitlines()[-1] == "model: out.npz"
    model = load("out.npz")
    expected = ROAD(8, max_iter=500, tol=1e-2, random_state=0).fit(DATA)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    np.testing.assert_allclose(model.codes_, expected.codes_, atol=1e-9)
    assert model.get_params() == expected.get_params()


def test_the_same_seed_gives_the_same_file(roadict, folder):
    for output, more in (("a.npz", ()), ("b.npz", ()), ("c.npz", ("--jobs", "1")), ("other.npz", ("--seed", "1"))):
        assert roadict("learn", "data.npy", "-k", 8, "-o", output, *SHORT, *more).code == 0
    assert_same_model("a.npz", "b.npz")
    np.testing.assert_array_equal(load("a.npz").components_, load("c.npz").components_)
    assert not np.allclose(load("a.npz").components_, load("other.npz").components_)


def test_float32_stays_and_the_number_of_atoms_has_a_default(roadict, folder):
    np.save("single.npy", DATA.astype(np.float32))
    result = roadict("learn", "single.npy", "-o", "out.npz", *SHORT)
    assert "float32" in result.err
    assert load("out.npz").components_.dtype == np.float32
    assert load("out.npz").components_.shape == (12, 6)


def test_features_that_are_the_same_in_all_samples_are_named(roadict, folder):
    data = DATA.copy()
    data[:, [1, 4]] = 7.0
    np.save("flat.npy", data)
    said = "roadict: warning: flat.npy: features 2, 5 are the same in all samples, which atoms learn before all else"
    learn = ("learn", "flat.npy", "-k", 8, "-o", "out.npz", *SHORT)
    assert f"{said}; subtract the mean of each feature first\n" in roadict(*learn).err
    assert "same in all samples" not in roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *SHORT).err
    assert "same in all samples" not in roadict(*learn, "--positive", "codes").err


def test_more_coefficients_than_features_are_refused(roadict, folder):
    options = ("learn", "data.npy", "-k", 8, "-o", "out.npz", "--method", "ksvd", "--sparsity")
    assert roadict(*options, 6).code == 0
    Path("out.npz").unlink()
    assert_refused(roadict(*options, 7), "--sparsity 7 must be at most 6, the number of features")
    assert not Path("out.npz").exists()


def test_options_reach_the_model(roadict, folder):
    roadict("learn", "data.npy", "-k", 8, "-o", "a.npz", "--rho", "7.5", "--epsilon", "0.2", "--max-iter", 9)
    model = load("a.npz")
    assert (model.rho_, model.epsilon_, model.n_iter_) == (7.5, 0.2, 9)
    roadict("learn", "data.npy", "-k", 8, "-o", "b.npz", "--formulation", "lasso", "--alpha", "0.3", "--n-init", "2")
    model = load("b.npz")
    assert (model.formulation, model.alpha, model.n_init) == ("lasso", 0.3, 2)
    assert model.transform_alpha_ == pytest.approx(0.3)
    inexact = ("--formulation", "inexact", "--beta", "200,300,250", "--rho", "210,310,260", "--max-iter", "5")
    roadict("learn", "data.npy", "-k", 8, "-o", "c.npz", *inexact, "--engine", "reference")
    model = load("c.npz")
    assert (model.rho_, model.beta, model.engine) == ((210, 310, 260), (200, 300, 250), "reference")
    roadict("learn", "data.npy", "-k", 8, "-o", "d.npz", "--formulation", "inexact", "--beta", "200", "--max-iter", "5")
    assert load("d.npz").beta == 200


@pytest.fixture
def holes(folder):
    """A table with empty cells."""
    lines = Path("data.csv").read_text().splitlines()
    for row in range(1, 120, 3):
        cells = lines[row].split(",")
        cells[row % 6] = ""
        lines[row] = ",".join(cells)
    Path("holes.csv").write_text("\n".join(lines))
    return "holes.csv"


def test_empty_cells_are_missing_entries_with_the_option(roadict, holes):
    result = roadict("learn", holes, "-k", 8, "-o", "out.npz", "--missing", *SHORT)
    assert result.code == 0, result.err
    assert np.isnan(load("out.npz").missing_values)
    result = roadict("encode", "out.npz", holes, "-o", "codes.npy")
    assert result.code == 0, result.err
    assert np.isfinite(np.load("codes.npy")).all()
    assert float(re.search(r"relative error (\S+)", result.out)[1]) < 0.2


def test_empty_cells_are_refused_with_the_option_that_allows_them(roadict, holes, folder):
    before = contents(folder)
    assert_refused(roadict("learn", holes, "-k", 8, "-o", "out.npz", *SHORT), "--missing")
    assert contents(folder) == before


def test_one_of_several_arrays_is_named_by_its_key(roadict, folder):
    np.savez("two.npz", first=DATA, second=DATA[:50])
    assert roadict("learn", "two.npz", "--key", "second", "-k", 8, "-o", "out.npz", *SHORT).code == 0
    assert load("out.npz").codes_.shape == (50, 8)
    result = roadict("learn", "two.npz", "-k", 8, "-o", "none.npz", *SHORT)
    assert_refused(result, "first, second")


def test_a_run_that_did_not_converge_warns_in_one_line_and_is_saved(roadict, folder):
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", "--max-iter", "5")
    assert result.code == 0
    [warning] = [line for line in result.err.splitlines() if "warning" in line]
    assert warning.startswith("roadict: warning: ROAD has not converged in --max-iter 5")
    assert result.out.startswith("stopped by --max-iter after 5 iterations")
    assert load("out.npz").stop_reason_ == "max_iter"


def test_learn_by_a_two_stage_method_and_encode_by_its_coder(roadict, folder):
    from roadict import AlternatingDictionaryLearning, load

    rows = planted(60, 8, 12, sparsity=2, random_state=0).data
    np.save(folder / "rows.npy", rows)
    shared = ("-k", "12", "-o", folder / "two.npz", "--seed", "3", "--max-iter", "20", "--tol", "0")
    result = roadict("learn", folder / "rows.npy", *shared, "--method", "mod", "--sparsity", "2")
    assert result.code == 0, result.err
    expected = AlternatingDictionaryLearning(
        12, update="mod", n_nonzero_coefs=2, random_state=3, max_iter=20, tol=0
    ).fit(rows)
    np.testing.assert_array_equal(load(folder / "two.npz").components_, expected.components_)
    assert roadict("encode", folder / "two.npz", folder / "rows.npy", "-o", folder / "codes.npy").code == 0
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), expected.transform(rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "nope"), "--method nope is unknown; use road, mod, ksvd"),
        (("--method", "mod", "--rho", "3"), "--rho does not belong to --method mod; leave it out"),
        (("--method", "ksvd", "--missing"), "--missing does not belong to --method ksvd"),
        (("--sparsity", "3"), "--sparsity does not belong to --method road"),
        (("--method", "mod", "--alpha", "3"), "--alpha 3 is not used by --method mod"),
        (("--method", "ksvd", "--coder", "lars"), "--coder lars has no equal here"),
    ],
)
def test_options_of_other_methods_are_refused_in_one_line(roadict, folder, options, message):
    np.save(folder / "rows.npy", planted(30, 8, 12, sparsity=2, random_state=0).data)
    result = roadict("learn", folder / "rows.npy", "-k", "12", "-o", folder / "two.npz", "-q", *options)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (folder / "two.npz").exists()


def test_an_engine_without_a_gpu_is_refused_in_one_line(roadict, folder, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert_refused(roadict("learn", "data.npy", *LEARN, "--engine", "cuda"), "--engine cuda")


def test_a_table_of_pandas_is_learned_without_its_index(roadict, folder):
    rows = [f"{i},{','.join(map(repr, row))}" for i, row in enumerate(DATA.tolist())]
    Path("pandas.csv").write_text("\n".join([",a,b,c,d,e,f", *rows]))
    result = roadict("learn", "pandas.csv", "-k", 8, "-o", "out.npz", "-q", *SHORT)
    warning = "pandas.csv has a first column without a name, which is taken for an index and left out; name it"
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith(f"roadict: warning: {warning}")
    assert len(result.err.splitlines()) == 1
    assert_same_model("out.npz", "model.npz")


@pytest.mark.parametrize("cell", ["NA", "", "nan"])
def test_missing_cells_are_learned_or_named_by_line(roadict, folder, cell):
    rows = [list(map(repr, row)) for row in DATA.tolist()]
    rows[7][2] = rows[9][0] = cell
    Path("holes.csv").write_text("\n".join(["a,b,c,d,e,f", *map(",".join, rows)]))
    learn = ("learn", "holes.csv", "-k", 8, "-o", "out.npz", *SHORT)
    message = "holes.csv contains NaN in 2 places (first: line 9, column 3); pass --missing if they are unobserved"
    assert_refused(roadict(*learn), message)
    message = "holes.csv contains NaN in 2 places (first: line 9, column 3); remove such samples, or use --method road"
    assert_refused(roadict("learn", "holes.csv", "-k", 8, "-o", "out.npz", "--method", "ksvd"), message)
    assert roadict(*learn, "--missing", "-q") == (0, "", "")


def test_samples_that_outweigh_all_others_are_told(roadict, folder):
    """A row of huge numbers, as of a sensor that failed: all but invisible in the other rows."""
    data = planted(200, 6, 8, sparsity=2, snr_db=30, random_state=0).data
    for name, row in (("huge.csv", 1e6), ("large.csv", 3.0)):
        np.savetxt(name, np.vstack([data[:4], np.full(6, row), data[4:]]), delimiter=",")
        result = roadict("learn", name, "-k", 8, "-o", "out.npz", *SHORT, "-q")
        said = "1 sample has 99% of the sum of squares of all (largest: line 5), and the others hardly count; remove or"
        assert (f"roadict: warning: huge.csv: {said} rescale it" in result.err) == (name == "huge.csv")


def test_a_high_noise_level_or_no_codes_at_all_are_doubted(roadict, folder):
    np.save("planted.npy", planted(300, 12, 8, sparsity=2, snr_db=26, random_state=3).data)
    learn = ("learn", "planted.npy", "-o", "out.npz", "--seed", 0)
    told = "if that is more than your noise, there are too few atoms: -k auto finds their number"
    for number in (3, 8):
        assert (told in roadict(*learn, "-k", number).out.splitlines()) == (number == 3)
    said = roadict(*learn, "-k", 8, "--formulation", "lasso", "--alpha", 1e3).out
    assert "all codes are zero: pass a smaller --alpha" in said
    assert "starts agree:" not in said


def test_a_model_given_as_data_is_named_as_such(roadict, folder):
    np.save("data.npy", DATA)
    roadict("learn", "data.npy", "-k", 8, "-o", "model.npz", *SHORT, "-q")
    message = "model.npz is a model of roadict and holds"
    assert_refused(roadict("learn", "model.npz", "-k", 8, "-o", "out.npz"), message)


def test_a_feature_without_any_entry_is_named_with_its_file_counting_from_1(roadict, folder):
    np.savetxt("never.csv", np.where(np.arange(6) == 2, np.nan, DATA), delimiter=",")
    result = roadict("learn", "never.csv", "-k", 8, "-o", "out.npz", "--missing", *SHORT, "-q")
    warning = "never.csv: 1 feature is never observed (first: feature 3); all atoms are zero there"
    assert result.err.startswith(f"roadict: warning: {warning}")
    said = as_fields(result.err, learn_command("never.csv", missing=True))
    assert "1 column is never observed (first: column 3)" in said
