"""One job at a time, in order, and ended when asked to."""

import subprocess
import threading
import time

import numpy as np
import pytest

from roadict.studio import jobs
from roadict.studio.commands import Command, picture_command

GUARD = 60


class Slow(jobs.Job):
    """A job that lasts until it is told to end."""

    def __init__(self, folder, owner="me"):
        super().__init__(Command((), "nothing"), folder, owner)
        self.begun, self.may_end = threading.Event(), threading.Event()

    def run(self):
        if self.state == "cancelled":
            return
        self.begun.set()
        assert self.may_end.wait(GUARD)
        self.ended.set()


@pytest.fixture
def bench():
    made = jobs.Bench()
    yield made
    made.close()


def test_jobs_run_one_at_a_time_in_the_order_in_which_they_came(bench, tmp_path):
    first, second, third = (Slow(tmp_path) for _ in range(3))
    for job in (first, second, third):
        bench.submit(job)
    assert first.begun.wait(GUARD)
    assert not second.begun.wait(0.2)
    assert [bench.ahead(job) for job in (first, second, third)] == [0, 1, 2]
    first.may_end.set()
    assert second.begun.wait(GUARD)
    assert [bench.ahead(job) for job in (second, third)] == [0, 1]
    second.may_end.set()
    third.may_end.set()
    assert third.ended.wait(GUARD)


def test_a_waiting_job_that_is_cancelled_never_begins(bench, tmp_path):
    first, mine, other = Slow(tmp_path), Slow(tmp_path, "mine"), Slow(tmp_path, "other")
    for job in (first, mine, other):
        bench.submit(job)
    bench.cancel("mine")
    assert mine.ended.is_set()
    assert bench.ahead(other) == 1
    for job in (first, other):
        job.may_end.set()
    assert other.ended.wait(GUARD)
    assert not mine.begun.is_set()


def test_the_line_does_not_grow_for_ever(bench, tmp_path):
    line = [Slow(tmp_path) for _ in range(jobs.MAX_UNFINISHED)]
    for job in line:
        bench.submit(job)
    with pytest.raises(ValueError, match="8 jobs are waiting already"):
        bench.submit(Slow(tmp_path))
    for job in line:
        job.may_end.set()


def test_a_job_that_fails_tells_the_sentence_of_the_command(tmp_path):
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, "me")
    job.run()
    assert job.state == "failed"
    assert job.problem.endswith("No such file or directory: 'absent.png'")
    job.cancel()
    assert job.state == "failed"


def test_a_job_that_ends_without_a_word_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs.sys, "executable", "false")
    job = jobs.Job(Command((), "nothing"), tmp_path, "me")
    job.run()
    assert job.state == "failed"
    assert "without a word" in job.problem


def test_a_process_that_will_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(jobs, "GRACE", 0.2)
    with subprocess.Popen(["sh", "-c", "trap '' INT; echo; exec sleep 100"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        jobs._end(process)
        assert process.returncode == -9


def test_a_process_that_listens_ends_by_itself():
    with subprocess.Popen(["sleep", "100"]) as process:
        time.sleep(0.2)
        jobs._end(process)
        assert process.returncode == -2


def test_lines_become_progress_curves_and_atoms():
    seen = jobs.Seen()
    for line in (
        "sigma 20 of 255\n",
        '{"progress": {"verb": "denoising", "done": 1, "total": 9, "text": "learning", "left": "soon"}}\n',
        '{"snapshot": {"start": 1, "iteration": 1, "objective": 5.0, "shape": [1, 2], "atoms": "AACAPwAAAEA="}}\n',
        '{"snapshot": {"start": 1, "iteration": 2, "objective": 4.0}}\n',
        '{"snapshot": {"start": 2, "iteration": 1, "objective": 6.0}}\n',
    ):
        seen.take(line)
    assert (seen.verb, seen.done, seen.total, seen.text, seen.left) == ("denoising", 1, 9, "learning", "soon")
    assert seen.runs == [[5.0, 4.0], [6.0]]
    assert np.array_equal(seen.atoms, [[1, 2]])
    assert seen.lines == ["sigma 20 of 255"]
