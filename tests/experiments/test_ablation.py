"""The ablation: restarts within a CPU time, the exact finish after each, and what is concluded from rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from roadict.experiments import timed
from roadict.experiments.ablation import ABLATION
from roadict.experiments.plan import PlantedProblem
from roadict.experiments.registry import EXPERIMENTS, chosen
from roadict.experiments.timed import RUNS, Candidate, best_in_time, run_timed
from roadict.experiments.verdicts import verdicts
from roadict.synthetic import planted

SMALL = PlantedProblem(8, 12, 80, sparsity=2)
TRUTH = planted(120, 10, 12, sparsity=2, random_state=90_200)


def candidates(objectives):
    """Runs with these objectives, which can be told by their atoms; far from any dictionary."""
    for value in objectives:
        yield Candidate(np.full((12, 10), value), np.ones((120, 12)), value, 1)


def test_of_the_runs_in_a_time_the_smallest_objective_counts():
    best, _, number = best_in_time(TRUTH.data, candidates([3.0, 1.0, 2.0]), 100.0, finish=False)
    assert (best.objective, best.dictionary[0, 0], number) == (1.0, 1.0, 3)


def test_one_run_is_carried_out_however_short_the_time():
    best, _, number = best_in_time(TRUTH.data, candidates([3.0, 1.0]), 0.0, finish=False)
    assert (best.objective, number) == (3.0, 1)


def test_runs_begin_as_long_as_there_is_time_and_the_last_may_take_longer(monkeypatch):
    """Runs of a second each, in two and a half seconds: three of them, which take three."""
    now = [50.0]
    monkeypatch.setattr(timed, "time", SimpleNamespace(process_time=lambda: now[0]))

    def runs():
        for candidate in candidates([3.0, 2.0, 1.0, 0.0]):
            now[0] += 1.0
            yield candidate

    best, seconds, number = best_in_time(TRUTH.data, runs(), 2.5, finish=False)
    assert (best.objective, seconds, number) == (1.0, 3.0, 3)


def test_an_exact_finish_ends_the_restarts():
    """The second run is near the planted atoms, and the third would have a smaller objective."""
    near = TRUTH.dictionary + 0.003 * np.random.default_rng(0).standard_normal(TRUTH.dictionary.shape)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    far = next(candidates([5.0]))
    far = Candidate(np.eye(12, 10) + 0.1, far.codes, 5.0, 1)
    runs = [far, Candidate(near, TRUTH.codes, 4.0, 1), Candidate(far.dictionary, far.codes, 1.0, 1)]
    best, _, number = best_in_time(TRUTH.data, iter(runs), 100.0, finish=True)
    assert best.exact
    assert number == 2
    assert np.abs(best.dictionary @ TRUTH.dictionary.T).max(axis=0) == pytest.approx(1)
    best, _, number = best_in_time(TRUTH.data, iter(runs), 100.0, finish=False)
    assert (best.objective, number, best.exact) == (1.0, 3, False)


@pytest.mark.parametrize("method", [m for m in ABLATION.methods if m.name != "blotless"], ids=lambda m: m.name)
def test_every_method_gives_a_row_on_a_small_problem(method):
    result, seconds = run_timed(method, SMALL, 90_300)
    assert 0 <= result["error"] < 0.5
    assert result["data_error"] < 0.7
    assert result["runs"] >= 1
    assert seconds > 0
    assert not (result["exact"] and method.name in ("road-unfinished", "road-paper", "lasso-annealed", "ksvd"))


def test_every_kind_of_run_has_a_method():
    assert {dict(method.parameters)["run"] for method in ABLATION.methods} == {*RUNS, "road"}


def test_it_is_not_among_the_experiments_of_the_paper():
    assert EXPERIMENTS["ablation"] not in chosen("all")
    assert chosen("ablation") == [ABLATION]
    assert len(list(ABLATION.trials(ABLATION.n_trials, "auto"))) == 32 * 7 * 9


def rows_of(found, number=20):
    """Rows in which a method finds this share of the dictionaries."""
    rows = []
    for trial in ABLATION.trials(number, "auto"):
        share = found.get(trial.method.name, 0.0)
        error = 0.0 if (trial.seed - 70_000) / number < share else 0.1
        rows.append({"key": trial.key(), "settings": trial.settings(), "result": {"error": error}})
    return rows


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"road-defaults": 1.0, "ksvd": 0.3}, ["reproduced", "reproduced"]),
        ({"road-defaults": 0.5, "lasso-annealed-finished": 0.5}, ["not reproduced", "reproduced"]),
        ({"road-defaults": 0.55, "blotless": 0.5}, ["not reproduced", "reproduced"]),  # one trial more may be chance
        ({"road-defaults": 0.9, "road-unfinished": 0.9, "road-one-start": 0.4}, ["reproduced", "partly"]),
        ({"road-defaults": 0.3, "ksvd": 1.0}, ["not reproduced", "reproduced"]),  # behind, and beyond chance
        ({}, ["not reproduced", "not reproduced"]),
    ],
)
def test_verdicts(found, expected):
    assert [verdict.outcome for verdict in verdicts(rows_of(found))] == expected


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "none of them adds dictionaries by more than two standard errors of the mean paired difference."),
        ({"road-defaults": 1.0}, "the finish, restarts and the moving ρ add dictionaries by more than two "),
        ({"road-defaults": 0.9, "road-unfinished": 0.9}, "difference; the finish does not."),
        ({"road-defaults": 0.9, "road-one-start": 0.9}, "difference; restarts do not."),
        ({"road-defaults": 0.9, "road-one-start": 0.9, "road-unfinished": 0.9}, "Over 7 problems, the moving ρ adds "),
    ],
)
def test_the_reason_names_the_ingredients(found, words):
    assert words in verdicts(rows_of(found))[1].reason


def test_an_ingredient_that_adds_a_little_everywhere_adds():
    """One trial of 20 more at each of 7 problems: at none more than chance, over all of them more."""
    found = verdicts(rows_of({"road-defaults": 1.0, "road-unfinished": 0.95}))[1]
    assert found.outcome == "reproduced"
    assert {line[0]: line[1:] for line in found.table}["the finish"] == ("+5 ± 4", "0 of 7")


@pytest.mark.parametrize(
    ("share", "word"), [({"road-defaults": 1.0}, "holds"), ({"road-defaults": 0.0}, "does not hold")]
)
def test_claims_of_our_own_are_not_called_reproduced(share, word):
    assert [verdict.label for verdict in verdicts(rows_of(share))] == [word, word]
    assert [verdict.label for verdict in verdicts(rows_of(share, 6))] == [word, word]
    assert [verdict.label for verdict in verdicts(rows_of(share, 5))] == ["too few rows"] * 2
    without = {"road-defaults": 0.9, "road-unfinished": 0.9}
    assert verdicts(rows_of(without))[1].label == "holds in part"


def test_trials_that_a_method_lacks_are_left_out():
    rows = rows_of({"road-defaults": 1.0})
    first = verdicts(list(reversed(rows)))[0]
    assert first.trials == 20
    sizes = [line[0] for line in first.table[1:]]
    assert [sizes[0], sizes[3], sizes[-1]] == ["(16, 32, 3), N = 100", "(16, 32, 3), N = 300", "(32, 64, 6), N = 350"]
    fewer = [row for row in rows if row["settings"]["method"]["name"] != "ksvd" or row["settings"]["seed"] < 70_007]
    assert verdicts(fewer)[0].trials == 7
    none = [row for row in rows if row["settings"]["method"]["name"] != "ksvd"]
    assert {verdict.outcome for verdict in verdicts(none)} == {"too few rows"}
