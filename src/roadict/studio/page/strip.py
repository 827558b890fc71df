"""The strip of past runs above the tabs: a click shows a run again, two ticks show two side by side."""

from pathlib import Path

import gradio as gr

from roadict.drawing.markup import render
from roadict.studio import panels, versus
from roadict.studio.jobs import JobQueue
from roadict.studio.page.views import PLAIN, QUIET
from roadict.studio.past import PastRuns, when

CSS_FILE = Path(__file__).with_name("strip.css")
_SCRIPT = Path(__file__).with_name("strip.js")


class Strip:
    """Cards of this page's jobs and of past runs, and the comparison of two.

    Parameters
    ----------
    queue : JobQueue
    past : PastRuns
    """

    def __init__(self, queue: JobQueue, past: PastRuns, *, lasting: bool) -> None:
        self._queue = queue
        self._past = past
        self._lasting = lasting
        self.cards = gr.HTML(elem_id="runs", js_on_load=_SCRIPT.read_text("utf-8"), **PLAIN)
        self.versus = gr.HTML(elem_id="versus", **PLAIN)
        self.cards.compare(self._compare, None, self.versus, **QUIET)
        self.cards.clear_all(self._clear, None, [self.cards, self.versus], **QUIET)

    def html(self, page: str) -> str:
        """Cards for a page."""
        jobs = [job for job in self._queue.unfinished() if job.owner.page == page]
        runs = self._past.listed()
        if not (jobs or runs):
            return ""
        times = {run.id: when(run.when) for run in runs}
        return render("studio", "strip.html", jobs=jobs, runs=runs, times=times, lasting=self._lasting)

    def _compare(self, event: gr.EventData) -> str:
        chosen = [str(name) for name in event.runs]
        if len(chosen) != 2:
            return ""
        try:
            return versus.side_by_side(*(self._past.open(name) for name in chosen))
        except (ValueError, OSError) as error:
            return panels.error(str(error))

    def _clear(self, request: gr.Request) -> tuple[str, str]:
        self._past.clear()
        return self.html(page_of(request)), ""


def page_of(request: gr.Request) -> str:
    """What identifies an open page."""
    return str(request.session_hash)
