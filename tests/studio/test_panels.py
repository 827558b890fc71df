"""The panel of a job."""

import json
from pathlib import Path

from roadict.studio import commands, jobs, panels


def shown(share, text, left):
    job = jobs.Job(commands.Command(("denoise",), "out.png"), Path(), "tab")
    job.state = "running"
    job.status.read(json.dumps({"progress": {"verb": "a", "stage": "b", "share": share, "text": text, "left": left}}))
    return panels.progress(job, 0)


def test_a_cancelled_job_that_still_runs_says_so(tmp_path):
    job = jobs.Job(commands.learn_command("data.npy"), tmp_path, "me")
    job.state = "running"
    assert "Cancelling" not in panels.progress(job, 0)
    job.state = "cancelled"
    assert "Cancelling" in panels.progress(job, 0)


def test_compiling_before_the_first_step_has_no_share_to_show():
    panel = shown(0.0, "compiling kernels, first run only: 3 of 7", "about 8 s left to compile")
    assert "<p>0 % · about 8 s left to compile · compiling kernels, first run only: 3 of 7</p>" in panel
    assert "rd-unknown" in panel


def test_share_and_time_left_are_of_the_whole_job():
    panel = shown(0.429, "search 2 of 4  iteration 9", "about 2 min left")
    assert "<p>42 % · about 2 min left · search 2 of 4 · iteration 9</p>" in panel
    assert 'aria-valuenow="43"' in panel
    assert "width: 42.9%" in panel
    assert "rd-unknown" not in panel
