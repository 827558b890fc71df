"""The share of a whole fit that its snapshots report, whatever stages it has."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from roadict import ROAD, ROADCV, AlternatingDictionaryLearning
from roadict.progress import forecast
from roadict.ranks.comm import SERIAL
from roadict.road.expected import FitStages, enough_to_hide
from roadict.road.noise import can_hide
from roadict.road.plan import Request
from roadict.synthetic import planted

EXACT = planted(200, 8, 12, sparsity=2, random_state=0).data
NOISY = planted(200, 10, 14, sparsity=2, snr_db=20, random_state=0).data
MANY = planted(3000, 10, 12, sparsity=2, snr_db=20, random_state=0).data
FITS = {
    "exact": (ROAD(12, random_state=0), EXACT),
    "exact by request": (ROAD(12, epsilon=0.0, random_state=0), EXACT),
    "unknown noise": (ROAD(14, random_state=0), NOISY),
    "known noise": (ROAD(14, epsilon=0.1, random_state=0), NOISY),
    "scarce": (ROAD(14, random_state=0), NOISY[:60]),
    "many": (ROAD(12, random_state=0, n_search_samples=300), MANY),
    "some more": (ROAD(12, random_state=0, n_search_samples=300), MANY[:900]),
    "lasso": (ROAD(14, formulation="lasso", random_state=0), NOISY),
    "signs": (ROAD(10, positive_code=True, positive_dict=True, random_state=0, max_iter=200), np.abs(NOISY)),
    "plain": (ROAD(12, rho=10.0, max_iter=50, tol=0, random_state=0), EXACT),
    "inexact": (ROAD(12, formulation="inexact", max_iter=50, random_state=0), EXACT),
    "one start": (ROAD(14, n_init=1, random_state=0), NOISY),
    "number": (ROADCV([10, 14], n_splits=1, random_state=0), NOISY),
    "two stages": (AlternatingDictionaryLearning(14, n_nonzero_coefs=2, max_iter=20, random_state=0), NOISY),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_share_rises_through_all_stages_and_stays_below_one_until_the_end(name):
    model, X = FITS[name]
    seen = [(snapshot.share, snapshot.stage) for snapshot in model.iter_fit(X)]
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1
    assert shares[-1] <= 1
    steps = {after - before for before, after in pairwise(shares)}
    assert len(steps) > 3, "it moves with every iteration"
    last = {stage: share for share, stage in seen}
    assert all(share < 1 for stage, share in last.items() if stage != seen[-1][1]), "something follows these stages"


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by hand."""
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(forecast, "time", clock)
    return clock


@pytest.mark.parametrize("name", ["unknown noise", "many"])
def test_stages_take_about_the_share_that_they_are_given(name, clock):
    """Rough as it must be: the noise level is neither nearly nothing nor nearly all of a fit."""
    model, X = FITS[name]
    shares = []
    for snapshot in model.iter_fit(X):
        shares.append((snapshot.share, snapshot.stage))
        n_times = len(X) / 300 if snapshot.n_starts == 1 else 1.0  # as many samples as are searched
        clock.now += n_times * (1.0 if "primal" in snapshot.residuals else 5.0)
    noise = [share for share, stage in shares if stage == "noise"]
    assert 0.02 < noise[0] < 0.5
    assert noise[-1] < 0.7
    assert shares[-1][0] > 0.6, "what follows was expected"


def test_after_a_trial_with_some_samples_an_exact_fit_of_all_is_expected(clock):
    """It takes as many iterations, which take as long by the sample: the bar moves, and with time."""
    model, X = ROAD(12, random_state=0, n_search_samples=300), planted(900, 8, 12, sparsity=2, random_state=0).data
    seen, seconds = [], 1.0
    for snapshot in model.iter_fit(X):
        seconds = 3.0 if seen and snapshot.iteration <= seen[-1][1] else seconds
        seen.append((snapshot.share, snapshot.iteration, clock.now))
        clock.now += seconds
    assert model.exact_
    began = next(index for index in range(1, len(seen)) if seen[index][1] <= seen[index - 1][1])
    first, middle, last = seen[began][0], seen[(began + len(seen)) // 2][0], seen[-1][0]
    assert middle == pytest.approx((first + last) / 2, abs=0.1)
    assert last > first + 0.3


def test_descents_are_expected_to_be_as_long_as_those_before(clock):
    request = Request(NOISY, None, 14, ROAD(14)._parameters())

    def seconds_left_after(steps):
        """By the pace of the first step of a start, after two rounds of so many steps, of a second each."""
        stages, shares = FitStages(request, request.plan(), 2000), []
        for stage, start, n_steps in (("noise", 1, steps), ("noise", 2, steps), ("descent", 1, 2)):
            for iteration in range(1, n_steps + 1):
                clock.now += 1
                run = {"stage": stage, "start": start, "n_starts": 4, "residuals": {"stationarity": 1.0}}
                shares.append(stages.share(SimpleNamespace(iteration=iteration, **run)))
        return (1 - shares[-1]) / (shares[-1] - shares[-2])

    few, many = seconds_left_after(5), seconds_left_after(100)
    assert many > few + 1.5 * 95, "of at least two starts, one of which is to come"


def test_known_noise_starts_where_unknown_noise_does_not():
    first = {name: next(iter(FITS[name][0].iter_fit(FITS[name][1]))).share for name in ("known noise", "unknown noise")}
    assert first["known noise"] > first["unknown noise"]


@pytest.mark.parametrize("n_components", [4, 12, 40])
@pytest.mark.parametrize("n_features", [3, 4, 5, 6, 8, 16])
@pytest.mark.parametrize("n_samples", [13, 41, 60, 99, 100, 101, 300])
def test_entries_are_expected_to_be_hidden_where_they_are(n_samples, n_features, n_components):
    request = SimpleNamespace(
        data=np.ones((n_samples, n_features)), observed=None, comm=SERIAL, n_components=n_components
    )
    assert enough_to_hide(n_samples, n_features, n_components) == can_hide(request)
