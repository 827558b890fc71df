"""Jobs run one at a time, in order, and can be cancelled."""

import os
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from roadict import ROAD, load
from roadict.studio import jobs, panels
from roadict.studio.commands import Command, learn_command, picture_command
from roadict.synthetic import planted

GUARD = 60
ME, MINE, OTHER = (jobs.Owner("pictures", page) for page in ("me", "mine", "other"))


class Slow(jobs.Job):
    """A job that lasts until ``may_end`` is set."""

    def __init__(self, folder, owner=ME):
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
    first, mine, other = Slow(tmp_path), Slow(tmp_path, MINE), Slow(tmp_path, OTHER)
    for job in (first, mine, other):
        queue.submit(job)
    queue.cancel(MINE)
    assert mine.ended.is_set()
    assert queue.ahead(other) == 1
    for job in (first, other):
        job.may_end.set()
    assert other.ended.wait(GUARD)
    assert not mine.started.is_set()


def test_a_queue_that_is_being_closed_accepts_no_job(tmp_path, monkeypatch):
    """Not even while a running job takes its time to end."""
    made = jobs.JobQueue()
    late = []

    def cancel(self, owner=None):
        with pytest.raises(ValueError, match="the studio is being stopped"):
            made.submit(jobs.Job(ENDLESS, tmp_path, ME))
        late.append(made.unfinished())

    monkeypatch.setattr(jobs.JobQueue, "cancel", cancel)
    made.close()
    assert late == [[]]


def test_the_length_of_the_queue_is_bounded(queue, tmp_path):
    waiting = [Slow(tmp_path) for _ in range(jobs.MAX_UNFINISHED)]
    for job in waiting:
        queue.submit(job)
    with pytest.raises(ValueError, match="8 jobs are waiting already"):
        queue.submit(Slow(tmp_path))
    for job in waiting:
        job.may_end.set()


def test_a_failed_job_has_the_error_message_of_the_command(tmp_path):
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, ME)
    job.run()
    assert job.state == "failed"
    assert job.error.endswith("absent.png does not exist; check its name and folder")
    job.cancel()
    assert job.state == "failed"


def test_a_job_that_ends_without_an_error_message_is_reported_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs.sys, "executable", "false")
    job = jobs.Job(Command((), "nothing"), tmp_path, ME)
    job.run()
    assert job.state == "failed"
    assert "without an error message" in job.error


def test_a_job_whose_output_cannot_be_read_fails_and_ends(tmp_path, monkeypatch):
    def read(status, line):
        raise ValueError("no such event")

    monkeypatch.setattr(jobs.JobStatus, "read", read)
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, ME)
    job.run()
    assert job.ended.is_set()
    assert (job.state, job.error) == ("failed", "no such event")


def test_a_job_that_cannot_start_fails_and_ends(tmp_path):
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path / "absent", ME)
    job.run()
    assert job.ended.is_set()
    assert job.state == "failed"
    assert "No such file or directory" in job.error


