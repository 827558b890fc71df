"""What the page says of a job, as HTML: a waiting line, progress with curve and atoms, an end."""

import html

from roadict.studio.drawings import atoms_picture, objective_curve
from roadict.studio.jobs import Job, Seen


def idle(title: str, text: str) -> str:
    """Before the first job."""
    return f'<div class="rd-panel rd-idle"><strong>{html.escape(title)}</strong><p>{html.escape(text)}</p></div>'


def preview(address: str, text: str) -> str:
    """The picture that was dropped."""
    caption = f"<figcaption>{html.escape(text)}</figcaption>"
    return f'<figure class="rd-preview"><img src="{address}" alt="The picture that was dropped">{caption}</figure>'


def problem(sentence: str) -> str:
    """What went wrong, and what to do."""
    return _panel("problem", "That did not work", [sentence], role="alert")


def cancelled() -> str:
    """After a job that was cancelled."""
    return _panel("quiet", "Cancelled", ["Nothing was kept, and the machine is free again."])


def progress(job: Job, ahead: int) -> str:
    """A job that waits or runs."""
    seen = job.seen
    if job.state == "waiting":
        others = "One job is" if ahead < 2 else f"{ahead} jobs are"
        return _panel("waiting", "Waiting in the queue", [f"{others} ahead of this one, which starts by itself."])
    if not seen.verb:
        said = job.said or ["The first run on a machine compiles, which takes a while."]
        return _panel("running", "Starting", said, _bar(0, 0))
    # Of rate, time left, and how long compiling took, if it did, the rate tells people little.
    told = [part for part in seen.left.split("  ") if not part.endswith("/s")]
    left = "nearly there" if 0 < seen.total <= seen.done else " · ".join(told)
    steps = " · ".join([seen.text, *([f"{seen.done} of {seen.total}"] if seen.total else []), left])
    return _panel("running", seen.verb.capitalize(), [steps], _bar(seen.done, seen.total) + _drawings(seen))


def done(job: Job, figures: dict[str, str] | None = None) -> str:
    """A job that has ended well, with drawings by their captions; without, its curve and atoms stay."""
    notes = "".join(f'<p class="rd-note">{html.escape(warning, quote=False)}</p>' for warning in job.warnings)
    return _panel("done", "Done", job.said, notes + (_drawings(job.seen) if figures is None else _figures(figures)))


def _figures(drawings: dict[str, str]) -> str:
    drawn = "".join(
        f"<figure>{drawing}<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, drawing in drawings.items()
    )
    return f'<div class="rd-figures">{drawn}</div>'


def _drawings(seen: Seen) -> str:
    if not seen.runs:
        return ""
    start = f", start {len(seen.runs)}" if len(seen.runs) > 1 else ""
    atoms = "Atoms" if seen.atoms is None else f"{len(seen.atoms)} atoms"
    return _figures(
        {f"Objective{start}": objective_curve(seen.runs), f"{atoms}, as they form": atoms_picture(seen.atoms)}
    )


def _panel(kind: str, title: str, lines: list[str], more: str = "", role: str = "status") -> str:
    text = "".join(f"<p>{html.escape(line, quote=False)}</p>" for line in lines)
    return f'<div class="rd-panel rd-{kind}"><div role="{role}"><strong>{title}</strong>{text}</div>{more}</div>'


def _bar(number: int, total: int) -> str:
    share = 100 * number / total if total else 0
    moving = "" if total else " rd-unknown"
    return (
        f'<div class="rd-bar{moving}" role="progressbar" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{share:.0f}"><i style="width: {share:.1f}%"></i></div>'
    )
