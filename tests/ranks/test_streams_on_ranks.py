"""Streams and large fits on ranks: what one process learns."""

import numpy as np
import pytest

from roadict import ROAD
from roadict.estimators import rows
from roadict.road.passes import Passes
from roadict.road.plan import Parameters, Request
from roadict.road.stream import Stream
from roadict.synthetic import planted

M, K = 10, 12
TRUTH = planted(3000, M, K, sparsity=2, snr_db=20, random_state=4)


def streamed(part_of):
    model = ROAD(K, formulation="lasso", alpha=0.2, random_state=0, n_jobs=1)
    for part in np.array_split(TRUTH.data, 6):
        model.partial_fit(part_of(part))
    return model


@pytest.mark.parametrize("size", [2, 3])
def test_a_stream_on_ranks_learns_what_one_process_learns(on_ranks, size):
    serial = streamed(lambda part: part)
    models = on_ranks(size, lambda comm: streamed(lambda part: np.array_split(part, comm.size)[comm.rank]))
    for model in models:
        np.testing.assert_array_equal(model.components_, models[0].components_)
        np.testing.assert_allclose(model.components_, serial.components_, atol=1e-4)
        assert model.error_ == pytest.approx(serial.error_, rel=1e-4)


@pytest.mark.parametrize("sizes", [(1500, 1500), (2990, 10), (3000, 0)])
def test_a_large_fit_on_ranks_of_any_size(on_ranks, monkeypatch, sizes):
    monkeypatch.setattr(rows, "LARGE", 10_000)
    parts = np.split(TRUTH.data, [sizes[0]])

    def fit(comm):
        model = ROAD(K, formulation="lasso", alpha=0.2, random_state=0, n_jobs=1, store_codes=True)
        return model.fit(parts[comm.rank])

    models = on_ranks(2, fit)
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert (np.abs(TRUTH.dictionary @ models[0].components_.T).max(axis=1) > 0.98).all()
    assert [model.codes_.shape for model in models] == [(sizes[0], K), (sizes[1], K)]


def test_weights_on_one_rank_only_are_ones_on_the_others(on_ranks, monkeypatch):
    monkeypatch.setattr(rows, "LARGE", 10_000)
    parts, weights = np.split(TRUTH.data, 2), [np.ones(1500), None]

    def fit(comm):
        model = ROAD(K, formulation="lasso", alpha=0.2, random_state=0, n_jobs=1)
        return model.fit(parts[comm.rank], sample_weight=weights[comm.rank])

    models = on_ranks(2, fit)
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert (np.abs(TRUTH.dictionary @ models[0].components_.T).max(axis=1) > 0.98).all()


def test_a_bad_value_on_one_rank_is_an_error_on_all(on_ranks, monkeypatch):
    monkeypatch.setattr(rows, "LARGE", 10_000)
    data = TRUTH.data.copy()
    data[2000, 3] = np.inf
    messages = []

    def fit(comm):
        try:
            ROAD(K, formulation="lasso", alpha=0.2, random_state=0).fit(np.split(data, 2)[comm.rank])
        except (ValueError, RuntimeError) as error:
            messages.append(str(error))

    on_ranks(2, fit)
    assert len(messages) == 2
    assert any("infinity" in message for message in messages)


def test_ranks_take_the_same_mini_batches_together(on_ranks):
    atoms = TRUTH.dictionary

    class Some:
        def __init__(self, data):
            self.data = data

        def __len__(self):
            return len(self.data)

        @property
        def weight(self):
            return float(len(self.data))

        def take(self, starts, size):
            taken = np.concatenate([np.arange(0), *(np.arange(s, min(s + size, len(self))) for s in starts)])
            return self.data[taken], None, None

    def run(comm):
        plan = Request(TRUTH.data[:50], None, K, Parameters(formulation="lasso", alpha=0.2)).plan()
        stream = Stream(atoms, 0.2 / plan.unit, np.zeros((K, K)), np.zeros((K, M)), 0.0)
        cut = np.split(TRUTH.data, [2500])[comm.rank]
        passes = Passes(stream, Some(cut), plan.unit, None, np.random.SeedSequence(0), 1, comm)
        measures = [passes.step() for _ in range(2 * passes.n_steps)]
        return passes.dictionary(), [(step.objective, step.change, step.error) for step in measures]

    (first, measures), (second, others) = on_ranks(2, run)
    np.testing.assert_array_equal(first, second)
    assert measures == others
