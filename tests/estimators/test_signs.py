"""Nonnegative codes, nonnegative atoms and atoms that are known, in whole fits."""

import re
import warnings

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import DictionaryLearning

import roadict
from roadict import ROAD, ROADCV, atom_stability
from roadict.checkpoints.schedule import RunStoppedError
from roadict.constraints import Constraints
from roadict.linalg import unit_rows
from roadict.road.start import draw_samples, starting_point
from roadict.synthetic import planted

SIGNS = [(True, False), (False, True), (True, True)]
FORMS = {
    "exact": {"epsilon": 0.0, "n_init": 1},
    "bounded": {"epsilon": 0.2},
    "lasso": {"formulation": "lasso", "alpha": 0.2},
    "inexact": {"formulation": "inexact"},
    "plain": {"epsilon": 0.0, "rho": 10.0},
    "noise from the data": {},
}
FIXED = np.array([[-3.0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0]])


def sums(n_samples, n_features=8, n_atoms=12, sparsity=2, *, positive_dict=True, snr_db=None, negative=False, seed=0):
    """Samples of nonnegative codes, and the atoms."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((n_atoms, n_features))
    if positive_dict:
        atoms = np.abs(atoms) * (rng.random(atoms.shape) < 0.5) + np.eye(n_atoms, n_features) * 1e-3
        atoms[~atoms.any(axis=1), 0] = 1
    atoms = unit_rows(atoms)[0]
    codes = np.zeros((n_samples, n_atoms))
    for row in codes:
        row[rng.choice(n_atoms, sparsity, replace=False)] = rng.exponential(size=sparsity)
    data = codes @ atoms
    if snr_db is not None:
        noise = rng.standard_normal(data.shape)
        data += noise * np.linalg.norm(data) / np.linalg.norm(noise) * 10 ** (-snr_db / 20)
    return np.maximum(data, 0) if positive_dict and not negative else data, atoms


def error(found, truth):
    """Error by matching with sign."""
    correlations = unit_rows(truth)[0] @ unit_rows(found)[0].T
    return 1 - correlations[linear_sum_assignment(-correlations)].mean()


def fitted(data, n_components=10, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ROAD(n_components, random_state=1, **({"max_iter": 300} | parameters)).fit(data)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("positive_code", "positive_dict"), SIGNS)
def test_signs_hold_in_atoms_codes_and_transform(positive_code, positive_dict, form, missing):
    if missing and form == "inexact":
        pytest.skip("the inexact form has no missing entries")
    data, _ = sums(150, snr_db=None if form in ("exact", "plain") else 15)
    more = {}
    if missing:
        data, more = (
            np.where(np.random.default_rng(3).random(data.shape) < 0.1, np.nan, data),
            {"missing_values": np.nan},
        )
    model = fitted(data, positive_code=positive_code, positive_dict=positive_dict, **FORMS[form], **more)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, rtol=1e-9)
    assert model.error_ < 0.6
    if positive_dict:
        assert model.components_.min() >= 0
    if positive_code:
        assert model.codes_.min() >= 0
        assert model.transform(data).min() >= 0
        assert model.sparse_coder("omp").transform(data).min() >= 0
    else:
        assert model.codes_.min() < 0


@pytest.mark.parametrize("positive_dict", [False, True])
def test_atoms_are_recovered_with_their_signs(positive_dict):
    data, truth = sums(200, 16, 32, 3, positive_dict=positive_dict, seed=95_000)
    model = ROAD(32, positive_code=True, positive_dict=positive_dict, random_state=0).fit(data)
    assert model.exact_
    assert error(model.components_, truth) < 1e-6
    assert model.codes_.min() >= 0


def test_the_exact_finish_respects_the_signs():
    """Codes of both signs: nonnegative ones of 32 atoms do not reproduce the data, and no exact fit may be claimed."""
    data = planted(300, 16, 32, sparsity=3, random_state=5).data
    assert ROAD(32, random_state=0).fit(data).exact_
    assert not fitted(data, 32, positive_code=True, max_iter=1000).exact_


@pytest.mark.parametrize(("positive_code", "positive_dict"), SIGNS)
def test_the_lasso_objective_is_at_most_that_of_scikit_learn(positive_code, positive_dict):
    data, _ = sums(300, 10, 14, 3, snr_db=10, seed=1)
    signs, alpha = {"positive_code": positive_code, "positive_dict": positive_dict}, 0.1
    model = fitted(data, 14, formulation="lasso", alpha=alpha, max_iter=2000, **signs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = DictionaryLearning(14, alpha=alpha, fit_algorithm="cd", max_iter=100, random_state=0, **signs).fit(data)
    codes = model.sparse_coder("lasso", alpha=alpha)
    values = []
    for atoms in (model.components_, unit_rows(peer.components_)[0]):
        own = codes.set_params(dictionary=atoms).transform(data)
        values.append(0.5 * np.sum((data - own @ atoms) ** 2) + alpha * np.abs(own).sum())
    assert values[0] <= 1.001 * values[1]
    assert model.objective_ * alpha == pytest.approx(values[0], rel=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive_code", [False, True])
def test_known_atoms_come_first_and_stay(form, positive_code):
    data, _ = sums(150, positive_dict=False, snr_db=15)
    model = fitted(data, positive_code=positive_code, fixed_atoms=FIXED, **FORMS[form])
    assert np.array_equal(model.components_[:2], unit_rows(FIXED)[0])
    assert len(model.components_) == 10
    assert (model.codes_[:, 2:] != 0).any()


def test_known_atoms_help_to_find_the_others():
    data, truth = sums(120, 12, 18, 3, positive_dict=False, seed=95_010)
    fixed = truth[:12] * -2.0
    model = fitted(data, 18, fixed_atoms=fixed, max_iter=2000)
    assert np.array_equal(model.components_[:12], unit_rows(fixed)[0])
    found = np.abs(truth[12:] @ model.components_[12:].T).max(axis=1)
    assert (found > 0.999).all()


def test_equal_and_unused_known_atoms_are_neither_merged_nor_replaced():
    data, truth = sums(200, 8, 6, snr_db=20)
    data[:, 7] = 0
    fixed = np.vstack([truth[:1], truth[:1], np.eye(8)[7:]])
    model = fitted(data, 8, epsilon=0.15, positive_code=True, positive_dict=True, fixed_atoms=fixed)
    assert np.array_equal(model.components_[:3], unit_rows(fixed)[0])
    assert model.atom_usage_[2] == 0


def test_known_atoms_are_not_shaken():
    """Many dictionaries of these data are as good, and the atoms of such Lasso fits are shaken."""
    data = np.random.default_rng(0).standard_normal((3000, 6))
    fixed = np.eye(6)[:2]
    model = fitted(data, 12, formulation="lasso", alpha=0.3, n_search_samples=1400, fixed_atoms=fixed, max_iter=40)
    assert np.array_equal(model.components_[:2], fixed)


def test_all_atoms_may_be_known():
    data, truth = sums(100)
    model = fitted(data, len(truth), fixed_atoms=truth, positive_code=True)
    assert np.array_equal(model.components_, unit_rows(truth)[0])
    assert model.error_ < 1e-6


def test_float32_stays():
    data, truth = sums(150)
    model = fitted(data.astype(np.float32), positive_code=True, fixed_atoms=truth[:2])
    assert model.components_.dtype == model.codes_.dtype == np.float32
    np.testing.assert_allclose(model.components_[:2], unit_rows(truth[:2])[0], atol=1e-7)


def test_a_stream_keeps_signs_and_known_atoms(tmp_path):
    data, truth = sums(3000, snr_db=20)
    model = ROAD(12, positive_code=True, positive_dict=True, fixed_atoms=truth[:2], random_state=0, epsilon=0.12)
    for part in np.array_split(data[:2000], 4):
        model.partial_fit(part)
    model.save(tmp_path / "stream.npz")
    loaded = roadict.load(tmp_path / "stream.npz")
    for part in np.array_split(data[2000:], 2):
        model.partial_fit(part)
        loaded.partial_fit(part)
    assert np.array_equal(model.components_, loaded.components_)
    assert np.array_equal(model.components_[:2], unit_rows(truth[:2])[0])
    assert model.components_.min() >= 0
    assert loaded.transform(data).min() >= 0
    assert error(model.components_, truth) < 0.05
    with pytest.raises(ValueError, match=r"the stream began with .*positive_code=True"):
        model.set_params(positive_code=False).partial_fit(data)


def test_a_fit_in_mini_batches_keeps_signs_and_known_atoms(monkeypatch):
    monkeypatch.setattr("roadict.estimators.rows.LARGE", 10_000)
    data, truth = sums(4000, snr_db=20)
    model = fitted(data, 12, positive_code=True, positive_dict=True, fixed_atoms=truth[:2], store_codes=True)
    assert np.array_equal(model.components_[:2], unit_rows(truth[:2])[0])
    assert model.components_.min() >= 0
    assert model.codes_.data.min() > 0


def test_ranks_give_the_fit_of_one_process(on_ranks):
    data, truth = sums(240, snr_db=20)
    model = ROAD(12, positive_code=True, positive_dict=True, fixed_atoms=truth[:2], random_state=0, epsilon=0.15)
    parts = np.array_split(data, 2)
    results = on_ranks(2, lambda comm: roadict.ROAD(**model.get_params()).fit(parts[comm.rank]).components_)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0][:2], unit_rows(truth[:2])[0])
    assert results[0].min() >= 0


def test_the_number_of_atoms_with_signs_and_known_atoms():
    data, truth = sums(400, snr_db=25)
    model = ROADCV(
        [8, 12, 16], n_splits=1, positive_code=True, positive_dict=True, fixed_atoms=truth[:3], random_state=0
    )
    model.fit(data)
    assert model.n_components_ == 12
    assert np.array_equal(model.components_[:3], unit_rows(truth[:3])[0])
    assert model.components_.min() >= 0
    assert model.transform(data).min() >= 0
    stability = atom_stability(model, data, n_splits=1, random_state=0)
    assert stability[:3] == pytest.approx(1)


def test_negative_data_warn_with_both_constraints_and_say_what_cannot_be_reached():
    data, _ = sums(100, snr_db=20, negative=True)
    share = np.linalg.norm(np.minimum(data, 0)) / np.linalg.norm(data)
    with pytest.warns(UserWarning, match=f"{share:.2%} of the norm of X, cannot be reached.*at least {share:.3g}"):
        model = ROAD(10, positive_code=True, positive_dict=True, max_iter=50, random_state=0).fit(data)
    assert model.error_ >= share
    with pytest.raises(ValueError, match=r"no positive entry.*leave positive_code or positive_dict out"):
        ROAD(10, positive_code=True, positive_dict=True).fit(-np.abs(data))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fixed_atoms": np.ones((2, 5))}, "fixed_atoms has 5 columns, but X has 8 features"),
        ({"fixed_atoms": np.zeros((1, 8))}, "fixed_atoms has 1 zero row (first: 0)"),
        ({"fixed_atoms": -np.eye(8), "positive_dict": True}, "fixed_atoms[0, 0]=-1 must be at least 0"),
        ({"fixed_atoms": np.ones((11, 8))}, "fixed_atoms has 11 rows, which count in n_components=10"),
        ({"fixed_atoms": np.ones(8)}, "fixed_atoms has shape (8,); it must have two dimensions"),
        ({"fixed_atoms": [[np.nan] * 8]}, "fixed_atoms contains NaN or infinity"),
        ({"fixed_atoms": "no"}, "fixed_atoms has dtype"),
        ({"positive_code": "codes"}, "positive_code='codes' must be True or False"),
        ({"positive_dict": 1}, "positive_dict=1 must be True or False"),
        ({"positive_code": True, "transform_algorithm": "cosamp"}, 'positive_code=True is not possible with "cosamp"'),
        ({"positive_dict": True, "dict_init": -np.eye(10, 8) - 1}, "must be at least 0, as positive_dict=True"),
        ({"positive_code": True, "code_init": -np.ones((60, 10))}, "must be at least 0, as positive_code=True"),
    ],
)
def test_bad_input(parameters, message):
    data, _ = sums(60)
    with pytest.raises(ValueError, match=re.escape(message)):
        ROAD(10, **parameters).fit(data)


def test_known_atoms_count_in_the_smallest_error():
    data, truth = sums(100)
    fixed = np.repeat(truth[:1], 10, axis=0)
    with pytest.raises(ValueError, match=r"epsilon=0\.1 is below"):
        ROAD(10, fixed_atoms=fixed, epsilon=0.1).fit(data)
    model = ROAD(10, fixed_atoms=fixed, random_state=0).fit(data)
    rest = data - np.outer(data @ truth[0], truth[0])
    assert model.epsilon_ >= np.linalg.norm(rest) / np.linalg.norm(data)
    assert model.stop_reason_ == "converged"


def test_a_search_for_the_number_of_atoms_counts_many_known_atoms():
    rng = np.random.default_rng(0)
    model = ROADCV(fixed_atoms=rng.standard_normal((10, 4)), n_splits=1, max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rng.standard_normal((100, 4)))
    assert model.n_components_ >= 10


@pytest.mark.parametrize("positive_dict", [False, True])
def test_a_start_from_codes_keeps_their_product_with_the_atoms(positive_dict):
    data, _ = sums(200)
    codes = np.random.default_rng(0).exponential(size=(200, 8)) * 100
    constraints = Constraints(positive_dict=positive_dict)
    atoms, started = starting_point(data, 8, None, codes, np.random.default_rng(1), constraints=constraints)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1)
    assert np.linalg.norm(data - started @ atoms) < np.linalg.norm(data)


def test_opposite_samples_are_two_starts_if_codes_are_nonnegative():
    data = np.repeat(np.vstack([np.eye(3), -np.eye(3)]), 2, axis=0)
    atoms = draw_samples(data, 6, np.random.default_rng(0), constraints=Constraints(positive_code=True))
    assert np.array_equal(np.sort(atoms, axis=0), np.sort(np.vstack([np.eye(3), -np.eye(3)]), axis=0))


def test_known_atoms_of_a_data_frame_are_saved(tmp_path):
    pandas = pytest.importorskip("pandas")
    data, truth = sums(60)
    fitted(data, fixed_atoms=pandas.DataFrame(truth[:2]), epsilon=0.1, max_iter=20).save(tmp_path / "model.npz")
    np.testing.assert_array_equal(roadict.load(tmp_path / "model.npz").fixed_atoms, truth[:2])


def test_a_clone_and_a_file_keep_the_constraints(tmp_path):
    data, truth = sums(100)
    model = fitted(data, positive_code=True, fixed_atoms=truth[:2].tolist(), max_iter=50)
    model.save(tmp_path / "model.npz")
    loaded = roadict.load(tmp_path / "model.npz")
    assert loaded.positive_code is True
    np.testing.assert_array_equal(loaded.fixed_atoms, truth[:2])
    assert np.array_equal(loaded.transform(data), model.transform(data))


def test_a_checkpoint_of_other_known_atoms_is_not_resumed(tmp_path):
    data, truth = sums(100)
    fit = {"max_iter": 30, "tol": 0, "epsilon": 0.1, "n_init": 1}
    with pytest.raises(RunStoppedError):
        fitted(data, fixed_atoms=truth[:2], checkpoint=roadict.Checkpoint(tmp_path, stop=lambda: 15), **fit)
    with pytest.raises(ValueError, match="fixed_atoms"):
        fitted(data, fixed_atoms=truth[1:3], checkpoint=tmp_path, **fit)
