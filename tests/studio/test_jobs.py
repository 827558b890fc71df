"""Jobs run one at a time, in order, and can be cancelled."""

import subprocess
import threading
import time

import numpy as np
import pytest

from roadict.studio import jobs
from roadict.studio.commands import Command, picture_command

GUARD = 60


class Slow(jobs.Job):
    """A job that lasts until ``may_end`` is set."""

    def __init__(self, folder, owner="me"):
        super().__init__(Command((), "nothing"), folder, owner)
        self.started, self.may_end = threading.Event(), threading.Event()

    def run(self):
        if self.state == "cancelled":
            return
        self.started.set()
        assert self.may_end.wait(GUARD)
        self.ended.set()


@pytest.fixture
def queue():
    made = jobs.JobQueue()
    yield made
    made.close()


def test_jobs_run_one_at_a_time_in_the_order_of_submission(queue, tmp_path):
    first, second, third = (Slow(tmp_path) for _ in range(3))
    for job in (first, second, third):
        queue.submit(job)
    assert first.started.wait(GUARD)
    assert not second.started.wait(0.2)
    assert [queue.ahead(job) for job in (first, second, third)] == [0, 1, 2]
    first.may_end.set()
    assert second.started.wait(GUARD)
    assert [queue.ahead(job) for job in (second, third)] == [0, 1]
    second.may_end.set()
    third.may_end.set()
    assert third.ended.wait(GUARD)


def test_a_waiting_job_that_is_cancelled_never_starts(queue, tmp_path):
    first, mine, other = Slow(tmp_path), Slow(tmp_path, "mine"), Slow(tmp_path, "other")
    for job in (first, mine, other):
        queue.submit(job)
    queue.cancel("mine")
    assert mine.ended.is_set()
    assert queue.ahead(other) == 1
    for job in (first, other):
        job.may_end.set()
    assert other.ended.wait(GUARD)
    assert not mine.started.is_set()


def test_the_length_of_the_queue_is_bounded(queue, tmp_path):
    waiting = [Slow(tmp_path) for _ in range(jobs.MAX_UNFINISHED)]
    for job in waiting:
        queue.submit(job)
    with pytest.raises(ValueError, match="8 jobs are waiting already"):
        queue.submit(Slow(tmp_path))
    for job in waiting:
        job.may_end.set()


def test_a_failed_job_has_the_error_message_of_the_command(tmp_path):
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, "me")
    job.run()
    assert job.state == "failed"
    assert job.error.endswith("absent.png does not exist; check its name and folder")
    job.cancel()
    assert job.state == "failed"


def test_a_job_that_ends_without_an_error_message_is_reported_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs.sys, "executable", "false")
    job = jobs.Job(Command((), "nothing"), tmp_path, "me")
    job.run()
    assert job.state == "failed"
    assert "without an error message" in job.error


def test_a_job_whose_output_cannot_be_read_fails_and_ends(tmp_path, monkeypatch):
    def read(status, line):
        raise ValueError("no such event")

    monkeypatch.setattr(jobs.JobStatus, "read", read)
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, "me")
    job.run()
    assert job.ended.is_set()
    assert (job.state, job.error) == ("failed", "no such event")


def test_a_job_that_cannot_start_fails_and_ends(tmp_path):
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path / "absent", "me")
    job.run()
    assert job.ended.is_set()
    assert job.state == "failed"
    assert "No such file or directory" in job.error


def test_a_process_that_ignores_the_interrupt_is_killed(monkeypatch):
    monkeypatch.setattr(jobs, "GRACE", 0.2)
    with subprocess.Popen(["sh", "-c", "trap '' INT; echo; exec sleep 100"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        jobs._terminate(process)
        assert process.returncode == -9


def test_an_interrupted_process_ends_by_itself():
    with subprocess.Popen(["sleep", "100"]) as process:
        time.sleep(0.2)
        jobs._terminate(process)
        assert process.returncode == -2


def test_lines_are_parsed_as_progress_curves_and_atoms():
    status = jobs.JobStatus()
    for line in (
        "sigma 20 of 255\n",
        "{a}.csv: 100 samples\n",
        '{"snapshot": {"start": 1, "iter\n',
        '{"a": 1}\n',
        '{"progress": {"verb": "denoising", "done": 1, "total": 9, "text": "learning", "left": "soon"}}\n',
        '{"snapshot": {"start": 1, "iteration": 1, "objective": 5.0, "shape": [1, 2], "atoms": "AACAPwAAAEA="}}\n',
        '{"snapshot": {"start": 1, "iteration": 2, "objective": 4.0}}\n',
        '{"snapshot": {"start": 2, "iteration": 1, "objective": 6.0}}\n',
    ):
        status.read(line)
    assert (status.verb, status.done, status.total, status.text, status.left) == ("denoising", 1, 9, "learning", "soon")
    assert status.runs == [[5.0, 4.0], [6.0]]
    assert np.array_equal(status.atoms, [[1, 2]])
    assert status.lines == ["sigma 20 of 255", "{a}.csv: 100 samples", '{"snapshot": {"start": 1, "iter', '{"a": 1}']