def test_a_process_that_ignores_the_interrupt_is_killed(monkeypatch):
    monkeypatch.setattr(jobs, "GRACE", 0.2)
    with subprocess.Popen(["sh", "-c", "trap '' INT; echo; exec sleep 100"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        jobs._terminate(process, signal.SIGINT)
        assert process.returncode == -9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_gets_a_signal_ends_by_itself(number):
    with subprocess.Popen(["sleep", "100"]) as process:
        jobs._terminate(process, number)
        assert process.returncode == -number


ENDLESS = Command(
    ("learn", "data.npy", "-o", "out.npz", "-k", "8", "--rho", "10", "--tol", "0", "--max-iter", "100000000"), "out.npz"
)


@pytest.fixture(scope="module")
def compiled():
    """Data of a fit whose kernels are in the cache: those that code samples take a minute on a busy machine."""
    data = planted(120, 6, 8, sparsity=2, random_state=0).data
    ROAD(8, rho=10.0, max_iter=2, tol=0.0).fit(data)
    return data


@pytest.fixture
def endless(queue, compiled, tmp_path):
    """A job that learns until somebody stops it."""
    np.save(tmp_path / "data.npy", compiled)
    job = jobs.Job(ENDLESS, tmp_path, ME)
    queue.submit(job)
    return job


def wait_for(condition):
    end = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_stopped_job_keeps_its_best_so_far(queue, endless):
    wait_for(lambda: endless.status.at[1] > 3)
    assert endless.can_keep
    assert "Stopping" not in panels.progress(endless, 0)
    queue.stop("somebody else")
    assert not endless.stopping
    queue.stop(ME)
    assert not endless.can_keep
    queue.stop(ME)  # a second signal would discard it
    assert "Stopping" in panels.progress(endless, 0)
    assert endless.ended.wait(GUARD)
    assert endless.state == "stopped"
    model = load(endless.result)
    assert model.stop_reason_ == "interrupted"
    shown = panels.done(endless)
    assert "<strong>Stopped</strong>" in shown
    assert f"interrupted after {model.n_iter_} iterations" in shown
    assert "rd-done" not in shown


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("stopped", [False, True])
def test_a_cancelled_job_keeps_nothing(queue, endless, stopped, tmp_path):
    """Nor one that was to be kept, if it is still at it."""
    wait_for(lambda: endless.status.at[1] > 3)
    endless.stopping = endless._signalled = stopped
    queue.cancel(ME)
    assert endless.ended.wait(GUARD)
    assert (endless.state, endless._process.returncode) == ("cancelled", -signal.SIGTERM)
    assert [path.name for path in tmp_path.iterdir()] == ["data.npy"]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_job_stopped_before_its_first_iteration_keeps_that(queue, endless):
    wait_for(lambda: endless.can_keep and endless._process is not None)
    assert endless.status.at == (0, 0)
    queue.stop(ME)
    wait_for(lambda: endless.status.at[1] > 0)
    assert endless.ended.wait(GUARD)
    assert endless.state == "stopped"
    assert load(endless.result).n_iter_ > 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_job_stopped_before_its_first_iteration_is_signalled_after_it_and_once(tmp_path):
    """Too early a signal, and a second one, would discard the result."""
    job, sent = jobs.Job(learn_command("data.npy"), tmp_path, ME), []
    job.state, job._process = "running", SimpleNamespace(send_signal=sent.append)
    job.stop()
    assert "Nothing to keep yet: it stops as soon as there is" in panels.progress(job, 0)
    for iteration in (1, 2, 3):
        job.status._read_snapshot({"start": 1, "iteration": iteration, "objective": 1.0})
        job._signal()
        job.stop()
        assert sent == [signal.SIGINT] * (iteration > 1)
    assert "the result with the best so far will be shown" in panels.progress(job, 0)


def test_a_job_that_ctrl_c_ends_is_cancelled_or_stopped(tmp_path):
    """Ctrl-C in the studio's terminal reaches its jobs too; before the first iteration nothing is saved."""
    job = jobs.Job(learn_command("data.npy"), tmp_path, ME)
    assert [job._state_of(code) for code in (130, -signal.SIGINT, 0, 1)] == ["cancelled", "cancelled", "done", "failed"]
    job.result.write_bytes(b"saved")
    assert [job._state_of(code) for code in (130, 0, 1)] == ["stopped", "done", "failed"]


@pytest.mark.parametrize("end", [jobs.Job.stop, jobs.Job.cancel])
def test_a_job_that_is_ended_before_it_runs_does_not_run(tmp_path, end):
    job = jobs.Job(learn_command("data.npy"), tmp_path, ME)
    end(job)
    assert job.ended.is_set()
    job.run()
    assert (job.state, job._process) == ("cancelled", None)


def test_a_waiting_job_that_is_stopped_never_starts(queue, tmp_path):
    first, mine = Slow(tmp_path), Slow(tmp_path, MINE)
    for job in (first, mine):
        queue.submit(job)
    queue.stop(MINE)
    assert mine.state == "cancelled"
    first.may_end.set()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("interrupted: the best so far is in out.npz", "This is the best so far; the whole command may find better."),
        ("interrupted: out.png is made with the dictionary learned so far", "This is the best so far; the whole"),
        ("interrupted: the finished model is in out.npz", "Interrupted: the finished model is in out.npz."),
        ("interrupted; out.npz was written without the stability of its atoms", "without the stability of its atoms."),
    ],
)
def test_a_job_that_was_stopped_when_its_fit_was_done_says_so(tmp_path, error, said):
    job = jobs.Job(learn_command("data.npy"), tmp_path, ME)
    job.state = "stopped"
    job.status.lines = [f"roadict: error: {error}"]
    shown = panels.done(job)
    assert said in shown
    assert ("whole command" in shown) == ("so far" in error)


def test_upscaling_keeps_nothing(tmp_path):
    job = jobs.Job(picture_command("upscale", "in.png"), tmp_path, ME)
    job.state = "running"
    assert not job.can_keep


def test_lines_are_parsed_as_progress_curves_and_atoms():
    status = jobs.JobStatus()
    for line in (
        "sigma 20 of 255\n",
        "{a}.csv: 100 samples\n",
        '{"snapshot": {"start": 1, "iter\n',
        '{"a": 1}\n',
        '{"progress": {"verb": "denoising", "stage": "a", "share": 0.25, "text": "a  b", "left": "soon"}}\n',
        '{"snapshot": {"start": 1, "iteration": 1, "objective": 5.0, "shape": [1, 2], "atoms": "AACAPwAAAEA="}}\n',
        '{"snapshot": {"start": 1, "iteration": 2, "objective": 4.0}}\n',
        '{"snapshot": {"start": 2, "iteration": 1, "objective": 6.0, "measures": {"primal": 0.1, "dual": null}}}\n',
    ):
        status.read(line)
    assert (status.verb, status.stage, status.share) == ("denoising", "a", 0.25)
    assert (status.text, status.left) == ("a  b", "soon")
    assert status.runs == [[5.0, 4.0], [6.0]]
    assert status.measures == {"primal": [0.1], "dual": [pytest.approx(np.nan, nan_ok=True)]}
    assert np.array_equal(status.atoms, [[1, 2]])
    assert status.lines == ["sigma 20 of 255", "{a}.csv: 100 samples", '{"snapshot": {"start": 1, "iter', '{"a": 1}']
