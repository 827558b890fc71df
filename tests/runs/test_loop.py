"""The loop on runs with scripted measures: what it yields and records, and when it ends."""

import numpy as np
import pytest

from roadict.runs.driving import drive, observe
from roadict.runs.loop import Rule, View, follow, iterate
from roadict.runs.measures import Changes, Measures


class Scripted:
    """A run that reports given measures."""

    rhos = (7.0, 7.0, 7.0)

    def __init__(self, rows):
        self.rows = iter(rows)

    def step(self, following=None):
        if following is not None:
            self.rhos = (following,) * 3
        return Measures(*next(self.rows))

    def dictionary(self):
        return np.eye(2)

    def codes(self):
        return np.ones((3, 2))


class Bursts(Scripted):
    """The same, several at a time on request."""

    burst = 4

    def __init__(self, rows):
        super().__init__(rows)
        self.counts = []

    def step(self, following=None):
        self.counts.append(1)
        return super().step(following)

    def steps(self, count):
        self.counts.append(count)
        return [Measures(*next(self.rows)) for _ in range(count)]


def run_loop(run, max_iter, tol, error_bound=0.0, callback=None, before=None, **view):
    return drive(observe(follow(run, Rule(max_iter, tol, error_bound), View(**view), before), callback))


@pytest.mark.parametrize(
    ("row", "bound", "ended"),
    [
        ((1.0, 1e-5, 1e-5, 1e-4), 0.0, True),
        ((1.0, 2e-4, 1e-5, 1e-4), 0.0, False),
        ((1.0, 1e-5, 2e-4, 1e-4), 0.0, False),
        ((1.0, 1e-5, 1e-5, 2e-3), 0.0, False),
        ((1.0, 1e-5, 1e-5, 0.1005), 0.1, True),
        ((1.0, 1e-5, 1e-5, 0.5), None, True),
    ],
)
def test_converged_means_both_residuals_and_the_error(row, bound, ended):
    outcome = run_loop(Scripted([row]), 1, 1e-4, bound)
    assert outcome.stop_reason == ("converged" if ended else "max_iter")


@pytest.mark.parametrize(
    ("rows", "tol", "reason", "count"),
    [
        ([(1, 1, 1, 1), (1, 0, 0, 0), (1, 0, 0, 0)], 1e-4, "converged", 2),
        ([(1, 0, 0, 0)] * 3, 0, "max_iter", 3),
        ([(1, 1, 1, 1), (1, np.nan, 1, 1)], 1e-4, "non-finite", 2),
        ([(1, 1, 1, 1), (np.inf, 1, 1, 1)], 1e-4, "non-finite", 2),
    ],
)
def test_stop_reasons(rows, tol, reason, count):
    outcome = run_loop(Scripted(rows), 3, tol, unit=2.0)
    assert outcome.stop_reason == reason
    assert len(outcome.history["objective"]) == count
    assert outcome.history["rho"][0] == 3.5
    assert outcome.history["objective"][0] == 2


def test_a_callback_ends_a_run_even_if_it_has_converged():
    assert run_loop(Scripted([(1, 0, 0, 0)]), 9, 1, callback=lambda snapshot: True).stop_reason == "callback"


def test_a_run_continues_where_it_stopped():
    complete = run_loop(Scripted([(1, 1, 1, 1)] * 3 + [(1, 0, 0, 0)]), 9, 1e-4)
    interrupted = Scripted([(1, 1, 1, 1), (1, 0.5, 0.5, 0.5), (1, 1, 1, 1), (1, 0, 0, 0)])
    first = run_loop(interrupted, 9, 0.5)
    second = run_loop(interrupted, 9, 1e-4, before=first.history)
    assert [len(outcome.history["objective"]) for outcome in (complete, first, second)] == [4, 2, 4]
    assert np.all(np.diff(second.history["seconds"]) >= 0)


def test_a_snapshot_has_the_start_the_measures_and_the_arrays_of_the_run():
    snapshots = iterate(Scripted([(1, 2, 3, 4)]), Rule(1, 0), {}, View(unit=3.0, start=2, n_starts=5))
    snapshot = next(snapshots)
    assert (snapshot.start, snapshot.n_starts, snapshot.iteration, snapshot.max_iter) == (2, 5, 1, 1)
    assert (snapshot.objective, snapshot.primal, snapshot.dual, snapshot.error) == (3, 2, 3, 4)
    assert snapshot.residuals == {"primal": 2, "dual": 3}
    assert repr(snapshot).startswith("<Snapshot of iteration 1/1 of start 2/5: objective=3, primal=2, dual=3, error=4")
    np.testing.assert_array_equal(snapshot.codes, np.full((3, 2), 3.0))
    with pytest.raises(ValueError, match="read-only"):
        snapshot.dictionary[0] = 0
    with pytest.raises(AttributeError, match="has no 'code_change'; it has objective, primal"):
        _ = snapshot.code_change


def test_two_stage_methods_report_changes_and_no_rho():
    class Alternation(Scripted):
        rhos = ()

        def step(self, following=None):
            return Changes(*next(self.rows))

    outcome = run_loop(Alternation([(4, 1, 1, 1), (3, 0, 0, 0)]), 9, 1e-4)
    assert outcome.stop_reason == "converged"
    assert list(outcome.history) == ["objective", "code_change", "atom_change", "error", "seconds"]


@pytest.mark.parametrize("ending", ["converged", "callback", "max_iter", "left early"])
def test_the_last_snapshot_expires_with_its_run(ending):
    """Otherwise it returns the atoms of a later iteration once the run continues."""
    seen = []
    run, rule = Scripted([(1, 1, 1, 1), (1, 0.5, 0.5, 0.5)]), Rule(2, 0.5 if ending == "converged" else 0)
    fitting = observe(follow(run, rule, View()), lambda snapshot: seen.append(snapshot) or ending == "callback")
    if ending == "left early":
        next(fitting)
        fitting.close()
    else:
        assert drive(fitting).stop_reason == ending
    for snapshot in seen:
        with pytest.raises(RuntimeError, match=f"of iteration {snapshot.iteration}, and the run has moved on"):
            _ = snapshot.dictionary


MOVING, CONVERGED = (1, 1, 1, 1), (1, 0, 0, 0)


@pytest.mark.parametrize(("converged_at", "n_iter"), [(1, 4), (4, 4), (5, 8), (9, 10)])
def test_a_run_in_bursts_ends_at_the_same_iteration_watched_or_not(converged_at, n_iter):
    """Convergence is tested every four iterations, and after the last."""
    rows = [MOVING] * (converged_at - 1) + [CONVERGED] * 11
    seen = []
    watched, unwatched = Bursts(rows), Bursts(rows)
    for run, outcome in (
        (watched, run_loop(watched, 10, 1e-4, callback=lambda snapshot: seen.append(snapshot.iteration))),
        (unwatched, run_loop(unwatched, 10, 1e-4, watched=False)),
    ):
        assert outcome.stop_reason == "converged"
        assert len(outcome.history["objective"]) == n_iter
        assert sum(run.counts) == n_iter
    assert seen == list(range(1, n_iter + 1))
    assert max(watched.counts) == 1
    assert max(unwatched.counts) == 4


def test_non_finite_numbers_end_a_burst_where_they_occur():
    rows = [MOVING, (1, np.nan, 1, 1), MOVING, MOVING]
    for watched in (True, False):
        outcome = run_loop(Bursts(rows), 9, 1e-4, watched=watched)
        assert (outcome.stop_reason, len(outcome.history["primal"])) == ("non-finite", 2)
