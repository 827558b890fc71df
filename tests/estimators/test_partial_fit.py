"""``partial_fit``: parts against the whole, saved streams, and parts that are refused."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from roadict import ROAD, load
from roadict.coders.registry import encode
from roadict.synthetic import planted
from streamed import ALPHA, TRUTH, K, M, lasso, mean_objective, share_found


@pytest.fixture
def truth():
    return TRUTH


@pytest.mark.parametrize("settings", [{"formulation": "lasso", "alpha": ALPHA}, {"epsilon": 0.1}, {}])
def test_a_stream_finds_the_atoms_of_one_fit(truth, settings):
    model = ROAD(K, random_state=0, **settings)
    for part in np.array_split(truth.data, 40):
        model.partial_fit(part)
        assert model.transform(part[:3]).shape == (3, K)
    whole = ROAD(K, random_state=0, **settings).fit(truth.data)
    assert share_found(model, truth) == share_found(whole, truth) == 1
    assert model.codes_ is None
    assert mean_objective(model, truth.data) <= 1.005 * mean_objective(whole, truth.data)
    assert model.error_ == pytest.approx(whole.error_, rel=0.3), "the noise level is that of the first parts"


def test_a_stream_continues_a_fit(truth):
    model = lasso().fit(truth.data[:1000])
    before = mean_objective(model, truth.data[1000:])
    for part in np.array_split(truth.data[1000:], 3):
        model.partial_fit(part)
    assert mean_objective(model, truth.data[1000:]) < before


def test_atoms_of_exact_data_stay():
    data = planted(600, M, K, sparsity=2, random_state=1).data
    model = ROAD(K, random_state=0).fit(data[:400])
    atoms = model.components_.copy()
    np.testing.assert_array_equal(model.partial_fit(data[400:]).components_, atoms)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.ones((3, M + 1)), "features"),
        (np.ones((3, M), np.float32), "float32, the parts before were of float64"),
        (np.empty((0, M)), "0 sample"),
        (np.full((3, M), np.nan), "NaN"),
        (np.full((3, M), np.inf), "infinity"),
    ],
)
def test_a_part_that_does_not_fit_leaves_the_model_as_it_was(truth, part, message):
    model = lasso().partial_fit(truth.data[:1000])
    atoms, n_seen = model.components_.copy(), model._stream_.n_seen
    with pytest.raises(ValueError, match=message):
        model.partial_fit(part)
    np.testing.assert_array_equal(model.components_, atoms)
    assert model.partial_fit(truth.data[1000:1010])._stream_.n_seen == n_seen + 10


@pytest.mark.parametrize("parameters", [{"formulation": "inexact"}, {"rho": 10.0}])
def test_forms_without_a_descent_have_no_streams(truth, parameters):
    with pytest.raises(ValueError, match="partial_fit needs a descent"):
        ROAD(K, **parameters).partial_fit(truth.data[:100])


def test_a_saved_model_continues_its_stream(truth, tmp_path):
    model = lasso().partial_fit(truth.data[:1000])
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    for each in (model, loaded):
        each.partial_fit(truth.data[1000:2000])
    np.testing.assert_array_equal(loaded.components_, model.components_)


def test_the_objective_of_a_part_under_a_bound_is_that_of_its_codes(truth):
    model = ROAD(K, epsilon=0.2, random_state=0).partial_fit(truth.data[:2000])
    codes = model._stream_.stream.weight * model._stream_.unit
    expected = encode(truth.data[2000:4000], None, model.components_, algorithm="lasso", alpha=codes)
    model.partial_fit(truth.data[2000:4000])
    assert model.objective_ == pytest.approx(np.abs(expected).sum(), rel=1e-6)


def test_streams_that_cannot_continue_are_refused(truth, tmp_path):
    with pytest.raises(ValueError, match="writes no checkpoints"):
        lasso(checkpoint=tmp_path).partial_fit(truth.data[:100])
    model = lasso().fit(truth.data[:500])
    del model._stream_
    with pytest.raises(ValueError, match="no statistics to continue from"):
        model.partial_fit(truth.data[:100])


def test_parts_without_a_descent_are_collected():
    few = planted(600, 6, 8, sparsity=2, snr_db=15, random_state=0).data
    model = ROAD(8, random_state=0, n_search_samples=100, max_iter=50, tol=0)
    for part in np.array_split(few, 6):
        model.partial_fit(part)
    assert model._stream_.n_seen == 600
    expected = ROAD(8, random_state=0, n_search_samples=100, max_iter=50, tol=0).fit(few[:400])
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert model.partial_fit(few)._stream_.n_seen == 1200
    again = ROAD(8, random_state=0, max_iter=50, tol=0).fit(few[:100]).partial_fit(few)
    assert again._stream_.n_seen == 600


def test_a_part_of_another_size_does_not_spoil_the_stream(truth, tmp_path):
    data = truth.data.astype(np.float32)
    model = lasso().partial_fit(data[:2000])
    before = model.components_.copy()
    with pytest.raises(ValueError, match="scale all parts alike"):
        model.partial_fit(data[2000:3000] * np.float32(1e25))
    np.testing.assert_array_equal(model.components_, before)
    model.partial_fit(data[2000:3000], sample_weight=np.zeros(1000))
    np.testing.assert_array_equal(model.components_, before)
    assert model.error_ > 0


def test_a_refused_first_part_leaves_a_new_model(truth):
    model = lasso()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((30, M), np.nan))
    with pytest.raises(NotFittedError):
        model.transform(truth.data[:3])


def test_tensors_stay_tensors(truth):
    torch = pytest.importorskip("torch")
    model = lasso().partial_fit(torch.from_numpy(truth.data[:2000])).partial_fit(torch.from_numpy(truth.data[2000:]))
    assert isinstance(model.components_, torch.Tensor)


def test_a_saved_model_has_the_samples_that_wait(truth, tmp_path):
    ends = []
    for save in (False, True):
        model = ROAD(K, random_state=0).partial_fit(truth.data[:60])
        if save:
            model.save(tmp_path / "model.npz")
            model = load(tmp_path / "model.npz")
        for part in np.array_split(truth.data[60:1000], 5):
            model.partial_fit(part)
        ends.append(model.components_)
    np.testing.assert_array_equal(*ends)


def test_the_number_of_atoms_of_a_stream_is_fixed(truth):
    model = lasso().partial_fit(truth.data[:1000])
    with pytest.raises(ValueError, match="n_components=20, but the stream so far has 16 atoms"):
        model.set_params(n_components=20).partial_fit(truth.data[:100])
    with pytest.raises(ValueError, match=r"n_search_samples=5 must be .* at least 17"):
        lasso(n_search_samples=5).fit(truth.data)


@pytest.mark.parametrize("first", [np.ones((600, M)), np.eye(M)[np.zeros(600, int)]], ids=["constant", "one axis"])
def test_a_degenerate_first_part_does_not_stop_a_stream(truth, first):
    model = ROAD(K, random_state=0).partial_fit(first)
    for part in np.split(truth.data[:3000], 6):
        model.partial_fit(part)
    assert share_found(model, truth) > 0.8  # one atom is for the first part
    assert model.error_ == pytest.approx(-model.score(part), abs=0.1)


def test_parts_of_exact_data_are_measured_and_atoms_stay():
    exact = planted(1200, M, K, sparsity=2, random_state=1)
    model = ROAD(K, random_state=0).partial_fit(exact.data[:600])
    atoms = model.components_.copy()
    model.partial_fit(exact.data[600:])
    np.testing.assert_array_equal(model.components_, atoms)
    assert model.error_ < 1e-6
    assert model.objective_ == pytest.approx(np.abs(exact.codes[600:]).sum(), rel=1e-3)


def test_a_loud_part_has_an_objective_of_its_codes(truth):
    model = ROAD(K, epsilon=0.2, random_state=0).partial_fit(truth.data[:2000])
    model.partial_fit(20 * truth.data[2000:2500])
    assert model.objective_ > 0
    with pytest.raises(ValueError, match="too large beside those before"):
        model.partial_fit(1e9 * truth.data[2500:2600])


def test_names_of_columns_stay(truth):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(truth.data[:1500], columns=[f"c{i}" for i in range(M)])
    model = lasso().partial_fit(frame[:1000])
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[1000:][frame.columns[::-1]])
    model.partial_fit(frame[1000:])


@pytest.mark.parametrize("change", [{"alpha": 1.0}, {"formulation": "constrained", "alpha": None}])
def test_a_stream_keeps_to_its_terms(truth, change):
    model = lasso().partial_fit(truth.data[:1000])
    name = next(iter(change))
    with pytest.raises(ValueError, match=rf"the stream began with {name}=.*set that back"):
        model.set_params(**change).partial_fit(truth.data[1000:1100])


def test_a_stream_ends_near_one_fit(truth):
    whole, model = lasso().fit(truth.data), lasso()
    for part in np.split(truth.data, 60):
        model.partial_fit(part)
    assert mean_objective(model, truth.data) <= 1.005 * mean_objective(whole, truth.data)
