"""Mini-batches and passes: statistics against a literal sum, and what fits do with them."""

import numpy as np
import pytest

from roadict import ROAD
from roadict.coders.registry import encode
from roadict.linalg import unit_rows
from roadict.road.passes import Passes
from roadict.road.plan import Parameters, Request
from roadict.road.stream import FORGETTING, Stream, continued
from roadict.runs.history import History
from roadict.runs.loop import Outcome
from roadict.runs.result import Fit
from roadict.synthetic import planted
from streamed import ALPHA, TRUTH, K, M, lasso


@pytest.fixture
def truth():
    return TRUTH


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
        stream, seen = stream.updated((part, None, None))
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
    once, seen = stream.updated((data, None, weights.astype(float)))
    copied, expected = stream.updated((np.repeat(data, weights, axis=0), None, None))
    np.testing.assert_allclose(once.dictionary, copied.dictionary, atol=1e-12)
    assert seen.objective == pytest.approx(expected.objective)
    np.testing.assert_allclose(seen.usage, expected.usage)


def test_missing_entries_take_the_values_of_their_representation(truth):
    data, observed = truth.data[:50], np.random.default_rng(3).random((50, M)) < 0.8
    stream = empty_stream()
    codes = encode(data * observed, observed, stream.dictionary, algorithm="lasso", alpha=ALPHA)
    filled = np.where(observed, data, codes @ stream.dictionary)
    np.testing.assert_allclose(
        stream.updated((data * observed, observed, None))[0].target, codes.T @ filled, atol=1e-10
    )


def test_unused_atoms_are_replaced(truth):
    stream = empty_stream()
    stream.dictionary[1:] = stream.dictionary[0]
    for part in np.split(truth.data, 6):
        stream, seen = stream.updated((part, None, None))
    assert (seen.usage > 0).sum() > K / 2


def test_a_sample_of_weight_zero_becomes_no_atom(truth):
    stream, weights = empty_stream(), np.ones(200)
    data = truth.data[:200].copy()
    data[7], weights[7] = 100 * np.ones(M), 0.0
    stream.dictionary[0] = 0  # which no sample uses
    atom = stream.updated((data, None, weights))[0].dictionary[0]
    assert np.linalg.norm(atom) == pytest.approx(1)
    assert abs(atom.sum()) < 0.99 * np.sqrt(M)


def test_the_weight_follows_from_minimal_codes(truth):
    atoms = unit_rows(truth.dictionary)[0]
    codes = encode(truth.data[:200], None, atoms, algorithm="lasso", alpha=0.123)
    plan = Request(truth.data[:200], None, K, Parameters(epsilon=0.2)).plan()
    fit = Fit(Outcome(History({}), "converged"), atoms, codes, 0.0, 0.0)
    stream = continued(fit, plan, (truth.data[:200], None, None))
    assert stream.weight * plan.unit == pytest.approx(0.123, rel=1e-6)


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


def test_a_stop_during_mini_batches_is_heeded(truth):
    model = lasso(n_search_samples=300, callback=lambda seen: seen.stage == "mini-batches").fit(truth.data)
    assert model.stop_reason_ == "callback"
    assert model.codes_.shape == (6000, K)


def test_the_descent_over_all_has_its_own_iterations(truth):
    stages = []
    model = lasso(n_search_samples=300, max_iter=14, tol=1e-9, callback=lambda seen: stages.append(len(seen.codes)))
    with pytest.warns(match="max_iter=14"):
        model.fit(truth.data)
    assert stages.count(6000) == 14


def test_the_bound_of_some_weighted_samples_is_within_reach():
    rng = np.random.default_rng(0)
    for seed in range(6):
        data = rng.lognormal(sigma=2, size=(2000, 3)) @ rng.standard_normal((3, 16)) + rng.standard_normal((2000, 16))
        weights = rng.lognormal(sigma=2, size=2000)
        sizes = np.linalg.svd(data * np.sqrt(weights)[:, None], compute_uv=False)
        floor = np.sqrt((sizes[4:] ** 2).sum() / (sizes**2).sum())
        parameters = Parameters(epsilon=min(1.01 * floor, 0.99), n_search_samples=150)
        assert Request(data, None, 4, parameters, weights=weights).plan().searched is not None, seed


@pytest.mark.parametrize("factor", [1e155, 1e-200])
def test_extreme_units_give_the_same_noise_level(factor):
    data = planted(400, 10, 12, sparsity=2, snr_db=20, random_state=0).data
    expected = ROAD(12, random_state=0).fit(data).epsilon_
    power = 2.0 ** np.round(np.log2(factor))
    assert ROAD(12, random_state=0).fit(data * power).epsilon_ == pytest.approx(expected, rel=1e-6)
