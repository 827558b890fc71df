"""What the page says of a job, as HTML: a waiting line, progress with curve and atoms, an end."""

from functools import partial

from roadict.drawing.markup import render
from roadict.studio.drawings import atoms_picture, objective_curve
from roadict.studio.jobs import Job, Seen

_panel = partial(render, "studio", "panel.html")


def idle(title: str, text: str) -> str:
    """Before the first job."""
    return _panel(kind="idle", title=title, lines=[text])


def dropped(text: str, picture: str = "") -> str:
    """What was dropped, with its picture (a data URI), if it is one."""
    return render("studio", "dropped.html", text=text, picture=picture)


def problem(sentence: str) -> str:
    """What went wrong, and what to do."""
    return _panel(kind="problem", title="That did not work", lines=[sentence], role="alert")


def cancelled() -> str:
    """After a job that was cancelled."""
    return _panel(kind="quiet", title="Cancelled", lines=["Nothing was saved, and the machine is free again."])


def progress(job: Job, ahead: int) -> str:
    """A job that waits or runs."""
    seen = job.seen
    if job.state == "waiting":
        others = "One job is" if ahead < 2 else f"{ahead} jobs are"
        waiting = f"{others} ahead of this one, which starts by itself."
        return _panel(kind="waiting", title="Waiting in the queue", lines=[waiting])
    if not seen.verb:
        said = job.said or ["The first run on a machine compiles, which takes a while."]
        return _panel(kind="running", title="Starting", lines=said, bar=(0, 0))
    # Of rate, time left, and how long compiling took, if it did, the rate tells people little.
    told = [part for part in seen.left.split("  ") if not part.endswith("/s")]
    left = "nearly there" if 0 < seen.total <= seen.done else " · ".join(told)
    steps = " · ".join([seen.text, *([f"{seen.done} of {seen.total}"] if seen.total else []), left])
    bar = seen.done, seen.total
    return _panel(kind="running", title=seen.verb.capitalize(), lines=[steps], bar=bar, figures=_figures(seen))


def done(job: Job, figures: dict[str, str] | None = None) -> str:
    """A job that has ended well, with drawings by their captions; without, its curve and atoms stay."""
    drawn = _figures(job.seen) if figures is None else figures
    return _panel(kind="done", title="Done", lines=job.said, notes=job.warnings, figures=drawn)


def _figures(seen: Seen) -> dict[str, str]:
    if not seen.runs:
        return {}
    start = f", start {len(seen.runs)}" if len(seen.runs) > 1 else ""
    atoms = "Atoms" if seen.atoms is None else f"{len(seen.atoms)} atoms"
    return {f"Objective{start}": objective_curve(seen.runs), f"{atoms}, as they form": atoms_picture(seen.atoms)}
