"""Panels that show the state of a job, as HTML: waiting, progress with curve and atoms, end."""

from functools import partial

from roadict.drawing.markup import render
from roadict.studio.drawings import atoms_picture, objective_curve
from roadict.studio.jobs import Job, JobStatus

_panel = partial(render, "studio", "panel.html")


def idle(title: str, text: str) -> str:
    """Before the first job."""
    return _panel(kind="idle", title=title, lines=[text])


def dropped(text: str, picture: str = "") -> str:
    """A description of the upload, with a preview (a data URI) of a picture."""
    return render("studio", "dropped.html", text=text, picture=picture)


def error(sentence: str) -> str:
    """An error and its remedy."""
    return _panel(kind="problem", title="That did not work", lines=[sentence], role="alert")


def cancelled() -> str:
    """After a job that was cancelled."""
    return _panel(kind="quiet", title="Cancelled", lines=["Nothing was saved."])


def progress(job: Job, ahead: int) -> str:
    """A waiting or running job."""
    status = job.status
    if job.state == "waiting":
        others = "One job is" if ahead < 2 else f"{ahead} jobs are"
        waiting = f"{others} ahead of this one, which starts by itself."
        return _panel(kind="waiting", title="Waiting in the queue", lines=[waiting])
    if not status.verb:
        messages = job.messages or ["The first run on a machine compiles, which takes a while."]
        return _panel(kind="running", title="Starting", lines=messages, share=None)
    steps = [f"{int(100 * status.share)} %", status.left, *status.text.split("  ")]
    line = " · ".join(step for step in steps if step)
    notes = ["Stopping; the result with the best so far will be shown."] if job.stopping else []
    return _panel(
        kind="running",
        title=status.verb.capitalize(),
        lines=[line],
        share=status.share or None,
        notes=notes,
        figures=_figures(status),
    )


def done(job: Job, figures: dict[str, str] | None = None) -> str:
    """A finished or stopped job with drawings by their captions; by default its curve and atoms."""
    drawn = _figures(job.status) if figures is None else figures
    if job.state == "stopped":
        lines = ["This is the best so far; the whole command may find better.", *job.messages]
        return _panel(kind="stopped", title="Stopped", lines=lines, notes=job.warnings, figures=drawn)
    return _panel(kind="done", title="Done", lines=job.messages, notes=job.warnings, figures=drawn)


def _figures(status: JobStatus) -> dict[str, str]:
    if not status.runs:
        return {}
    start = f", start {len(status.runs)}" if len(status.runs) > 1 else ""
    atoms = "Atoms" if status.atoms is None else f"{len(status.atoms)} atoms"
    return {f"Objective{start}": objective_curve(status.runs), f"{atoms}, as they form": atoms_picture(status.atoms)}
