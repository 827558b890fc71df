"""Polish, starts, error floors, plans and annealing."""

import numpy as np
import pytest

from roadict.coders.polish import merge_duplicates, polish_codes
from roadict.formulation import Formulation, check_penalties, constrained, inexact, lasso
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.penalty import FINAL_RESIDUAL, UPDATE_EVERY, Annealing
from roadict.road.plan import Parameters, make_plan
from roadict.road.start import starting_point
from roadict.runs.driving import drive
from roadict.runs.loop import Rule, View, follow
from roadict.runs.measures import Measures
from roadict.synthetic import planted

# ------------------------------------------------------------------ polish


@pytest.fixture(scope="module")
def truth():
    return planted(120, 10, 20, sparsity=3, random_state=0)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_polish_is_least_squares_on_the_support(truth, missing):
    rng = np.random.default_rng(0)
    observed = None if not missing else rng.random(truth.data.shape) >= missing
    data = truth.data + 0.1 * rng.standard_normal(truth.data.shape)
    rough = truth.codes + 0.05 * rng.standard_normal(truth.codes.shape) * (truth.codes != 0)
    polished = polish_codes(data, observed, truth.dictionary, rough, negligible=0.0)
    for n in range(len(data)):
        seen = np.ones(10, bool) if observed is None else observed[n]
        support = np.flatnonzero(truth.codes[n])
        best, *_ = np.linalg.lstsq(truth.dictionary[support][:, seen].T, data[n, seen], rcond=None)
        if np.abs(best).sum() <= 2 * np.abs(rough[n]).sum():
            np.testing.assert_allclose(polished[n, support], best, atol=1e-9)
        assert np.count_nonzero(polished[n]) <= 3


def test_polish_discards_negligible_codes_and_finds_the_exact_ones(truth):
    rng = np.random.default_rng(1)
    rough = truth.codes * 0.98
    extra = rng.random(rough.shape) < 0.05
    rough[extra] += 0.01
    polished = polish_codes(truth.data, None, truth.dictionary, rough, negligible=1e-3)
    np.testing.assert_allclose(polished @ truth.dictionary, truth.data, atol=3e-3)
    assert np.count_nonzero(polished) <= np.count_nonzero(truth.codes)


def test_polish_of_the_lasso_form_satisfies_its_optimality(truth):
    alpha = 0.05
    rough = truth.codes - alpha * np.sign(truth.codes)
    polished = polish_codes(truth.data, None, truth.dictionary, rough, alpha=alpha)
    gradient = (truth.data - polished @ truth.dictionary) @ truth.dictionary.T
    support = polished != 0
    np.testing.assert_allclose(gradient[support], alpha * np.sign(polished[support]), atol=1e-9)


def test_polish_with_more_atoms_than_features_fits_exactly_near_the_given_codes():
    rng = np.random.default_rng(2)
    dictionary = rng.standard_normal((30, 5))
    dictionary /= np.linalg.norm(dictionary, axis=1, keepdims=True)
    codes = rng.standard_normal((8, 30))
    data = codes @ dictionary + 0.01 * rng.standard_normal((8, 5))
    polished = polish_codes(data, None, dictionary, codes, negligible=0.0)
    np.testing.assert_allclose(polished @ dictionary, data, atol=1e-9)
    assert np.abs(polished - codes).max() < 0.05


def test_polish_of_nearly_dependent_atoms_does_not_blow_up():
    dictionary = np.array([[1.0, 0.0, 0.0], [1.0, 1e-9, 0.0]])
    dictionary /= np.linalg.norm(dictionary, axis=1, keepdims=True)
    polished = polish_codes(np.array([[1.0, 0.1, 0.0]]), None, dictionary, np.array([[0.5, 0.5]]))
    assert np.abs(polished).sum() <= 2


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_duplicates_are_merged_without_changing_the_reconstruction(truth, dtype, tolerance):
    for k in range(len(truth.dictionary)):
        atoms = np.concatenate([truth.dictionary, -truth.dictionary[[k]], truth.dictionary[[k]]]).astype(dtype)
        codes = np.concatenate([truth.codes, truth.codes[:, 5:7]], axis=1).astype(dtype)
        merged = merge_duplicates(atoms, codes)
        np.testing.assert_allclose(merged @ atoms, codes @ atoms, atol=tolerance)
        assert not merged[:, -2:].any()
    assert merge_duplicates(truth.dictionary, truth.codes) is truth.codes


