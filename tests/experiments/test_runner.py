"""Rows survive kills, concurrent runs and full disks, and do not depend on how they were computed."""

import dataclasses
import errno
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from roadict import ROAD
from roadict.experiments import rows as rows_module
from roadict.experiments import runner
from roadict.experiments.methods import ROAD_DEFAULTS, ROAD_PAPER
from roadict.experiments.plan import PlantedProblem, Trial
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import RowFile, read_folder, read_rows
from roadict.experiments.runner import _shares_gpu, batches, make_row, pending, run
from roadict.experiments.trial import Finished, _learner, execute, execute_batch
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

SCRIPT = Path(__file__).with_name("tiny.py")
GUARD = 120  # timeout in seconds
KILLED_TRIALS = 5

spec = importlib.util.spec_from_file_location("tiny", SCRIPT)
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)


def start(folder, jobs, number):
    command = [sys.executable, str(SCRIPT), str(folder), str(jobs), str(number)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)


def wait_for(condition):
    deadline = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def alive(group):
    """Running processes of a group, without joblib's trackers, which clean up after them."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, its_group = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            command = (path / "cmdline").read_text()
        except OSError:
            continue
        if int(its_group) == group and state != "Z" and "resource_tracker" not in command:
            found.append(command)
    return found


def finish(process):
    _, err = process.communicate(timeout=GUARD)
    assert process.returncode == 0, err.decode()


def timeless(folder):
    """The lines without their times, byte for byte, in order of keys."""
    lines = (folder / "tiny.jsonl").read_bytes().splitlines(keepends=True)
    assert all(line.count(b'"seconds": {"cpu": ') == 1 for line in lines)
    return sorted(re.sub(rb'"seconds": \{"cpu": [\d.e-]+, "wall": [\d.e-]+\}', b"", line) for line in lines)


def test_a_killed_and_resumed_run_gives_the_rows_of_an_uninterrupted_one(tmp_path):
    killed, uninterrupted = tmp_path / "killed", tmp_path / "uninterrupted"
    file = killed / "tiny.jsonl"
    process = start(killed, 1, KILLED_TRIALS)
    wait_for(lambda: file.exists() and file.read_bytes().count(b"\n") >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = read_rows(file)
    assert 3 <= len(before) < len(tiny.trials(KILLED_TRIALS))

    with file.open("ab") as end:  # what a kill within a write leaves behind
        end.write(b'{"key": "half')
    finish(start(killed, 1, KILLED_TRIALS))
    run(pending(tiny.trials(KILLED_TRIALS), uninterrupted), uninterrupted, jobs=1)
    assert timeless(killed) == timeless(uninterrupted)
    assert read_rows(file)[: len(before)] == before, "finished rows were computed again"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_runner_that_is_killed(tmp_path):
    process = start(tmp_path, 2, 1000)
    wait_for(lambda: (tmp_path / "tiny.jsonl").exists() and (tmp_path / "tiny.jsonl").stat().st_size)
    assert len(alive(process.pid)) >= 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    wait_for(lambda: not alive(process.pid))


def test_an_incomplete_line_is_truncated_and_computed_again(tmp_path):
    trials = tiny.trials(1)
    run(trials, tmp_path, jobs=1)
    file = tmp_path / "tiny.jsonl"
    expected, text = timeless(tmp_path), file.read_bytes()
    file.write_bytes(text[:-20])
    assert len(read_rows(file)) == len(trials) - 1
    (remaining,) = pending(trials, tmp_path)
    assert remaining == trials[-1]
    assert file.read_bytes() == text[: text[:-20].rfind(b"\n") + 1]
    run([remaining], tmp_path, jobs=1)
    assert timeless(tmp_path) == expected


def test_two_runs_into_one_folder(tmp_path):
    concurrent, single = tmp_path / "concurrent", tmp_path / "single"
    for process in [start(concurrent, 1, 3) for _ in range(2)]:
        finish(process)
    run(tiny.trials(3), single, jobs=1)
    assert timeless(concurrent) == timeless(single)


def test_rows_do_not_depend_on_jobs(tmp_path):
    for jobs in (1, 2):
        run(tiny.trials(2), tmp_path / str(jobs), jobs=jobs)
    assert timeless(tmp_path / "1") == timeless(tmp_path / "2")


def test_a_changed_setting_is_a_new_row():
    trial = tiny.trials(1)[0]
    others = [
        dataclasses.replace(trial, seed=1),
        dataclasses.replace(trial, engine="reference"),
        dataclasses.replace(trial, problem=dataclasses.replace(trial.problem, n_samples=41)),
        dataclasses.replace(trial, method=dataclasses.replace(trial.method, parameters=(("rho", 11.0),))),
    ]
    assert len({other.key() for other in (trial, *others)}) == 5
    assert trial.key() == tiny.trials(1)[0].key()


def test_methods_share_a_start_that_is_not_the_truth():
    trials = tiny.trials(2)
    for seed in {trial.seed for trial in trials}:
        own = [trial for trial in trials if trial.seed == seed and trial.problem.n_samples == 60]
        truth = planted(60, 6, 8, sparsity=2, random_state=seed)
        starts = [_learner(trial.problem, trial, truth, None).dict_init for trial in own]
        assert len(starts) == 3
        assert all(np.array_equal(start, starts[0]) for start in starts)
        assert dictionary_error(starts[0], truth.dictionary) > 0.05


def test_rows_record_the_outcome_of_runs(tmp_path):
    run(tiny.trials(2), tmp_path, jobs=1)
    rows = read_folder(tmp_path)
    assert {row["result"]["stop_reason"] for row in rows} == {"max_iter"}
    assert {row["result"]["iterations"] for row in rows} == {300}
    assert len({row["result"]["error"] for row in rows}) > 6
    assert all(row["result"]["error"] <= row["result"]["error_greedy"] + 1e-12 for row in rows)


def test_rows_record_the_machine_that_computed_them_and_the_packages_of_a_gpu(tmp_path):
    (trial, *_) = tiny.trials(1)
    elsewhere = Finished(trial, {}, {}, versions={"numpy": "0"}, machine="another one")
    assert (make_row(elsewhere)["machine"], make_row(elsewhere)["versions"]) == ("another one", {"numpy": "0"})
    here = make_row(Finished(trial, {}, {}))
    assert "cores" in here["machine"]
    assert "torch" not in here["versions"]
    assert "torch" in make_row(Finished(dataclasses.replace(trial, engine="cuda"), {}, {}))["versions"]
    run(tiny.trials(1)[:1], tmp_path, jobs=1)
    (row,) = read_folder(tmp_path)
    assert (row["machine"], row["versions"]) == (here["machine"], here["versions"])
    assert (row["commit"], "trials" in row) == (here["commit"], False)


def test_rows_record_how_many_trials_were_wanted(tmp_path):
    run(tiny.trials(1)[:1], tmp_path, jobs=1, planned=7)
    (row,) = read_folder(tmp_path)
    assert row["trials"] == 7
    (trial, *_) = tiny.trials(1)
    assert make_row(Finished(trial, {}, {}), 7)["key"] == make_row(Finished(trial, {}, {}), 8)["key"]


@pytest.mark.skipif(os.name != "posix", reason="needs processes as Unix has them")
@pytest.mark.parametrize("gone", [True, False])
def test_a_worker_that_started_too_late_exits(gone):
    """Its runner was killed before its first trial; a worker of another process continues."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    runner = ended.pid if gone else 1
    code = (
        f"import platform, runpy; trials = runpy.run_path({str(SCRIPT)!r}, run_name='tiny')['trials']; "
        "from roadict.experiments.runner import _execute; "
        f"print(_execute(trials(1)[:1], None, {runner}, platform.node(), 0)[0][0].result['iterations'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=GUARD, check=False)
    assert (done.returncode, done.stdout) == ((1, "") if gone else (0, "300\n")), done.stderr


def test_a_trace_ends_with_the_error_of_the_returned_dictionary():
    (trial, *_) = tiny.trials(1)
    traced = dataclasses.replace(trial.problem, trace=True)
    # Our defaults stop an exact run early, between two recorded iterations.
    for method in (trial.method, ROAD_DEFAULTS):
        result = execute(dataclasses.replace(trial, problem=traced, method=method), None).result
        iterations, errors = zip(*result["trace"], strict=True)
        assert list(iterations) == sorted(set(iterations))
        assert iterations[0] == 1
        assert iterations[-1] >= result["iterations"]
        assert errors[-1] == result["error"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs permissions as Unix has them")
def test_an_unwritable_folder_is_reported_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"is a file, not a folder; .*--out"):
        RowFile(tmp_path / "file" / "tiny.jsonl")


def test_a_full_disk_leaves_complete_rows(tmp_path, monkeypatch):
    file = RowFile(tmp_path / "tiny.jsonl")
    file.append({"key": "a"})
    write = os.write

    def half(descriptor, line):
        write(descriptor, line[: len(line) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rows_module.os, "write", half)
    with pytest.raises(OSError, match=r"No space left on device.*free some space"):
        file.append({"key": "b"})
    monkeypatch.undo()
    assert file.path.read_text() == '{"key": "a"}\n'
    assert file.append({"key": "b"})
    assert not file.append({"key": "b"})
    assert [row["key"] for row in read_rows(file.path)] == ["a", "b"]


def test_a_line_that_is_no_row_is_reported(tmp_path):
    (tmp_path / "tiny.jsonl").write_text('{"key": "a"}\nnonsense\n')
    with pytest.raises(ValueError, match="line 2"):
        read_folder(tmp_path)
    with pytest.raises(ValueError, match="line 2"):
        RowFile(tmp_path / "tiny.jsonl")


def test_runs_that_share_a_gpu_are_batched():
    trials = [trial for trial in EXPERIMENTS["noise-free"].trials(5, "cuda") if _shares_gpu(trial)]
    assert {trial.method.learner for trial in trials} == {"road"}
    for jobs in (1, 2, 7):
        parts = batches(trials, jobs)
        assert sorted(trial.key() for part in parts for trial in part) == sorted(trial.key() for trial in trials)
        assert max(len(part) for part in parts) == -(-5 // jobs)
        assert all(len({(trial.problem, trial.method) for trial in part}) == 1 for part in parts)


def test_no_runs_share_a_gpu_on_other_engines_or_with_pictures():
    assert not any(_shares_gpu(trial) for trial in EXPERIMENTS["noise-free"].trials(1, "numba"))
    assert not any(_shares_gpu(trial) for trial in EXPERIMENTS["zebra"].trials(1, "cuda"))


@pytest.mark.usefixtures("kernels")
def test_trials_that_share_a_gpu_give_the_rows_of_trials_alone():
    """The batch decides when an iteration is carried out, and nothing else."""
    problem = PlantedProblem(4, 5, 24, sparsity=2)
    method = dataclasses.replace(ROAD_PAPER, parameters=(("rho", 10.0), ("max_iter", 2), ("tol", 0.0), ("n_init", 1)))
    trials = [Trial("noise-free", "", problem, method, seed, "cuda") for seed in (1, 2)]
    batch, failed = execute_batch(trials, None)
    assert failed is None
    assert [done.result for done in batch] == [execute(trial, None).result for trial in trials]
    assert batch[0].result != batch[1].result


def test_a_failed_run_of_a_batch_is_named_and_the_rows_of_the_others_are_saved(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    fitting = ROAD._fitting

    def fail_once(model, X, **others):
        if model.random_state == 2:
            raise ValueError("no such luck")
        yield from fitting(model, X, **others)

    monkeypatch.setattr(ROAD, "_fitting", fail_once)
    monkeypatch.setattr(runner, "_shares_gpu", lambda trial: True)
    method = dataclasses.replace(ROAD_PAPER, parameters=(("rho", 10.0), ("max_iter", 2), ("tol", 0.0), ("n_init", 1)))
    trials = [Trial("noise-free", "", PlantedProblem(4, 5, 24, sparsity=2), method, seed, "numba") for seed in range(4)]
    told = (
        r"^1 of 4 trials failed: noise-free, , road-paper, seed 2 \(no such luck\); the rows of the others are saved$"
    )
    with pytest.raises(ValueError, match=told):
        run(trials, tmp_path, jobs=1)
    assert sorted(row["settings"]["seed"] for row in read_folder(tmp_path)) == [0, 1, 3]


def test_trials_that_always_fail_do_not_keep_the_others_from_running(tmp_path, monkeypatch):
    """The first has an error, the last gives a number that JSON lacks."""
    trials = tiny.trials(1)
    first, last = trials[0], trials[-1]
    executed = runner.execute

    def failing(trial, data):
        if trial == first:
            raise ValueError("no such luck")
        done = executed(trial, data)
        return dataclasses.replace(done, result={"error": float("inf")}) if trial == last else done

    monkeypatch.setattr(runner, "execute", failing)
    done = []
    with pytest.raises(ValueError, match=r"^2 of 6 trials failed, first tiny, 6-8-2, road-paper, seed 70000 \(no such"):
        run(trials, tmp_path, jobs=1, finished=done.append)
    assert done == trials[1:-1]
    assert pending(trials, tmp_path) == [first, last]
    before = (tmp_path / "tiny.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"^1 of 1 trial failed: tiny, .*gave a number that is not finite: .*inf"):
        run([last], tmp_path, jobs=1)
    assert (tmp_path / "tiny.jsonl").read_bytes() == before
