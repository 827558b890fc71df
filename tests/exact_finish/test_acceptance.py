"""What is accepted as an exact fit, and what is refused; each refusal beside thresholds or a rank that let it pass."""

import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

from roadict.exact_finish import search
from roadict.exact_finish.acceptance import is_sparse
from roadict.exact_finish.search import find_exact_fit
from roadict.exact_finish.thresholds import DEFAULTS, Thresholds
from roadict.linalg import unit_rows
from roadict.metrics import dictionary_error
from roadict.ranks.comm import SERIAL
from roadict.synthetic import planted

RESULTS = Path(__file__).parents[2] / "benchmarks" / "RESULTS.md"


def rough(dictionary, seed):
    rng = np.random.default_rng(seed)
    return unit_rows(dictionary + 0.004 * rng.standard_normal(dictionary.shape))[0]


@pytest.fixture(scope="module")
def planes():
    """Planted problems, and for each atoms and codes that fit it too: two atoms replaced by others of their plane."""
    mixing, pair, problems = np.array([[1, 0.6], [-0.6, 1]]), [4, 9], []
    for seed in range(100, 104):
        truth = planted(400, 16, 32, sparsity=3, random_state=seed)
        atoms, codes = truth.dictionary.copy(), truth.codes.copy()
        atoms[pair] = mixing @ atoms[pair]
        codes[:, pair] = codes[:, pair] @ np.linalg.inv(mixing)
        atoms, norms = unit_rows(atoms)
        np.testing.assert_allclose((codes * norms) @ atoms, truth.data, atol=1e-12)
        problems.append((truth, atoms, codes * norms))
    return problems


def test_two_atoms_for_others_of_their_plane_are_unmixed_or_refused(planes):
    """They reproduce the data with one atom more in a sixth of the samples: sparse enough to pass for exact."""
    fits = [find_exact_fit(truth.data, atoms, codes, 1) for truth, atoms, codes in planes]
    errors = [dictionary_error(fit.dictionary, planes[i][0].dictionary) for i, fit in enumerate(fits) if fit]
    assert 0 < len(errors) < len(fits)
    assert max(errors) < 1e-12
    no_unmixing = replace(DEFAULTS, min_common_use=1.0)
    for truth, atoms, codes in planes:
        fit = find_exact_fit(truth.data, atoms, codes, 1, thresholds=no_unmixing)
        assert dictionary_error(fit.dictionary, truth.dictionary) > 1e-3


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6, 1e-8])
def test_noise_is_refused_even_with_the_true_atoms(size):
    truth = planted(400, 16, 32, sparsity=3, random_state=5)
    noise = size * np.random.default_rng(8).standard_normal(truth.data.shape)
    assert find_exact_fit(truth.data + noise, truth.dictionary, truth.codes, 1) is None


def test_noise_below_rounding_is_accepted():
    truth = planted(400, 16, 32, sparsity=3, random_state=5)
    noise = 1e-11 * np.random.default_rng(8).standard_normal(truth.data.shape)
    fit = find_exact_fit(truth.data + noise, rough(truth.dictionary, 6), truth.codes, 1)
    assert dictionary_error(fit.dictionary, truth.dictionary) < 1e-12


def test_data_of_a_subspace_are_not_taken_for_sparse(monkeypatch):
    """Any atoms of the subspace fit them, with as many as its dimension: fewer than features, but not than the rank."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((16, 8)))[0].T
    data, atoms = rng.standard_normal((200, 8)) @ basis, unit_rows(rng.standard_normal((32, 8)) @ basis)[0]
    codes = np.linalg.lstsq(atoms.T, data.T)[0].T
    assert find_exact_fit(data, atoms, codes, 1) is None
    monkeypatch.setattr(search, "_rank", lambda *_: 16)
    assert find_exact_fit(data, atoms, codes, 1) is not None


def test_sparse_data_of_a_subspace_are_fitted():
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((16, 12)))[0].T
    truth = planted(400, 12, 24, sparsity=3, random_state=7)
    fit = find_exact_fit(truth.data @ basis, rough(truth.dictionary, 4) @ basis, truth.codes, 1)
    assert dictionary_error(fit.dictionary, truth.dictionary @ basis) < 1e-12


def test_an_atom_for_every_sample_is_refused():
    """One nonzero per sample cannot be sparser, and says nothing."""
    data = planted(32, 16, 32, sparsity=3, random_state=5).data
    atoms, norms = unit_rows(data)
    assert find_exact_fit(data, atoms, np.diag(norms), 1) is None
    trusting = replace(DEFAULTS, min_equations=0.0)
    assert find_exact_fit(data, atoms, np.diag(norms), 1, thresholds=trusting) is not None


def test_dense_samples_are_few_and_not_all_those_of_one_atom():
    """An atom that only dense samples use can be anything."""
    codes = planted(200, 16, 32, sparsity=3, random_state=6).codes
    assert is_sparse(codes, 16, DEFAULTS, SERIAL)
    codes[:8] = 0.1
    assert is_sparse(codes, 16, DEFAULTS, SERIAL), "four in a hundred"
    only_dense = codes.copy()
    only_dense[8:, 3] = 0
    assert not is_sparse(only_dense, 16, DEFAULTS, SERIAL)
    assert is_sparse(only_dense, 16, replace(DEFAULTS, min_sparse_use=0.0), SERIAL)
    codes[:12] = 0.01  # hardly any use, but six in a hundred
    assert not is_sparse(codes, 16, DEFAULTS, SERIAL)
    assert is_sparse(codes, 16, replace(DEFAULTS, min_sparse_samples=0.9), SERIAL)


def test_unequal_samples_are_fitted_to_rounding_and_zero_ones_get_no_codes():
    truth = planted(300, 16, 32, sparsity=3, random_state=5)
    sizes = 10 ** np.random.default_rng(0).uniform(-0.5, 0.5, (300, 1))
    sizes[::50] = 0
    fit = find_exact_fit(truth.data * sizes, rough(truth.dictionary, 1), truth.codes * sizes, 1)
    np.testing.assert_allclose(fit.dictionary, truth.dictionary, atol=1e-8)
    errors = np.linalg.norm(fit.codes @ fit.dictionary - truth.data * sizes, axis=1)
    assert np.all(errors <= 16e-9 * np.linalg.norm(truth.data * sizes, axis=1))
    assert not fit.codes[::50].any()


def test_every_threshold_was_measured():
    section = RESULTS.read_text(encoding="utf-8").split("## Thresholds of the exact finish\n")[1].split("\n## ")[0]
    measured = {name: float(value) for name, value in re.findall(r"^\| (\w+) \(([\d.e-]+)\) \|", section, re.MULTILINE)}
    assert measured == pytest.approx(asdict(DEFAULTS))
    assert len(measured) == len(fields(Thresholds))
