"""The estimate of how long trials take, and of the time left."""

import re
from pathlib import Path

import pytest

from roadict.experiments import cost
from roadict.experiments.registry import EXPERIMENTS, chosen

RESULTS = Path(__file__).parents[2] / "benchmarks" / "RESULTS.md"
ADDED = {("24-48-3", 350), ("24-48-3", 400), ("24-48-6", 500), ("24-48-6", 800), ("32-64-6", 425)}
"""Numbers of samples of Fig. 2 that were not yet in the measured run."""


def was_measured(trial):
    """Whether a trial was part of the run whose time RESULTS.md tells."""
    added = (trial.panel, getattr(trial.problem, "n_samples", 0)) in ADDED
    return not (added or trial.panel.endswith("-literal") or trial.method.name.endswith("-long"))


def test_the_estimate_for_three_trials_of_everything_is_near_the_measured_cpu_time():
    row = re.search(
        r"^\| `roadict reproduce all --trials 3 .*\| (\d+) min (\d+) s \|$", RESULTS.read_text(), re.MULTILINE
    )
    measured = 60 * int(row[1]) + int(row[2])
    trials = [trial for plan in chosen("all") for trial in plan.trials(3, "auto") if was_measured(trial)]
    estimate = sum(map(cost.seconds, trials))
    assert len(trials) == 978
    assert estimate == pytest.approx(measured, rel=0.25)


def test_the_time_left_follows_the_speed_of_the_machine(monkeypatch):
    """Half of the work in an hour leaves an hour, however long it was estimated to take."""
    trials = [trial for trial in EXPERIMENTS["solvers"].trials(20, "auto") if trial.method.name == "iadmm-one"]
    now = [0.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    left = cost.RemainingTime(trials, jobs=1)
    for trial in trials[: len(trials) // 2]:
        left.finished(trial)
    now[0] = 3600.0
    minutes = int(re.match(r"about (\d+) min ", left(len(trials) // 2, len(trials)))[1])
    assert 50 <= minutes <= 60  # somewhat less, as the estimate counts until much is done
    assert left(len(trials), len(trials)) == "done"
