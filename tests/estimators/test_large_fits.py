"""Fits of more codes than memory holds: like those in memory, bounded, and hostile files."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from roadict import ROAD
from roadict.checkpoints.schedule import Checkpoint, RunStoppedError
from roadict.estimators import rows as module
from roadict.estimators.rows import Rows, is_file
from roadict.road.passes import BLOCK
from roadict.synthetic import planted
from streamed import ALPHA, TRUTH, K, M, lasso, mean_objective, share_found


@pytest.fixture
def truth():
    return TRUTH


@pytest.fixture
def small_memory(monkeypatch):
    """Fits of more than 10,000 codes count as large."""
    monkeypatch.setattr(module, "LARGE", 10_000)


@pytest.mark.parametrize("settings", [{"formulation": "lasso", "alpha": ALPHA}, {}])
def test_a_large_fit_is_like_one_in_memory(truth, settings, tmp_path, monkeypatch):
    whole = ROAD(K, random_state=0, **settings).fit(truth.data)
    np.save(tmp_path / "data.npy", truth.data)
    monkeypatch.setattr(module, "LARGE", 10_000)
    stages = []
    model = ROAD(K, random_state=0, store_codes=True, callback=lambda seen: stages.append(seen.stage), **settings)
    model.fit(np.load(tmp_path / "data.npy", mmap_mode="r"))
    assert stages[-1] == "mini-batches"
    assert model.stop_reason_ == "converged"
    assert share_found(model, truth) == 1
    assert mean_objective(model, truth.data) <= 1.005 * mean_objective(whole, truth.data)
    assert model.objective_ == pytest.approx(whole.objective_, rel=0.1)
    assert model.error_ == pytest.approx(whole.error_, rel=0.1)
    np.testing.assert_allclose(model.atom_usage_.sum(), whole.atom_usage_.sum(), rtol=0.2)
    assert isinstance(model.codes_, scipy.sparse.csr_array)
    error = np.linalg.norm(truth.data - model.codes_ @ model.components_) / np.linalg.norm(truth.data)
    assert error == pytest.approx(model.error_, rel=0.1)
    objective = model.history_["objective"]
    assert objective[-1] == pytest.approx(model.objective_)
    assert np.isfinite(objective).all()


def test_a_large_fit_with_missing_entries_and_weights(truth, small_memory):
    rng = np.random.default_rng(0)
    data = np.where(rng.random(truth.data.shape) < 0.9, truth.data, np.nan)
    model = lasso(missing_values=np.nan).fit(data, sample_weight=rng.integers(0, 3, size=len(data)))
    assert share_found(model, truth) == 1
    assert model.codes_ is None


def test_a_large_fit_of_exact_data_ends_with_its_search(small_memory):
    truth = planted(2000, M, K, sparsity=2, random_state=1)
    model = ROAD(K, random_state=0, store_codes=True).fit(truth.data)
    assert model.exact_
    assert share_found(model, truth) == 1
    np.testing.assert_allclose(model.codes_ @ model.components_, truth.data, atol=1e-6)


def test_the_same_seed_gives_the_same_bits(truth, small_memory):
    first, second = (lasso().fit(truth.data).components_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_large_fit_resumes_with_the_same_result(truth, tmp_path, small_memory):
    data = np.tile(truth.data, (14, 1)) + 0.01 * np.random.default_rng(0).standard_normal((84_000, M))
    settings = {"tol": 1e-9, "max_iter": 6}
    with pytest.warns(match="max_iter"):
        expected = lasso(**settings).fit(data)
    seen = []

    def stop():
        return 15 if seen[-1][0] == "mini-batches" and len([s for s, _ in seen if s == "mini-batches"]) == 3 else 0

    def watch(snapshot):
        seen.append((snapshot.stage, snapshot.iteration))

    with pytest.raises(RunStoppedError):
        lasso(checkpoint=Checkpoint(tmp_path, every=1e9, stop=stop), callback=watch, **settings).fit(data)
    with pytest.warns(match="max_iter"):
        resumed = lasso(checkpoint=Checkpoint(tmp_path, every=1e9), **settings).fit(data)
    np.testing.assert_array_equal(resumed.components_, expected.components_)
    assert resumed.objective_ == expected.objective_


def test_memory_is_bounded(tmp_path, monkeypatch):
    n_samples = 400_000
    np.save(tmp_path / "data.npy", np.zeros((n_samples, 8), np.float32))
    data = np.load(tmp_path / "data.npy", mmap_mode="r+")
    for start in range(0, n_samples, 20_000):
        data[start : start + 20_000] = planted(20_000, 8, K, sparsity=2, snr_db=20, random_state=start).data
    data.flush()
    monkeypatch.setattr(module, "LARGE", 10_000)
    lasso(max_iter=3, tol=0).fit(data[:20_000])  # compiles, which takes memory of its own
    tracemalloc.start()
    lasso(max_iter=3, tol=0).fit(np.load(tmp_path / "data.npy", mmap_mode="r"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    codes = n_samples * K * 4
    assert peak < codes, "less than the codes would take"


def validated(data, reset, first_row):
    return np.asarray(data, np.float64), None


def test_rows_of_a_map_are_those_of_the_file(tmp_path):
    data = np.random.default_rng(0).standard_normal((1000, 5)).astype(np.float32)
    np.save(tmp_path / "data.npy", data)
    mapped, private = (np.load(tmp_path / "data.npy", mmap_mode=mode) for mode in ("r", "c"))
    private += 1
    assert is_file(mapped)
    for X in (mapped, mapped[100:], mapped[:, ::-1], np.asfortranarray(data), private):
        assert is_file(X) == (X is mapped)
        rows = Rows(X, validated, np.arange(float(len(X))), 0)
        np.testing.assert_array_equal(rows[10:30], np.asarray(X)[10:30])
        taken, _, weights = rows.take(np.array([0, 128, 832]), BLOCK)
        numbers = np.r_[0:64, 128:192, 832 : min(896, len(X))]
        np.testing.assert_array_equal(taken, np.asarray(X)[numbers])
        np.testing.assert_array_equal(weights, numbers)


def test_a_file_that_shrinks_is_an_error(tmp_path, truth, small_memory):
    path = tmp_path / "data.npy"
    np.save(path, truth.data)
    model = lasso().fit(np.load(path, mmap_mode="r"))
    before = model.components_.copy()

    def shrink(snapshot):
        if snapshot.stage == "descent":
            with open(path, "r+b") as file:
                file.truncate(path.stat().st_size // 2)

    model.set_params(callback=shrink)
    with pytest.raises(ValueError, match="has become shorter while it was read"):
        model.fit(np.load(path, mmap_mode="r"))
    np.testing.assert_array_equal(model.components_, before)


def test_bad_values_of_a_large_fit_are_named_with_their_row(truth, small_memory):
    data = truth.data.copy()
    data[5123, 2] = np.nan
    with pytest.raises(ValueError, match="5123"):
        lasso().fit(data)
    with pytest.raises(ValueError, match="store_codes='yes'"):
        lasso(store_codes="yes").fit(truth.data)
    with pytest.raises(ValueError, match="code_init"):
        lasso(code_init=np.ones((6000, K))).fit(truth.data)


def test_masked_arrays_and_frames_are_read_like_arrays(truth, small_memory):
    seen = np.random.default_rng(0).random(truth.data.shape) < 0.9
    masked = np.ma.masked_array(np.where(seen, truth.data, 1000.0), ~seen)
    plain = np.where(seen, truth.data, np.nan)
    expected = lasso(missing_values=np.nan).fit(plain).components_
    np.testing.assert_array_equal(lasso(missing_values=np.nan).fit(masked).components_, expected)
    pandas = pytest.importorskip("pandas")
    model = lasso(missing_values=np.nan).fit(pandas.DataFrame(plain, columns=list("abcdefghijkl")))
    np.testing.assert_array_equal(model.components_, expected)
    assert list(model.feature_names_in_) == list("abcdefghijkl")


def test_a_file_that_is_replaced_is_an_error(tmp_path, truth, small_memory):
    path = tmp_path / "data.npy"
    np.save(path, truth.data)

    def replace(snapshot):
        np.save(tmp_path / "other.npy", truth.data[::-1])
        (tmp_path / "other.npy").replace(path)

    with pytest.raises(ValueError, match="has been replaced or changed while it was read"):
        lasso(callback=replace).fit(np.load(path, mmap_mode="r"))


def test_samples_to_begin_with_are_not_those_of_the_search(truth, small_memory):
    model = lasso(n_search_samples=300)
    sizes = [len(seen.codes) for seen in model.iter_fit(truth.data) if seen.stage == "descent"]
    assert 200 < min(sizes) < 400
    assert 1000 < max(sizes) < 1400


def test_copies_and_zeros_leave_enough_samples_to_begin_with(truth, small_memory):
    for data in (np.repeat(truth.data[:60], 100, axis=0), np.vstack([truth.data[:600], np.zeros((5400, M))])):
        model = lasso(n_search_samples=200, max_iter=30, tol=0).fit(data)
        assert np.isfinite(model.components_).all()
        assert model.error_ < 1


def test_weights_that_are_mostly_zero_leave_measures(truth, small_memory):
    weights = np.zeros(6000)
    weights[::100] = 1
    model = lasso(n_search_samples=1500).fit(truth.data, sample_weight=weights)
    whole = lasso().fit(truth.data[::100])
    assert model.error_ == pytest.approx(whole.error_, rel=0.3)
    assert model.objective_ == pytest.approx(whole.objective_, rel=0.3)


def test_a_large_fit_stops_at_once(truth, tmp_path, small_memory):
    seen = []
    checkpoint = Checkpoint(tmp_path, every=1e9, stop=lambda: 15)
    with pytest.raises(RunStoppedError):
        ROAD(K, random_state=0, checkpoint=checkpoint, callback=seen.append).fit(truth.data)
    assert len(seen) == 1


def test_mini_batches_that_do_not_settle_are_told(truth, small_memory):
    with pytest.warns(match="change .* \\(bound 10 tol\\)"):
        lasso(max_iter=3, tol=1e-12).fit(truth.data)


@pytest.mark.parametrize("large", [False, True])
def test_zero_samples_change_nothing_that_is_learned(truth, large, monkeypatch):
    if large:
        monkeypatch.setattr(module, "LARGE", 10_000)
    data = truth.data[:700]
    levels = []
    for n_zeros in (0, 700, 5000):
        rows = np.random.default_rng(0).permutation(700 + n_zeros)
        model = ROAD(K, random_state=0).fit(np.vstack([data, np.zeros((n_zeros, M))])[rows])
        levels.append(model.epsilon_)
        assert share_found(model, truth) == 1
    np.testing.assert_allclose(levels, 0.1, rtol=0.35)


def test_few_samples_of_weight_in_a_large_fit_are_all_used(truth, small_memory):
    model = ROAD(K, random_state=0).fit(truth.data, sample_weight=(np.arange(6000) < 500).astype(float))
    assert share_found(model, truth) == 1
    assert model.error_ == pytest.approx(0.1, rel=0.35)


def test_a_file_that_changes_or_vanishes_is_an_error(tmp_path, truth, small_memory):
    path = tmp_path / "data.npy"
    for change, message in ((lambda: np.save(path, 2 * truth.data), "changed"), (path.unlink, "can no longer be read")):
        np.save(path, truth.data)
        with pytest.raises(ValueError, match=message):
            lasso(callback=lambda seen, change=change: path.exists() and change()).fit(np.load(path, mmap_mode="r"))


def test_a_value_that_overflows_is_an_error_and_leaves_the_model(truth, small_memory):
    data = truth.data.astype(np.float32)
    model = lasso().fit(data)
    atoms = model.components_.copy()
    broken = data.copy()
    broken[100] = 1e25
    with pytest.raises(ValueError, match="too large"):
        model.fit(broken)
    np.testing.assert_array_equal(model.components_, atoms)


def test_the_scale_of_the_weights_does_not_matter(truth, small_memory):
    first, second = (lasso().fit(truth.data, sample_weight=np.full(len(truth.data), size)) for size in (1.0, 2.0**-20))
    np.testing.assert_allclose(second.atom_usage_, first.atom_usage_, rtol=1e-6)
    assert second.objective_ == pytest.approx(first.objective_ * 2.0**-20)


def test_without_a_pass_the_objective_is_still_that_of_all(small_memory):
    truth = planted(2000, M, K, sparsity=2, random_state=1)
    model = ROAD(K, random_state=0).fit(truth.data)
    assert model.exact_
    assert model.objective_ == pytest.approx(np.abs(truth.codes).sum(), rel=0.05)


def test_a_bound_of_zero_on_noisy_data_tells_what_it_learned_from(truth, small_memory):
    with pytest.warns(UserWarning, match=r"an error bound of 0 has no descent.*learned from \d[\d,]* only"):
        ROAD(K, epsilon=0, n_init=1, max_iter=20, tol=0, random_state=0).fit(truth.data)


def test_a_file_that_was_replaced_before_the_fit_is_an_error(tmp_path, truth, small_memory):
    path = tmp_path / "data.npy"
    np.save(path, truth.data)
    mapped = np.load(path, mmap_mode="r")
    np.save(tmp_path / "other.npy", np.ones_like(truth.data))
    (tmp_path / "other.npy").replace(path)
    with pytest.raises(ValueError, match="is no longer the file that X maps; load it again"):
        lasso().fit(mapped)
    path.unlink()
    with pytest.raises(ValueError, match="can no longer be read"):
        lasso().fit(mapped)


def test_nothing_to_learn_from_is_said_like_in_small_fits(truth, small_memory):
    with pytest.raises(ValueError, match="all entries of X are zero; there is nothing to learn from"):
        lasso().fit(0 * truth.data)
    with pytest.raises(ValueError, match="sample_weight is above zero for 0 of 6000 samples"):
        lasso().fit(truth.data, sample_weight=np.zeros(len(truth.data)))
