"""``roadict learn --positive`` and ``--fixed``: nonnegative codes and atoms, and known atoms."""

from pathlib import Path

import numpy as np
import pytest

from program import assert_refused, contents
from roadict import ROAD, ROADCV, AlternatingDictionaryLearning, Checkpoint, SparseCoder, atom_stability, load
from roadict.estimators import rows
from roadict.files import tables
from roadict.synthetic import planted

from .small import SHORT, arrays, assert_same_model

PLANTED = planted(120, 6, 8, sparsity=2, random_state=0)
ATOMS = np.abs(PLANTED.dictionary)
DATA = np.abs(PLANTED.codes) @ ATOMS
KNOWN = 3 * ATOMS[:2]
SIGNS = {
    "codes": {"positive_code": True},
    "atoms": {"positive_dict": True},
    "both": {"positive_code": True, "positive_dict": True},
}
ROAD_SHORT = {"max_iter": 500, "tol": 1e-2, "random_state": 0}
LEARN = ("learn", "data.npy", "-k", 8, "-o", "out.npz", *SHORT)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with nonnegative data, known atoms, and files that are no such atoms."""
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", DATA)
    np.save("known.npy", KNOWN)
    np.savez("known.npz", atoms=KNOWN)
    np.savetxt("known.csv", KNOWN, delimiter=",", fmt="%.17g")
    np.savez("two.npz", atoms=KNOWN, others=KNOWN)
    np.save("narrow.npy", KNOWN[:, :5])
    np.save("zero.npy", np.vstack([KNOWN, np.zeros(6)]))
    np.save("negative.npy", KNOWN - 10 * np.eye(2, 6))
    Path("negative.csv").write_text("a,b,c,d,e,f\n" + "1,1,1,1,1,1\n1,-2,1,1,1,1\n")
    np.save("many.npy", np.vstack([ATOMS, KNOWN]))
    np.save("nan.npy", np.where(np.eye(2, 6), np.nan, KNOWN))
    return tmp_path


def noisy(n_samples):
    """Nonnegative data of the known and other nonnegative atoms, with noise."""
    codes = np.abs(planted(n_samples, 6, 8, sparsity=2, random_state=1).codes)
    noise = np.random.default_rng(2).normal(0, 0.03, (n_samples, 6))
    return np.maximum(codes @ ATOMS + noise, 0)


def assert_signs(model, positive):
    assert (model.codes_.min() < 0) == (positive == "atoms")
    assert (model.components_.min() < 0) == (positive == "codes")
    assert np.count_nonzero(model.codes_) > 0


@pytest.mark.parametrize("positive", SIGNS)
def test_signs_are_those_of_the_library_and_hold_in_the_saved_model(roadict, here, positive):
    codes = PLANTED.codes if positive == "atoms" else np.abs(PLANTED.codes)
    data = codes @ (PLANTED.dictionary if positive == "codes" else ATOMS)
    np.save("data.npy", data)
    result = roadict(*LEARN, "--positive", positive)
    assert result.code == 0, result.err
    named = {"codes": "nonnegative codes", "atoms": "nonnegative atoms", "both": "nonnegative codes, nonnegative atoms"}
    assert result.out.splitlines()[1] == f"constraints: {named[positive]}"
    model, expected = load("out.npz"), ROAD(8, **SIGNS[positive], **ROAD_SHORT).fit(data)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.codes_, expected.codes_)
    assert model.get_params() == expected.get_params()
    assert_signs(model, positive)


@pytest.mark.parametrize("name", ["known.npy", "known.npz", "known.csv"])
def test_known_atoms_are_the_first_of_the_model_that_the_library_would_learn(roadict, here, name):
    result = roadict(*LEARN, "--fixed", name)
    assert result.code == 0, result.err
    assert result.out.splitlines()[1] == "constraints: 2 known atoms"
    model, expected = load("out.npz"), ROAD(8, fixed_atoms=KNOWN, **ROAD_SHORT).fit(DATA)
    np.testing.assert_allclose(model.components_[:2], ATOMS[:2], atol=1e-12)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.codes_, expected.codes_)
    np.testing.assert_array_equal(model.fixed_atoms, KNOWN)


def test_without_them_no_constraints_are_reported(roadict, here):
    assert "constraints" not in roadict(*LEARN).out


def test_the_number_of_atoms_is_chosen_within_them(roadict, here):
    data = noisy(200)
    np.save("data.npy", data)
    options = ("--positive", "both", "--fixed", "known.npy", "--formulation", "lasso", "--seed", 0)
    result = roadict("learn", "data.npy", "-k", "6:8:2", "-o", "out.npz", *options)
    assert result.code == 0, result.err
    assert "constraints: nonnegative codes, nonnegative atoms, 2 known atoms" in result.out
    model = load("out.npz")
    expected = ROADCV([6, 8], formulation="lasso", fixed_atoms=KNOWN, **SIGNS["both"], random_state=0).fit(data)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.cv_results_["hidden_error"], expected.cv_results_["hidden_error"])
    np.testing.assert_allclose(model.components_[:2], ATOMS[:2], atol=1e-12)
    assert_signs(model, "both")


@pytest.mark.parametrize("method", ["ksvd", "mod", "sequential"])
def test_signs_of_two_stage_methods(roadict, here, method):
    options = ("--method", method, "--positive", "both", "--tol", 0, "--max-iter", 10, "--seed", 0)
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *options)
    assert result.code == 0, result.err
    assert "constraints: nonnegative codes, nonnegative atoms\n" in result.out
    model = load("out.npz")
    expected = AlternatingDictionaryLearning(8, update=method, **SIGNS["both"], tol=0, max_iter=10, random_state=0).fit(
        DATA
    )
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert_signs(model, "both")


def test_encode_and_show_a_model_with_constraints(roadict, here):
    roadict(*LEARN, "--positive", "codes", "--fixed", "known.npy")
    np.save("new.npy", PLANTED.data)  # also codes of the other sign would help
    assert roadict("encode", "out.npz", "new.npy", "-o", "codes.npy", "-q") == (0, "", "")
    codes, model = np.load("codes.npy"), load("out.npz")
    np.testing.assert_array_equal(codes, model.transform(PLANTED.data))
    assert codes.min() == 0 < codes.max()
    assert roadict("encode", "out.npz", "new.npy", "-o", "omp.npy", "-a", "omp", "-s", 2, "-q").code == 0
    expected = SparseCoder(model.components_, algorithm="omp", n_nonzero_coefs=2, positive_code=True)
    np.testing.assert_array_equal(np.load("omp.npy"), expected.transform(PLANTED.data))
    before = contents(here)
    message = '--positive codes is not possible with "mp"; use "omp", "lasso", "basis-pursuit" or "threshold"'
    assert_refused(roadict("encode", "out.npz", "new.npy", "-o", "mp.npy", "-a", "mp"), message)
    assert contents(here) == before
    assert roadict("show", "out.npz", "-o", "atoms.png") == (0, "atoms: atoms.png\n", "")


def test_a_large_file_is_read_in_pieces(roadict, here, monkeypatch):
    data = noisy(4000)
    np.save("data.npy", data)
    for module, name in ((rows, "LARGE"), (tables, "LARGE_FILE")):
        monkeypatch.setattr(module, name, 10_000)
    options = ("--positive", "both", "--fixed", "known.npy", "--epsilon", 0.1, "--seed", 0, "-q")
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *options)
    assert (result.code, result.out) == (0, "")
    model = load("out.npz")
    expected = ROAD(8, epsilon=0.1, fixed_atoms=KNOWN, **SIGNS["both"], random_state=0).fit(data)
    assert model.codes_ is None
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_allclose(model.components_[:2], ATOMS[:2], atol=1e-12)
    assert model.components_.min() >= 0


def test_stability_is_measured_with_them(roadict, here):
    options = ("--positive", "codes", "--fixed", "known.npy", "--stability")
    result = roadict(*LEARN, *options)
    assert result.code == 0, result.err
    model = ROAD(8, fixed_atoms=KNOWN, positive_code=True, **ROAD_SHORT).fit(DATA)
    stability = load("out.npz").atom_stability_
    np.testing.assert_allclose(stability, atom_stability(model, DATA, random_state=0), atol=1e-9)
    np.testing.assert_allclose(stability[:2], 1)


class HalfwayError(Exception):
    """Ends a fit in the middle."""


def interrupt(snapshot):
    if snapshot.iteration == 60:
        raise HalfwayError


def test_a_run_resumes_with_the_same_constraints_only(roadict, here):
    run = ("learn", "data.npy", "-k", 8, "--rho", 10, "--tol", 0, "--max-iter", 120, "--seed", 0, "--positive", "both")
    resumed = (*run, "-o", "out.npz", "--checkpoint", "checkpoints", "--resume")
    model = ROAD(8, rho=10.0, tol=0.0, max_iter=120, random_state=0, fixed_atoms=KNOWN, **SIGNS["both"])
    model.set_params(checkpoint=Checkpoint("checkpoints", every=0.0), callback=interrupt)
    with pytest.raises(HalfwayError):
        model.fit(DATA)
    before = contents(here)
    np.save("other.npy", ATOMS[2:4])
    for options, name in (
        (("--fixed", "other.npy"), "--fixed"),
        ((), "--fixed"),
        (("--fixed", "known.npy", "--positive", "codes"), "--positive: True there, False here"),
    ):
        result = roadict(*resumed, *options)
        assert_refused(result, f"belongs to another problem ({name}")
        assert len(result.err) < 300
    Path("other.npy").unlink()
    assert contents(here) == before
    result = roadict(*resumed, "--fixed", "known.npy")
    assert result.code == 0, result.err
    assert "resumed after iteration" in result.err
    assert roadict(*run, "-o", "whole.npz", "--fixed", "known.npy").code == 0
    assert_same_model("out.npz", "whole.npz")
    assert arrays("out.npz")["components_"].min() >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--positive", "all"), "--positive all must be codes, atoms or both"),
        (("--fixed", "none.npy"), "none.npy does not exist"),
        (("--fixed", "two.npz"), "two.npz holds 2 arrays (atoms, others); pass one of them with --key, or one array"),
        (("--fixed", "nan.npy"), "nan.npy contains NaN or infinity (first: row 1, column 1); known"),
        (("--fixed", "narrow.npy"), "--fixed has 5 columns, but X has 6 features; pass atoms of that width"),
        (("--fixed", "zero.npy"), "zero.npy has an atom that is zero (first: row 3); every atom needs a direction"),
        (("--fixed", "many.npy"), "--fixed has 10 rows, which count in --components 8; pass --components 10 or"),
        (("--fixed", "many.npy", "-k", "6:12:2"), "--fixed has 10 rows, which count in --components 6"),
        (("--fixed", "negative.npy", "--positive", "atoms"), "negative.npy has a negative entry (first: row 1, col"),
        (("--fixed", "negative.csv", "--positive", "both"), "negative.csv has a negative entry (first: line 3, col"),
        (("--fixed", "known.npy", "--method", "ksvd"), "--fixed does not belong to --method ksvd; leave it out"),
        (("--positive", "codes", "--method", "blotless"), "--positive codes is not possible with --method blotless"),
        (("--positive", "both", "--method", "simco"), "--positive atoms is not possible with --method simco; use"),
        (("--positive", "codes", "--method", "mod", "--coder", "mp"), '--positive codes is not possible with "mp"'),
        (("--fixed", "known.npz", "-o", "known.npz"), "output known.npz is also an input; choose another name"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(roadict, here, options, message):
    before = contents(here)
    assert_refused(roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *options), message)
    assert contents(here) == before


def test_data_out_of_reach_are_refused_or_reported(roadict, here):
    np.save("data.npy", -DATA)
    assert_refused(roadict(*LEARN, "--positive", "both"), "X has no positive entry")
    np.save("data.npy", np.vstack([DATA, -DATA[:1]]))
    result = roadict(*LEARN, "--positive", "both", "--epsilon", "0.5")
    assert result.code == 0
    assert "roadict: warning: negative entries, " in result.err
