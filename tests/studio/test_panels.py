"""The panel of a job."""

from pathlib import Path

from roadict.studio import commands, jobs, panels


def test_compiling_before_the_first_step_has_no_steps_to_count():
    job = jobs.Job(commands.Command(("denoise",), "out.png"), Path(), "tab")
    job.state = "running"
    event = '{"progress": {"verb": "a", "done": %d, "total": %d, "text": "compiling", "left": "9 s so far"}}'
    job.status.read(event % (0, 0))
    shown = panels.progress(job, 0)
    assert "<p>compiling · 9 s so far</p>" in shown
    assert "rd-unknown" in shown
    job.status.read(event % (2, 30))
    assert "<p>compiling · 2 of 30 · 9 s so far</p>" in panels.progress(job, 0)
