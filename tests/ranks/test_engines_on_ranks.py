"""Fits on several ranks against the same fit in one process; ranks are threads here, processes in test_torchrun.py."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rank_data import CUTS, FORMS, HOLES, TRUTH
from roadict import ROAD
from roadict.engines.registry import make_engine
from roadict.estimators.consistency import shared_seed
from roadict.formulation import Problem
from roadict.metrics import dictionary_error
from roadict.road.floor import smallest_error
from roadict.road.multistart import broadcast_atoms
from roadict.road.start import starting_point
from roadict.runs.driving import drive
from roadict.runs.loop import Rule, View, follow
from roadict.runs.measures import Measures
from roadict.synthetic import planted

FITS = FORMS | {
    "missing": {"rho": 10.0, "missing_values": np.nan},
    "missing and few atoms": {"rho": 10.0, "missing_values": np.nan, "n_components": 5},
    "few atoms": {"rho": 10.0, "n_components": 5},
    "reference": {"rho": 10.0, "epsilon": 0.1, "engine": "reference", "max_iter": 30},
    "float32": {"rho": 10.0, "max_iter": 20},
    "several starts": {"rho": 10.0, "n_init": 2, "max_iter": 50},
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "epsilon=")
        yield


def fit_on(on_ranks, size, data, **parameters):
    """Return the models of all ranks, and their concatenated codes."""
    parts = np.split(data, CUTS[size])
    models = on_ranks(size, lambda comm: ROAD(**parameters).fit(parts[comm.rank]))
    return models, np.concatenate([model.codes_ for model in models])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", FITS)
def test_ranks_learn_what_one_process_learns(on_ranks, name, size):
    parameters = {"n_components": 12, "max_iter": 120, "random_state": 0} | FITS[name]
    data = HOLES if name.startswith("missing") else TRUTH.data
    data, close = (data.astype(np.float32), 1e-3) if name == "float32" else (data, 1e-10)
    alone = ROAD(**parameters).fit(data)
    models, codes = fit_on(on_ranks, size, data, **parameters)
    for model in models:
        np.testing.assert_array_equal(model.components_, models[0].components_)
        np.testing.assert_allclose(model.components_, alone.components_, atol=close)
        assert model.objective_ == pytest.approx(alone.objective_, rel=close)
        assert model.error_ == pytest.approx(alone.error_, rel=close, abs=1e-6 if close > 1e-6 else 1e-12)
        assert model.stop_reason_ == alone.stop_reason_
        assert model.transform_alpha_ == pytest.approx(alone.transform_alpha_, rel=close)
        np.testing.assert_allclose(model.atom_usage_, alone.atom_usage_, atol=close)
        for column in ("objective", "primal", "dual", "error"):
            np.testing.assert_allclose(model.history_[column], alone.history_[column], rtol=100 * close, atol=close)
    np.testing.assert_allclose(codes, alone.codes_, atol=10 * close)
    again, more = fit_on(on_ranks, size, data, **parameters)
    np.testing.assert_array_equal(again[0].components_, models[0].components_)
    np.testing.assert_array_equal(more, codes)


def test_ranks_find_the_noise_that_one_process_finds(on_ranks):
    truth = planted(200, 10, 14, sparsity=2, snr_db=20, random_state=3)
    parameters = {"n_components": 14, "n_init": 1, "max_iter": 600, "tol": 1e-3, "random_state": 0}
    alone = ROAD(**parameters).fit(truth.data)
    assert alone.epsilon_ > 0.05
    models, codes = fit_on(on_ranks, 3, truth.data, **parameters)
    for model in models:
        np.testing.assert_array_equal(model.components_, models[0].components_)
        assert model.epsilon_path_.to_json() == models[0].epsilon_path_.to_json()
    assert models[0].epsilon_ == pytest.approx(alone.epsilon_, rel=0.01)
    assert dictionary_error(models[0].components_, alone.components_) < 1e-3
    assert np.linalg.norm(truth.data - codes @ models[0].components_) <= models[0].epsilon_ * np.linalg.norm(truth.data)


def test_an_automatic_rho_finds_as_good_a_dictionary(on_ranks):
    truth = planted(200, 8, 12, sparsity=2, random_state=3)
    alone = ROAD(12, random_state=0).fit(truth.data)
    for size in (2, 3):
        models, codes = fit_on(on_ranks, size, truth.data, n_components=12, random_state=0)
        assert models[0].objective_ == pytest.approx(alone.objective_, rel=0.01)
        assert {model.stop_reason_ for model in models} == {alone.stop_reason_}
        assert dictionary_error(models[0].components_, truth.dictionary) < 0.01
        assert np.linalg.norm(truth.data - codes @ models[0].components_) < 1e-3 * np.linalg.norm(truth.data)


def test_given_starts_are_used_on_ranks(on_ranks):
    atoms, codes = TRUTH.dictionary, TRUTH.codes + 0.01
    for size in (2, 3):
        parts, starts = np.split(TRUTH.data, CUTS[size]), np.split(codes, CUTS[size])
        for given in ({"dict_init": atoms}, {}):
            alone = ROAD(12, rho=10.0, max_iter=20, code_init=codes, **given).fit(TRUTH.data)

            def fit(comm, given=given, parts=parts, starts=starts):
                start = starts[comm.rank]
                return ROAD(12, rho=10.0, max_iter=20, code_init=start, **given).fit(parts[comm.rank])

            np.testing.assert_allclose(on_ranks(size, fit)[-1].components_, alone.components_, atol=1e-10)


def test_a_callback_on_one_rank_stops_the_run_on_all(on_ranks):
    def fit(comm):
        stop = (lambda snapshot: snapshot.iteration == 7) if comm.rank == 1 else None
        return ROAD(12, rho=10.0, callback=stop, random_state=0).fit(np.split(TRUTH.data, CUTS[3])[comm.rank])

    assert [(model.stop_reason_, model.n_iter_) for model in on_ranks(3, fit)] == [("callback", 7)] * 3


def test_a_drawn_seed_is_the_same_on_all_ranks(on_ranks):
    first, *others = on_ranks(3, lambda comm: shared_seed(None, None, comm).entropy)
    assert others == [first, first]
    assert on_ranks(2, lambda comm: shared_seed(7, None, comm).entropy) == [7, 7]
    assert on_ranks(1, lambda comm: shared_seed(None, None, comm).entropy) != [first]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda rows, rank: rows[:, : 8 - rank], "rank 1 has samples of 7 features"),
        (lambda rows, rank: rows.astype(np.float32) if rank else rows, "in float32, rank 0 of 8 in float64"),
        (lambda rows, rank: rows[:0], "Found 0 sample"),
        (lambda rows, rank: 0 * rows, "all entries of X are zero"),
    ],
)
def test_ranks_with_different_kinds_of_samples_are_refused(on_ranks, wrong, message):
    parts = np.split(TRUTH.data, CUTS[2])
    with pytest.raises(ValueError, match=message):
        on_ranks(2, lambda comm: ROAD(12, rho=10.0).fit(wrong(parts[comm.rank], comm.rank)))


def test_ranks_with_different_parameters_are_refused(on_ranks):
    parts = np.split(TRUTH.data, CUTS[2])
    with pytest.raises(ValueError, match=r"rho=11.0 on rank 1, but rho=10.0 on rank 0"):
        on_ranks(2, lambda comm: ROAD(12, rho=10.0 + comm.rank).fit(parts[comm.rank]))


def test_ranks_on_different_machines_agree_on_the_bound_and_on_the_start(on_ranks, monkeypatch):
    """Another machine rounds differently: singular values and solutions differ in their last bits."""
    machine, svd, solve = threading.local(), np.linalg.svd, np.linalg.solve

    def rounded(value):
        return value * (1 + 1e-15 * getattr(machine, "rank", 0))

    monkeypatch.setattr(np.linalg, "svd", lambda *args, compute_uv=True, **more: (
        svd(*args, **more) if compute_uv else rounded(svd(*args, compute_uv=False, **more))
    ))  # fmt: skip
    monkeypatch.setattr(np.linalg, "solve", lambda *args: rounded(solve(*args)))
    parts, codes = np.split(TRUTH.data, CUTS[2]), np.split(TRUTH.codes, CUTS[2])

    def work(comm):
        machine.rank = comm.rank
        floor = smallest_error(parts[comm.rank], None, 5, comm)
        rng = np.random.default_rng(0)
        return floor, starting_point(parts[comm.rank], 12, None, codes[comm.rank], rng, comm)[0]

    (floor, atoms), (other_floor, other_atoms) = on_ranks(2, work)
    assert floor == other_floor > 0
    np.testing.assert_array_equal(atoms, other_atoms)


class Settled:
    """A finished run; a machine of another kind has flipped the signs of some atoms."""

    def __init__(self, signs):
        self._signs = signs

    def dictionary(self):
        return TRUTH.dictionary * self._signs[:, None] * (1 + 1e-15)

    def codes(self):
        return TRUTH.codes * self._signs


def test_codes_of_ranks_whose_atoms_have_other_signs_match_the_atoms_of_rank_0(on_ranks):
    signs = [np.ones(12), np.resize([1.0, -1.0, -1.0], 12)]
    for atoms, codes in on_ranks(2, lambda comm: broadcast_atoms(Settled(signs[comm.rank]), comm)):
        np.testing.assert_array_equal(atoms, Settled(signs[0]).dictionary())
        np.testing.assert_array_equal(codes, TRUTH.codes)


def test_a_run_that_has_converged_on_one_rank_ends_on_all(on_ranks):
    """Rounding may put a residual on either side of the tolerance; ranks must still agree."""

    class Steady:
        rhos = (1.0, 1.0, 1.0)

        def __init__(self, rank):
            self._size = 1e-4 if rank == 1 else np.nextafter(1e-4, 1)

        def step(self, following=None):
            return Measures(1.0, self._size, 0.0, 0.0)

    def work(comm):
        return drive(follow(Steady(comm.rank), Rule(5, 1e-4), View(), comm=comm)).stop_reason

    assert on_ranks(2, work) == ["converged"] * 2


@pytest.mark.parametrize("name", ["numba", "reference"])
@pytest.mark.parametrize("form", ["exact", "ball", "lasso", "inexact-three"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_an_engine_restored_on_any_number_of_ranks_continues(make_problem, on_ranks, name, form, missing):
    """Bitwise on the same number of ranks, up to rounding on more or fewer."""
    if missing and form.startswith("inexact"):
        pytest.skip("does not support missing entries")
    problem, dictionary, codes = make_problem(form, (6, 9, 90), missing, rho=8.0)
    cuts = {1: [], 2: [70], 3: [20, 20]}

    def engine(comm):
        part = np.split(np.arange(90), cuts[comm.size])[comm.rank]
        observed = None if problem.observed is None else problem.observed[part]
        own = Problem(problem.data[part], observed, problem.formulation, problem.rhos)
        return make_engine(name, own, dictionary, codes[part], 1, comm)

    def steps(run, count):
        following = None if form.startswith("inexact") else 8.5
        for i in range(count):
            measures = run.step(following if i == 3 else None)
        return run.dictionary(), run.codes(), measures

    def uninterrupted(comm):
        run = engine(comm)
        steps(run, 10)
        state = run.state()
        local = {key: array.copy() for key, array in state.local.items()}
        shared = {key: array.copy() for key, array in state.shared.items()}
        return type(state)(local, shared), steps(run, 10)

    def resumed(comm, states):
        run = engine(comm)
        rows = np.split(np.arange(90), cuts[comm.size])[comm.rank]
        first = 0
        for state in states:  # the rows of each writer that are now this rank's
            length = len(next(iter(state.local.values())))
            own = rows[(rows >= first) & (rows < first + length)]
            part = {key: array[own - first] for key, array in state.local.items()}
            run.restore(type(state)(part, state.shared), int(own[0] - rows[0]) if len(own) else 0)
            first += length
        return steps(run, 10)

    for writers in (1, 3):
        results = on_ranks(writers, uninterrupted)
        states, last = [state for state, _ in results], [result for _, result in results]
        expected = np.concatenate([codes for _, codes, _ in last])
        for readers in (1, 2, 3):
            actual = on_ranks(readers, lambda comm, states=states: resumed(comm, states))
            joined = np.concatenate([codes for _, codes, _ in actual])
            if readers == writers:
                np.testing.assert_array_equal(actual[0][0], last[0][0])
                np.testing.assert_array_equal(joined, expected)
                assert actual[0][2] == last[0][2]
            overlap = np.abs(np.sum(actual[0][0] * last[0][0], axis=1))
            np.testing.assert_allclose(overlap, 1, atol=1e-10)
            np.testing.assert_allclose(np.abs(joined), np.abs(expected), atol=1e-9)