def test_polish_leaves_zero_samples_at_zero(truth):
    data, codes = truth.data.copy(), truth.codes.copy()
    data[3], codes[3] = 0, 0
    assert not polish_codes(data, None, truth.dictionary, codes)[3].any()


# ------------------------------------------------------------------ starts


def test_start_from_samples(truth):
    dictionary, codes = starting_point(truth.data, 20, None, None, np.random.default_rng(0))
    directions = truth.data / np.linalg.norm(truth.data, axis=1, keepdims=True)
    overlap = directions @ dictionary.T
    assert overlap.max(axis=0) == pytest.approx(1)
    assert len(set(overlap.argmax(axis=0))) == 20, "no sample twice"
    assert np.linalg.norm(truth.data - codes @ dictionary) < 0.3 * np.linalg.norm(truth.data)


def test_start_with_fewer_samples_than_atoms_and_zero_samples():
    data = np.zeros((5, 4))
    data[:2] = np.eye(2, 4)
    dictionary, codes = starting_point(data, 8, None, None, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1)
    assert np.isfinite(codes).all()


def test_starting_codes_are_moderate_where_samples_are_nearly_dependent():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((1, 8))
    data = base + 1e-4 * rng.standard_normal((50, 8))
    _, codes = starting_point(data, 8, None, None, rng)
    assert np.abs(codes).max() < 10 * np.linalg.norm(base)


def test_given_dictionary_is_normalised_and_given_codes_follow(truth):
    lengths = np.linspace(0.5, 3, 20)
    given = truth.dictionary * lengths[:, None]
    dictionary, codes = starting_point(truth.data, 20, given, truth.codes / lengths, np.random.default_rng(0))
    np.testing.assert_allclose(dictionary, truth.dictionary)
    np.testing.assert_allclose(codes, truth.codes)


# ------------------------------------------------------------------ floors and plans


def test_floor_is_that_of_eckart_and_young():
    X = np.random.default_rng(0).standard_normal((30, 7))
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    for k in range(1, 7):
        best = (left[:, :k] * sizes[:k]) @ right[:k]
        assert smallest_error(X, None, k) == pytest.approx(np.linalg.norm(X - best) / np.linalg.norm(X))
    assert smallest_error(X, None, 7) == 0
    assert smallest_error(X[:, :3] @ right[:3], None, 3) == 0, "rank 3 up to rounding"


def test_floor_with_missing_entries_is_attainable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 6)) + 0.01 * rng.standard_normal((60, 6))
    observed = rng.random(X.shape) > 0.2
    floor = smallest_error(np.where(observed, X, 0), observed, 2)
    assert floor < 0.02
    assert auto_epsilon(0.0) == 0
    assert floor < auto_epsilon(floor) < 1.2 * floor


def plan(X, n_components=8, **changes):
    return make_plan(X, None, n_components, Parameters(**changes))


def test_engines_see_data_of_order_one_in_any_units():
    X = np.random.default_rng(0).standard_normal((20, 4))
    for factor in (1e-300, 1.0, 1e300):
        made = plan(factor * X, rho=2 / factor)
        assert 1 <= np.abs(made.problem.data).max() < 2
        assert made.problem.rhos[0] == pytest.approx(2 * made.unit / factor)
        np.testing.assert_array_equal(made.problem.data * made.unit, factor * X)


@pytest.mark.parametrize("form", ["constrained", "lasso", "inexact"])
def test_automatic_penalties_follow_the_scale(form):
    X = np.random.default_rng(0).standard_normal((20, 4))
    first, second = plan(X, formulation=form), plan(3.7 * X, formulation=form)
    assert first.problem.rhos[0] / first.unit == pytest.approx(3.7 * second.problem.rhos[0] / second.unit)
    if form == "inexact":
        assert all(rho > beta for rho, beta in zip(first.problem.rhos, first.problem.formulation.betas, strict=True))


# ------------------------------------------------------------------ formulation and stopping


def test_theorem_1_is_checked():
    assert check_penalties((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)) is None
    assert "beta2=2" in check_penalties((1.0, 2.0, 3.0), (4.0, 3.0, 6.0))
    with pytest.raises(ValueError, match=r"rho3=3 must exceed beta3=3"):
        check_penalties((1.0, 2.0, 3.0), (4.0, 5.0, 3.0))


