"""What a fit leaves out after Ctrl-C, so that its best so far is saved soon."""

import os
import signal

import numpy as np
import pytest

from roadict import ROAD
from roadict.coders.registry import encode
from roadict.exact_finish.search import find_exact_fit
from roadict.road import fit as fitting
from roadict.road import multistart
from roadict.road.fit import PIECE, minimal_codes
from roadict.road.plan import Parameters, Request
from roadict.runs.result import relative_error
from roadict.runs.signals import kept_at_interrupt, stop_requested
from roadict.synthetic import planted

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


def press():
    assert not stop_requested()
    signal.raise_signal(signal.SIGINT)
    assert stop_requested()


@pytest.fixture
def codings(monkeypatch):
    """Numbers of samples of all codings; ``act`` is called before each."""
    sizes, acts = [], []

    def counted(data, *arguments, **options):
        sizes.append(len(data))
        for act in acts:
            act()
        return encode(data, *arguments, **options)

    monkeypatch.setattr(fitting, "encode", counted)
    return sizes, acts


@pytest.mark.parametrize("weighted", [False, True])
def test_codes_soon_meet_the_bound_nearly(codings, weighted):
    truth = planted(6000, 8, 12, sparsity=2, snr_db=20, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, 6000) if weighted else None
    plan = Request(truth.data, None, 12, Parameters(epsilon=0.15), weights=weights).plan()
    raw = np.zeros((6000, 12))
    whole = minimal_codes(plan, truth.dictionary, raw, 1e-4, None)
    n_codings = codings[0].count(6000)
    codings[0].clear()
    with kept_at_interrupt():
        press()
        codes = minimal_codes(plan, truth.dictionary, raw, 1e-4, None)
    assert codings[0].count(6000) < min(5, n_codings)
    assert 0.97 * 0.15 < relative_error(plan.problem.data, None, codes, truth.dictionary) <= 0.15
    assert np.abs(codes - whole).max() < 0.05 * np.abs(whole).max()


def test_basis_pursuit_in_pieces_gives_the_same_bits_and_ends_after_a_piece(codings):
    truth = planted(2 * PIECE + 500, 8, 12, sparsity=2, random_state=0)
    plan = Request(truth.data, None, 12, Parameters(epsilon=0.0)).plan()
    data, raw = plan.problem.data, np.zeros(truth.codes.shape)
    whole = minimal_codes(plan, truth.dictionary, raw, 1e-4, None)
    at_once = encode(data, None, truth.dictionary, algorithm="basis-pursuit", warn=False)
    np.testing.assert_array_equal(whole, at_once)
    codings[0].clear()
    codings[1].append(press)
    with kept_at_interrupt():
        codes = minimal_codes(plan, truth.dictionary, raw, 1e-4, None)
    assert codings[0] == [PIECE]
    np.testing.assert_array_equal(codes[:PIECE], whole[:PIECE])
    assert not codes[PIECE:].any()
    codings[1].clear()
    with kept_at_interrupt():  # of a run that was stopped, all samples are coded
        press()
        np.testing.assert_array_equal(minimal_codes(plan, truth.dictionary, raw, 1e-4, None), whole)


def test_the_exact_finish_is_given_up():
    truth = planted(200, 8, 12, sparsity=2, random_state=0)
    assert find_exact_fit(truth.data, truth.dictionary, truth.codes, None) is not None
    with kept_at_interrupt():
        press()
        assert find_exact_fit(truth.data, truth.dictionary, truth.codes, None) is None


def test_no_start_follows_one_that_ended_meanwhile(monkeypatch):
    """Ctrl-C during the polish of the first start, which is then the fit."""
    polished, calls = multistart.polished_fit, []

    def interrupted(*arguments):
        calls.append(polished(*arguments))
        if len(calls) == 1:
            press()
        return calls[-1]

    data = planted(300, 8, 12, sparsity=2, snr_db=20, random_state=0).data
    monkeypatch.setattr(multistart, "polished_fit", interrupted)
    with kept_at_interrupt():
        model = ROAD(12, epsilon=0.1, random_state=0).fit(data)
    assert (len(calls), model.n_starts_, model.stop_reason_) == (1, 1, "callback")
    np.testing.assert_array_equal(model.components_, calls[0].dictionary)


def test_a_fit_stopped_by_a_callback_says_so_though_an_earlier_start_is_better():
    def stop(snapshot):
        return snapshot.start == 2 and snapshot.iteration == 1

    data = planted(300, 8, 12, sparsity=2, snr_db=20, random_state=0).data
    model = ROAD(12, epsilon=0.1, n_init=2, random_state=0, callback=stop).fit(data)
    assert (model.n_starts_, model.stop_reason_) == (2, "callback")
    assert model.n_iter_ > 1
