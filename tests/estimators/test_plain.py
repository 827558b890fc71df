"""What roadict adds to the paper, and that it can be turned off (docs/paper-to-code.md)."""

import numpy as np
import pytest

from roadict import ROAD
from roadict.engines.reference import ReferenceEngine
from roadict.formulation import Problem, constrained
from roadict.synthetic import planted

PLAIN = {"rho": 10.0, "n_init": 1}


@pytest.fixture(scope="module")
def truth():
    return planted(240, 10, 12, sparsity=2, random_state=90_100)


@pytest.fixture(scope="module")
def defaults(truth):
    return ROAD(12, random_state=0).fit(truth.data)


class Unfinished(ROAD):
    _finishes = False


def test_a_numeric_rho_with_one_start_is_the_iteration_of_the_paper_and_no_more(truth):
    rng = np.random.default_rng(5)
    atoms, codes = rng.standard_normal((12, 10)), rng.standard_normal((240, 12))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    problem = Problem(truth.data, None, constrained(0.0), (10.0,) * 3)
    engine = ReferenceEngine(problem, atoms, codes)
    for _ in range(25):
        measures = engine.step()
    seen = []
    model = ROAD(12, **PLAIN, max_iter=25, tol=0, dict_init=atoms, code_init=codes, callback=seen.append)
    model.fit(truth.data)
    assert len(seen) == model.n_iter_ == 25
    assert np.abs(np.sum(model.components_ * engine.dictionary(), axis=1)) == pytest.approx(1)
    assert model.history_["dual"][-1] == pytest.approx(measures.dual)
    assert model.history_["objective"][-1] == pytest.approx(measures.objective)


def test_the_codes_of_the_last_iteration_are_in_its_snapshot(truth):
    """They are made minimal, and those of duplicates merged, only in ``codes_``."""
    raw = []
    model = ROAD(12, **PLAIN, max_iter=60, tol=0, random_state=0, callback=lambda view: raw.append(view.codes.copy()))
    model.fit(truth.data)
    assert np.abs(model.codes_).sum() != pytest.approx(np.abs(raw[-1]).sum(), rel=1e-6)
    assert model.error_ < 1e-6  # raw codes reproduce the data only in the limit
    assert np.linalg.norm(truth.data - raw[-1] @ model.components_) > 1e-3 * np.linalg.norm(truth.data)


def test_each_addition_is_on_by_default_and_off_on_request(truth, defaults):
    plain = ROAD(12, **PLAIN, max_iter=100, tol=0, random_state=0).fit(truth.data)
    assert len(set(defaults.history_["rho"])) > 1
    assert len(set(plain.history_["rho"])) == 1
    assert defaults.exact_
    assert not plain.exact_
    assert plain.n_starts_ == 1
    assert plain.epsilon_path_ is None
    assert plain.stationarity_ is None


def test_starts_and_finish_are_turned_off_one_by_one(truth):
    several = Unfinished(12, epsilon=0.0, random_state=0).fit(truth.data)
    assert several.n_starts_ > 1
    assert not several.exact_
    one = Unfinished(12, epsilon=0.0, n_init=1, random_state=0).fit(truth.data)
    assert (one.n_starts_, one.exact_) == (1, False)
    assert len(set(one.history_["rho"])) > 1
    finished = ROAD(12, epsilon=0.0, n_init=1, random_state=0).fit(truth.data)
    assert (finished.n_starts_, finished.exact_) == (1, True)