def test_shares_of_the_slacks():
    assert constrained(0.0).misfit_share(5.0, 10.0) == 0
    assert constrained(2.0).misfit_share(5.0, 10.0) == pytest.approx(0.4)
    assert constrained(2.0).misfit_share(1.0, 10.0) == 1
    assert lasso(30.0).misfit_share(5.0, 10.0) == pytest.approx(0.25)
    assert inexact((10.0, 30.0, 50.0)).slack_share(1, 10.0) == pytest.approx(0.25)
    assert lasso(30.0).misfit_cost(2.0) == 60
    assert constrained(2.0).misfit_cost(2.0) == 0
    assert not inexact((1.0, 1.0, 1.0)).exact_consensus
    assert lasso(1.0).exact_consensus


class Thermostat:
    """A run with primal residual 1/ρ, like a run below its critical ρ."""

    def __init__(self, rho):
        self.rhos, self.problem = (rho, rho, rho), None

    def step(self, following=None):
        measures = Measures(1.0, 1 / self.rhos[0], 0.0, 0.0)
        if following is not None:
            self.rhos = (following,) * 3
        return measures


@pytest.mark.parametrize("first", [2.0, 500.0])
def test_annealing_holds_the_residual_and_then_lowers_it(first):
    annealing = Annealing(first, 1e-3, 0.05, hold=600, fall=800)
    outcome = drive(follow(Thermostat(first), Rule(1400, 0, 0.0, annealing), View()))
    residuals, rhos = outcome.history["primal"], outcome.history["rho"]
    np.testing.assert_allclose(residuals[500:600], 0.05, rtol=0.15)
    np.testing.assert_allclose(residuals[-1], FINAL_RESIDUAL, rtol=0.15)
    assert np.all(np.diff(rhos[600:]) >= 0), "rho never falls again"
    assert set(np.flatnonzero(np.diff(rhos)) % UPDATE_EVERY) == {UPDATE_EVERY - 1}


def test_annealing_respects_its_minimum_rho():
    annealing = Annealing(30.0, 20.0, 0.5, hold=600, fall=800)
    outcome = drive(follow(Thermostat(30.0), Rule(300, 0, 0.0, annealing), View()))
    assert outcome.history["rho"].min() == 20


def test_annealing_ends_with_a_constant_rho():
    annealing = Annealing(30.0, 1.0, 0.05, hold=100, fall=100)
    outcome = drive(follow(Thermostat(30.0), Rule(3000, 0, 0.0, annealing), View()))
    assert outcome.history["rho"][-1] == pytest.approx(1 / FINAL_RESIDUAL, rel=0.1)
    assert len(set(outcome.history["rho"][2000:])) == 1


def test_automatic_rho_of_the_exact_forms_is_annealed():
    X = np.random.default_rng(0).standard_normal((60, 4))
    for runs in (plan(X, 8).runs, plan(X, 8, formulation="lasso").runs, plan(X, 16).runs, plan(X, 2).runs):
        assert all(run is not None for run in runs)
    for changes in ({"anneal": False}, {"rho": 3.0}, {"formulation": "inexact"}):
        assert plan(X, 8, **changes).runs == (None,)
    assert plan(X, 8, rho=3.0, n_init=2).runs == (None, None)


def test_number_and_schedules_of_runs():
    X = np.random.default_rng(0).standard_normal((60, 4))
    assert [run.hold for run in plan(X, 8, epsilon=0).runs] == [150, 1000, 0, 1000], "a short trial comes first"
    noisy = plan(X, 8, epsilon=0.1)
    assert ([run.hold for run in noisy.runs], noisy.n_unsearched) == ([0] * 4, 2), "the first starts only descend"
    unsearched = [plan(X, 8, epsilon=0.1, n_init=n_init).n_unsearched for n_init in (1, 2, 3)]
    assert (unsearched, plan(X[:40], 8, epsilon=0.1).n_unsearched) == ([0, 1, 2], 1)
    assert [run.hold for run in plan(X, 8, epsilon=0, n_init=1).runs] == [1000], "no trial alone"
    assert [run.hold for run in plan(X, 8, epsilon=0, n_init=2).runs] == [150, 1000]
    assert len(plan(X[:40], 8, epsilon=0).runs) == 7, "with few samples poor minima recur"
    assert (plan(X, 8).required_agreement, plan(X[:40], 8).required_agreement) == (2, 3)
    assert [run.warmth for run in plan(X, 13).runs] == [0.025]
    (short,) = plan(X, 8, n_init=1, max_iter=200).runs
    assert (short.hold, short.fall) == (100, 80), "annealing ends before the run"


def test_ridge_of_an_infinite_weight_is_zero_slack():
    assert Formulation((np.inf, np.inf, np.inf)).slack_share(0, 5.0) == 0
