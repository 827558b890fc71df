"""Streams and large fits: statistics against a literal sum, parts against the whole, bounded memory, hostile files."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from roadict import ROAD, load
from roadict.checkpoints.schedule import Checkpoint, RunStoppedError
from roadict.coders.registry import encode
from roadict.estimators import rows as module
from roadict.estimators.rows import Rows, is_file
from roadict.linalg import unit_rows
from roadict.road.passes import BLOCK, Passes
from roadict.road.plan import Parameters, Request
from roadict.road.stream import FORGETTING, Stream, continued
from roadict.runs.history import History
from roadict.runs.loop import Outcome
from roadict.runs.result import Fit
from roadict.synthetic import planted

M, K = 12, 16
ALPHA = 0.2


@pytest.fixture(scope="module")
def truth():
    return planted(6000, M, K, sparsity=2, snr_db=20, random_state=1)


@pytest.fixture
def small_memory(monkeypatch):
    """Fits of more than 10,000 codes count as large."""
    monkeypatch.setattr(module, "LARGE", 10_000)


def lasso(**parameters):
    return ROAD(K, formulation="lasso", alpha=ALPHA, random_state=0, **parameters)


def share_found(model, truth):
    return (np.abs(truth.dictionary @ model.components_.T).max(axis=1) > 0.98).mean()


def mean_objective(model, data):
    codes = encode(data, None, model.components_, algorithm="lasso", alpha=ALPHA)
    return (np.sum((data - codes @ model.components_) ** 2) / 2 + ALPHA * np.abs(codes).sum()) / len(data)


def empty_stream(weight=ALPHA):
    atoms = unit_rows(np.random.default_rng(0).standard_normal((K, M)))[0]
    return Stream(atoms, weight, np.zeros((K, K)), np.zeros((K, M)), 0.0)


def test_statistics_are_the_faded_sums(truth):
    stream, parts, former = empty_stream(), np.split(truth.data[:90], 3), []
    for part in parts:
        codes = encode(part, None, stream.dictionary, algorithm="lasso", alpha=ALPHA)
        before = [
            (fade * (stream.n_samples / (stream.n_samples + len(part))) ** FORGETTING, *of) for fade, *of in former
        ]
        former = [*before, (1.0, codes, part)]
        stream, seen = stream.updated(part, None)
        np.testing.assert_allclose(stream.gram, sum(fade * codes.T @ codes for fade, codes, _ in former), atol=1e-10)
        np.testing.assert_allclose(
            stream.target, sum(fade * codes.T @ data for fade, codes, data in former), atol=1e-10
        )
        assert seen.n_samples == len(part)
    assert stream.n_samples == 90


def test_weights_count_like_copies(truth):
    data = truth.data[:40]
    weights = np.random.default_rng(0).integers(0, 4, size=40)
    stream = empty_stream()
    once, seen = stream.updated(data, None, weights.astype(float))
    copied, expected = stream.updated(np.repeat(data, weights, axis=0), None)
    np.testing.assert_allclose(once.dictionary, copied.dictionary, atol=1e-12)
    assert seen.objective == pytest.approx(expected.objective)
    np.testing.assert_allclose(seen.usage, expected.usage)


def test_missing_entries_take_the_values_of_their_representation(truth):
    data, observed = truth.data[:50], np.random.default_rng(3).random((50, M)) < 0.8
    stream = empty_stream()
    codes = encode(data * observed, observed, stream.dictionary, algorithm="lasso", alpha=ALPHA)
    filled = np.where(observed, data, codes @ stream.dictionary)
    np.testing.assert_allclose(stream.updated(data * observed, observed)[0].target, codes.T @ filled, atol=1e-10)


def test_unused_atoms_are_replaced(truth):
    stream = empty_stream()
    stream.dictionary[1:] = stream.dictionary[0]
    for part in np.split(truth.data, 6):
        stream, seen = stream.updated(part, None)
    assert (seen.usage > 0).sum() > K / 2


def test_the_weight_follows_from_minimal_codes(truth):
    atoms = unit_rows(truth.dictionary)[0]
    codes = encode(truth.data[:200], None, atoms, algorithm="lasso", alpha=0.123)
    plan = Request(truth.data[:200], None, K, Parameters(epsilon=0.2)).plan()
    fit = Fit(Outcome(History({}), "converged"), atoms, codes, 0.0, 0.0)
    stream = continued(fit, plan, (truth.data[:200], None, None))
    assert stream.weight * plan.unit == pytest.approx(0.123, rel=1e-6)


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


def test_every_sample_but_the_held_out_ones_comes_once_per_pass():
    class Numbered:
        weight = 10_000.0

        def __len__(self):
            return 10_000

        def take(self, starts, size):
            numbers = np.concatenate([np.arange(0), *(np.arange(s, min(s + size, 10_000)) for s in starts)])
            seen.extend(numbers)
            return np.repeat(numbers[:, None], M, axis=1) + 1.0, None, None

    seen = []
    plan = Request(np.eye(M), None, K, Parameters(formulation="lasso", alpha=ALPHA)).plan()
    run = Passes(empty_stream(), Numbered(), 1.0, None, np.random.SeedSequence(0), 1, plan.comm)
    held = set(seen)
    assert 0 < len(held) <= 1100
    for _ in range(2):
        seen.clear()
        for _ in range(run.n_steps):
            run.step()
        assert sorted(seen) == sorted(set(range(10_000)) - held)


def test_a_saved_model_continues_its_stream(truth, tmp_path):
    model = lasso().partial_fit(truth.data[:1000])
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    for each in (model, loaded):
        each.partial_fit(truth.data[1000:2000])
    np.testing.assert_array_equal(loaded.components_, model.components_)


def test_statistics_of_a_fit(truth, monkeypatch):
    monkeypatch.setattr("roadict.road.stream.CHUNK", 70)
    data = truth.data[:300]
    codes = encode(data, None, truth.dictionary, algorithm="lasso", alpha=ALPHA)
    plan = Request(data, None, K, Parameters(formulation="lasso", alpha=ALPHA)).plan()
    weights = np.random.default_rng(0).random(300)
    fit = Fit(Outcome(History({}), "converged"), truth.dictionary, codes, 0.0, 0.0)
    stream = continued(fit, plan, (data, None, weights))
    np.testing.assert_allclose(stream.gram, (codes * weights[:, None]).T @ codes / plan.unit**2)
    np.testing.assert_allclose(stream.target, (codes * weights[:, None]).T @ data / plan.unit**2)
    assert stream.weight * plan.unit == pytest.approx(ALPHA)
    assert stream.n_samples == pytest.approx(weights.sum())


def test_the_objective_of_a_part_under_a_bound_is_that_of_its_codes(truth):
    model = ROAD(K, epsilon=0.2, random_state=0).partial_fit(truth.data[:2000])
    codes = model._stream_.stream.weight * model._stream_.unit
    expected = encode(truth.data[2000:4000], None, model.components_, algorithm="lasso", alpha=codes)
    model.partial_fit(truth.data[2000:4000])
    assert model.objective_ == pytest.approx(np.abs(expected).sum(), rel=0.02)


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


def test_a_stop_during_mini_batches_is_heeded(truth):
    model = lasso(n_search_samples=300, callback=lambda seen: seen.stage == "mini-batches").fit(truth.data)
    assert model.stop_reason_ == "callback"
    assert model.codes_.shape == (6000, K)


def test_a_large_fit_stops_at_once(truth, tmp_path, small_memory):
    seen = []
    checkpoint = Checkpoint(tmp_path, every=1e9, stop=lambda: 15)
    with pytest.raises(RunStoppedError):
        ROAD(K, random_state=0, checkpoint=checkpoint, callback=seen.append).fit(truth.data)
    assert len(seen) == 1


def test_the_descent_over_all_has_its_own_iterations(truth):
    stages = []
    model = lasso(n_search_samples=300, max_iter=14, tol=1e-9, callback=lambda seen: stages.append(len(seen.codes)))
    with pytest.warns(match="max_iter=14"):
        model.fit(truth.data)
    assert stages.count(6000) == 14


def test_mini_batches_that_do_not_settle_are_told(truth, small_memory):
    with pytest.warns(match="change .* \\(bound 10 tol\\)"):
        lasso(max_iter=3, tol=1e-12).fit(truth.data)


def test_the_bound_of_some_weighted_samples_is_within_reach():
    rng = np.random.default_rng(0)
    for seed in range(6):
        data = rng.lognormal(sigma=2, size=(2000, 3)) @ rng.standard_normal((3, 16)) + rng.standard_normal((2000, 16))
        weights = rng.lognormal(sigma=2, size=2000)
        sizes = np.linalg.svd(data * np.sqrt(weights)[:, None], compute_uv=False)
        floor = np.sqrt((sizes[4:] ** 2).sum() / (sizes**2).sum())
        parameters = Parameters(epsilon=min(1.01 * floor, 0.99), n_search_samples=150)
        assert Request(data, None, 4, parameters, weights=weights).plan().searched is not None, seed


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


@pytest.mark.parametrize("factor", [1e155, 1e-200])
def test_extreme_units_give_the_same_noise_level(factor):
    data = planted(400, 10, 12, sparsity=2, snr_db=20, random_state=0).data
    expected = ROAD(12, random_state=0).fit(data).epsilon_
    power = 2.0 ** np.round(np.log2(factor))
    assert ROAD(12, random_state=0).fit(data * power).epsilon_ == pytest.approx(expected, rel=1e-6)


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


def test_a_file_that_changes_or_vanishes_is_an_error(tmp_path, truth, small_memory):
    path = tmp_path / "data.npy"
    for change, message in ((lambda: np.save(path, 2 * truth.data), "changed"), (path.unlink, "can no longer be read")):
        np.save(path, truth.data)
        with pytest.raises(ValueError, match=message):
            lasso(callback=lambda seen, change=change: path.exists() and change()).fit(np.load(path, mmap_mode="r"))
