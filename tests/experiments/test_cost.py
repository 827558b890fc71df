"""The estimate of how long trials take, and of the time left."""

import json
import re
from pathlib import Path

from roadict.experiments import cost
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import read_folder

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results" / "rows"


def test_estimates_are_near_the_measured_cpu_time():
    """Busy machines take up to twice as long. Rows of older code count too: a digest is no speed."""
    measured = {regardless_of_code(row["settings"]): row["seconds"]["cpu"] for row in read_folder(PUBLISHED)}
    planned = {regardless_of_code(t.settings()): t for t in EXPERIMENTS["solvers"].trials(100, "numba")}
    trials = {key: trial for key, trial in planned.items() if key in measured}
    assert len(trials) > 100
    ratio = sum(map(cost.seconds, trials.values())) / sum(measured[key] for key in trials)
    assert 0.4 < ratio < 2


def regardless_of_code(settings):
    return json.dumps({name: value for name, value in settings.items() if name != "sources"}, sort_keys=True)


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
