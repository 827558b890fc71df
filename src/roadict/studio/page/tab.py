"""What both tabs share: their layout, and running a job: tell the page, cancel it, hand over its files."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import gradio as gr

from roadict.studio import panels
from roadict.studio.commands import Command
from roadict.studio.jobs import Bench, Job

Update = dict[Any, Any]
PAUSE = 0.3
"""Seconds between two looks at a job."""
PLAIN: dict[str, Any] = {"apply_default_css": False, "elem_classes": "rd-html"}
"""For HTML that our style sheet alone dresses."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""For events: no spinner over what changes, and no name in Gradio's interface for programs."""


class Tab(ABC):
    """Inputs and buttons on the left; the panel, results and downloads on the right.

    Parameters
    ----------
    bench : Bench
    jobs : Path
        Every job gets a folder in it, for as long as it lasts.
    samples : Path
        Folder for the samples of the tab.
    """

    name: ClassVar[str]
    """Begins the names of its elements, and tells its jobs from those of the other tab."""
    run_label: ClassVar[str]
    download_label: ClassVar[str]
    invitation: ClassVar[str]
    """What the panel says before the first job."""

    def __init__(self, bench: Bench, jobs: Path, samples: Path) -> None:
        self._bench = bench
        self._folder = jobs
        with gr.Row(elem_classes="rd-columns"):
            with gr.Column(scale=5, min_width=320):
                self._add_inputs(samples)
                self._add_buttons()
            with gr.Column(scale=7, min_width=320):
                self._add_panel()
                self._add_results()
                self._add_downloads()
        self._connect()

    @abstractmethod
    def _add_inputs(self, samples: Path) -> None:
        """Place what people drop and choose."""

    def _add_sample_label(self) -> None:
        gr.HTML('<p class="rd-label">Or try a sample</p>', **PLAIN)

    def _add_results(self) -> None:  # noqa: B027 (a tab may show nothing more)
        """Place what a job shows besides the panel."""

    @abstractmethod
    def _connect(self) -> None:
        """Say what happens at which click."""

    def _add_buttons(self) -> None:
        with gr.Row(equal_height=True):
            self.start = gr.Button(self.run_label, variant="primary", size="lg", elem_id=f"{self.name}-run", scale=3)
            self.stop = gr.Button(
                "Cancel", variant="stop", size="lg", visible=False, elem_id=f"{self.name}-cancel", scale=1
            )
        self.stop.click(self.leave, queue=False, **QUIET)

    def _add_panel(self) -> None:
        self.panel = gr.HTML(
            panels.idle("Nothing has run yet", self.invitation),
            elem_id=f"{self.name}-panel",
            **PLAIN,
        )

    def _add_downloads(self) -> None:
        """Place the downloads and the command; they show when there is something."""
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
                label="The same on the command line, where the file is",
                buttons=["copy"],
                interactive=False,
                lines=1,
                wrap_lines=True,
                show_line_numbers=False,
                elem_id=f"{self.name}-command",
            )

    @property
    def outputs(self) -> set[Any]:
        """What a run changes."""
        return {self.start, self.stop, self.panel, self.downloads, self.result, self.mask, self.script, self.command}

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
            Tells whose job it is.
        prepare : callable
            Puts the inputs in the folder of the job and returns the command; raises ValueError for what cannot be.
        finish : callable
            Reads the results of a job that is done, and returns what to show of them.

        Yields
        ------
        dict
            Updates of the page.
        """
        waiting = panels.idle("One moment", "The job is being prepared.")
        yield {**self._running(True), self.panel: waiting, self.downloads: gr.update(visible=False)}
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as name:
                job = Job(prepare(Path(name)), Path(name), self._owner(request))
                self._bench.submit(job)
                while not job.ended.wait(PAUSE):
                    yield {self.panel: panels.progress(job, self._bench.ahead(job))}
                yield {**self._ending(job, finish), **self._running(False)}
        except (ValueError, OSError) as error:
            yield {self.panel: panels.problem(str(error)), **self._running(False)}

    def leave(self, request: gr.Request) -> None:
        """End the jobs of a page: it was closed, or its reader has changed their mind."""
        self._bench.cancel(self._owner(request))

    def _owner(self, request: gr.Request) -> str:
        return f"{self.name} {request.session_hash}"

    def _running(self, running: bool) -> Update:
        return {self.start: gr.update(interactive=not running), self.stop: gr.update(visible=running)}

    def _ending(self, job: Job, finish: Callable[[Job], Update]) -> Update:
        if job.state == "cancelled":
            return {self.panel: panels.cancelled()}
        if job.state == "failed":
            return {self.panel: panels.problem(job.problem)}
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
