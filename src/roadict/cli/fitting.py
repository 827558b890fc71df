"""A fit with a progress bar."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadict.cli.console import progress_bar, showing_warnings, snapshot_callback

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roadict.estimators import ROAD, ROADCV, AlternatingDictionaryLearning

    Learned = ROAD | ROADCV | AlternatingDictionaryLearning


def fit_with_progress(
    model: "Learned",
    X: "NDArray[Any]",
    quiet: bool,
    heading: str,
    span: tuple[float, float] = (0.0, 1.0),
    file: Path | None = None,
) -> bool:
    """Fit a model with a progress bar; ``span``: the part of the whole command that the fit is.

    ``file`` is where the data are from, if they are, and named in warnings.

    The heading is printed at the first iteration, or the first run that chooses the number of atoms: by then data and
    options have been checked. A fit that resumes begins with the share that its checkpoint has.

    Returns
    -------
    bool
        Whether all rounds that look for the noise level have ended; False also if there were none.
    """
    from roadict.progress.output import say
    from roadict.progress.remaining import RECENT, TimeLeft
    from roadict.progress.stages import FINE_STEPS, ResumedShare
    from roadict.progress.terminal import run_text

    job: ResumedShare = getattr(model.checkpoint, "share", None) or ResumedShare()
    headings = [] if quiet else [heading]
    found, stage = False, ""
    time_left = TimeLeft() if hasattr(model, "n_splits") else TimeLeft(RECENT)
    with showing_warnings(file=file), progress_bar(quiet, "learning", time_left, span, job.done) as advance:
        callback = snapshot_callback(quiet)

        def choosing(done: int, total: int, text: str) -> None:
            if headings:
                say(headings.pop())
            advance(done, total, f"choosing the number of atoms  {text}")

        if hasattr(model, "n_splits"):
            model._progress = choosing
        for index, snapshot in enumerate(model.iter_fit(X)):
            if headings:
                say(headings.pop())
            if index == 0 and snapshot.iteration > 1 and not quiet:
                say(f"resumed after iteration {snapshot.iteration - 1}")
            if callback is not None:
                callback(snapshot)
            advance(round(FINE_STEPS * job.follow(snapshot.share)), FINE_STEPS, run_text(snapshot))
            if stage == "noise" and snapshot.stage != "noise":
                found = True
            stage = snapshot.stage
    return found
