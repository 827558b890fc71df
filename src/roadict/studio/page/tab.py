"""What both tabs share: layout, and running a job with progress, cancellation and downloads."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import gradio as gr

from roadict.studio import panels
from roadict.studio.commands import Command
from roadict.studio.jobs import Job, JobQueue
from roadict.studio.page.views import PLAIN, SCRIPT, result_view

Update = dict[Any, Any]
PAUSE = 0.3
"""Seconds between two updates of the panel."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""For events: no spinner over their outputs, and no name in Gradio's API."""


class Tab(ABC):
    """Inputs and buttons on the left; the panel, results and downloads on the right.

    Parameters
    ----------
    queue : JobQueue
    jobs : Path
        Every job gets a folder in it, deleted when it ends.
    samples : Path
        Folder for the samples of the tab.
    """

    name: ClassVar[str]
    """Prefix of its element ids and of the owner of its jobs."""
    run_label: ClassVar[str]
    download_label: ClassVar[str]
    invitation: ClassVar[str]
    """Text of the panel before the first job."""

    def __init__(self, queue: JobQueue, jobs: Path, samples: Path) -> None:
        self._queue = queue
        self._folder = jobs
        with gr.Row(elem_classes="rd-columns"):
            with gr.Column(scale=5, min_width=320):
                self._add_inputs(samples)
                self._add_buttons()
            with gr.Column(scale=7, min_width=320):
                self._add_panel()
                self._add_results()
                self._add_downloads()
                self.details = result_view(f"{self.name}-details")
        self._connect()

    @abstractmethod
    def _add_inputs(self, samples: Path) -> None:
        """Add the uploads and options."""

    def _add_sample_label(self) -> None:
        gr.HTML('<p class="rd-label">Or try a sample</p>', **PLAIN)

    def _add_results(self) -> None:
        """Add what is looked at first of a result."""
        self.view = result_view(f"{self.name}-view")

    @abstractmethod
    def _connect(self) -> None:
        """Connect events to their handlers."""

    def _add_buttons(self) -> None:
        with gr.Row(equal_height=True):
            self.start = gr.Button(self.run_label, variant="primary", size="lg", elem_id=f"{self.name}-run", scale=3)
            self.keep = gr.Button(
                "Stop and keep", size="lg", visible=False, elem_id=f"{self.name}-keep", scale=2, min_width=140
            )
            self.stop = gr.Button(
                "Cancel", variant="stop", size="lg", visible=False, elem_id=f"{self.name}-cancel", scale=1
            )
        self.keep.click(self.stop_jobs, queue=False, **QUIET)
        self.stop.click(self.cancel_jobs, queue=False, **QUIET)

    def _add_panel(self) -> None:
        self.panel = gr.HTML(
            panels.idle("Nothing has run yet", self.invitation),
            elem_id=f"{self.name}-panel",
            js_on_load=SCRIPT,
            **PLAIN,
        )

    def _add_downloads(self) -> None:
        """Add the downloads and the command, hidden until a job is done."""
        with gr.Column(visible=False) as self.downloads:
            with gr.Row():
                self.result = gr.DownloadButton(
                    self.download_label, variant="primary", size="md", elem_id=f"{self.name}-result", min_width=150
                )
                self.mask = gr.DownloadButton("Download mask", size="md", elem_id=f"{self.name}-mask", min_width=150)
                self.script = gr.DownloadButton(
                    "Download command", size="md", elem_id=f"{self.name}-script", min_width=150
                )
            self.command = gr.Code(
                label="The same on the command line, in the folder of the file",
                buttons=["copy"],
                interactive=False,
                lines=1,
                wrap_lines=True,
                show_line_numbers=False,
                elem_id=f"{self.name}-command",
            )

    @property
    def outputs(self) -> set[Any]:
        """Components that a run updates."""
        downloads = {self.downloads, self.result, self.mask, self.script, self.command}
        return {self.start, self.keep, self.stop, self.panel, self.view, self.details} | downloads

    def _run_job(
        self,
        request: gr.Request,
        prepare: Callable[[Path], Command],
        finish: Callable[[Job], Update],
    ) -> Iterator[Update]:
        """Run a job to its end.

        Parameters
        ----------
        request : gradio.Request
            Identifies the page.
        prepare : callable
            Copies the inputs to the folder of the job and returns the command; raises ValueError for bad input.
        finish : callable
            Reads the results of a job that is done, and returns the updates that show them.

        Yields
        ------
        dict
            Updates of the page.
        """
        waiting = panels.idle("One moment", "The job is being prepared.")
        yield {**self._running(True), self.panel: waiting, **self._nothing()}
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as name:
                job = Job(prepare(Path(name)), Path(name), self._owner(request))
                self._queue.submit(job)
                while not job.ended.wait(PAUSE):
                    keep = gr.update(visible=job.can_keep)
                    yield {self.panel: panels.progress(job, self._queue.ahead(job)), self.keep: keep}
                yield {**self._ending(job, finish), **self._running(False)}
        except (ValueError, OSError) as error:
            yield {self.panel: panels.error(str(error)), **self._running(False)}

    def stop_jobs(self, request: gr.Request) -> None:
        """End the jobs of this tab of a page with their best so far."""
        self._queue.stop(self._owner(request))

    def cancel_jobs(self, request: gr.Request) -> None:
        """Cancel the jobs of this tab of a page, at the user's request or because the page was closed."""
        self._queue.cancel(self._owner(request))

    def _owner(self, request: gr.Request) -> str:
        return f"{self.name} {request.session_hash}"

    def _running(self, running: bool) -> Update:
        hidden = gr.update(visible=False)  # until the job runs
        return {
            self.start: gr.update(interactive=not running),
            self.keep: hidden,
            self.stop: gr.update(visible=running),
        }

    def _nothing(self) -> Update:
        """Show no result."""
        hidden = gr.update(visible=False)
        return {self.downloads: hidden, self.view: hidden, self.details: hidden}

    def _ending(self, job: Job, finish: Callable[[Job], Update]) -> Update:
        if job.state == "cancelled":
            return {self.panel: panels.cancelled()}
        if job.state == "failed":
            return {self.panel: panels.error(job.error)}
        script = job.folder / f"{job.result.stem}-command.txt"
        script.write_text(f"{job.command.text()}\n", encoding="utf-8")
        return {
            self.downloads: gr.update(visible=True),
            self.result: gr.update(value=str(job.result)),
            self.mask: gr.update(visible=False),
            self.script: gr.update(value=str(script)),
            self.command: job.command.text(),
            **finish(job),
        }
