"""Panels that show the state of a job, as HTML: waiting, progress with curve and atoms, end."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from roadict.drawing.markup import render
from roadict.drawing.numbers import without_e
from roadict.studio.drawings import atoms_picture, objective_curve, residual_curves
from roadict.studio.jobs import Job
from roadict.wording import plural

TOLERANCE = 1e-4
"""That of all fits of the studio, whose commands leave it at its default."""
_FAILED = "That did not work"
_panel = partial(render, "studio", "panel.html")


def idle(title: str, text: str) -> str:
    """Before the first job."""
    return _panel(kind="idle", title=title, lines=[text])


def dropped(text: str, picture: str = "") -> str:
    """A description of the upload, with a preview (a data URI) of a picture."""
    return render("studio", "dropped.html", text=text, picture=picture)


def error(sentence: str) -> str:
    """An error and its remedy."""
    return _panel(kind="problem", title=_FAILED, lines=[sentence], role="alert")


def is_error(panel: str) -> bool:
    """Whether a panel is one of ``error``."""
    return _FAILED in panel


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
    notes = []
    if job.state == "cancelled":
        notes = ["Cancelling."]
    elif job.stopping and status.has_result:
        coded = "" if job.command.task == "learn" else "the patches are still coded, which may take a while; "
        notes = [f"Stopping; {coded}the result with the best so far will be shown."]
    elif job.stopping:
        notes = ["Nothing to keep yet: it stops as soon as there is. Cancel ends it now."]
    if not status.verb:
        return _panel(kind="running", title="Starting", lines=job.messages, notes=notes, share=None)
    steps = [f"{int(100 * status.share)} %", status.left, *status.text.split("  ")]
    line = without_e(" · ".join(step for step in steps if step))
    return _panel(
        kind="running",
        title=status.verb.capitalize(),
        lines=[line],
        share=status.share or None,
        notes=notes,
        figures=_figures(job),
    )


def done(
    job: Job,
    kind: str = "done",
    title: str = "Done",
    lines: Sequence[str] | None = None,
    notes: Sequence[str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> str:
    """A finished or stopped job: kind and title of the panel, messages and warnings (by default its own), and facts."""
    lines = [without_e(line) for line in (job.messages if lines is None else lines)]
    notes = [without_e(note) for note in (job.warnings if notes is None else notes)]
    if job.state == "stopped":
        kind, title = "stopped", "Stopped"
        text = "This is the best so far; the whole command may find better."
        if job.error.startswith("interrupted") and "so far" not in job.error:  # the fit was done
            text = f"Interrupted{job.error.removeprefix('interrupted')}."
        lines = [text, *lines]
    return _panel(kind=kind, title=title, lines=lines, notes=notes, facts=facts or {})


def curve_name(measure: str) -> str:
    """Name of a measure in charts.

    Examples
    --------
    >>> curve_name("code_change"), curve_name("error")
    ('code change', 'data error')
    """
    return "data error" if measure == "error" else measure.replace("_", " ")


def bound_of(name: str, tol: float) -> float:
    """Return the tolerance of a residual: ten times as large for those of descents."""
    return 10 * tol if name in ("stationarity", "change") else tol


def residual_caption(residuals: Sequence[str]) -> str:
    """Caption of the chart of residuals."""
    if "primal" in residuals:
        return "Residuals: they fall to zero as the copies of the codes agree."
    if "code_change" in residuals:
        return "Change of codes and atoms in an iteration, relative."
    return "Distance from a stationary point."


def objective_caption(residuals: Sequence[str], start: int = 1) -> str:
    """Caption of the chart of the objective, which rises where a run of ADMM starts infeasible."""
    name = f"Objective, start {start}." if start > 1 else "Objective."
    if "primal" not in residuals:
        return name
    return f"{name} It may rise: ADMM starts infeasible, where codes do not reproduce the data yet."


def _figures(job: Job) -> dict[str, str]:
    """Charts of a job that runs."""
    status = job.status
    if not status.runs:
        return {}
    atoms = "Atoms" if status.atoms is None else plural(len(status.atoms), "atom")
    # Copies: the thread that reads the output goes on appending.
    runs, measures = [list(run) for run in status.runs], dict(status.measures)
    curves = {curve_name(name): np.array(values) for name, values in measures.items()}
    residuals = [name for name in measures if name != "error"]
    learns = job.command.arguments[:1] == ("learn",)
    tolerance = bound_of(residuals[-1], TOLERANCE) if learns and residuals else None
    drawn = {residual_caption(residuals): residual_curves(curves, (), tolerance)} if curves else {}
    return drawn | {
        objective_caption(residuals, len(runs)): objective_curve(runs),
        f"{atoms}, as they form.": atoms_picture(status.atoms),
    }
