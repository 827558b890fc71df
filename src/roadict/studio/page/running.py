"""What both tabs share: run a job and tell the page, cancel it, hand over its files."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from roadict.studio import panels
from roadict.studio.commands import Command
from roadict.studio.jobs import Bench, Job

Update = dict[Any, Any]
PAUSE = 0.3
"""Seconds between two looks at a job."""


class Runner:
    """The buttons and the panel of a tab, and the downloads below.

    Parameters
    ----------
    bench : Bench
    folder : Path
        Every job gets a folder in it, for as long as it lasts.
    tab : str
        Name that tells the jobs of this tab from those of the other.
    """

    def __init__(self, bench: Bench, folder: Path, tab: str) -> None:
        self._bench = bench
        self._folder = folder
        self._tab = tab

    def add_buttons(self, label: str) -> None:
        """Place the buttons here."""
        with gr.Row(equal_height=True):
            self.start = gr.Button(label, variant="primary", size="lg", elem_id=f"{self._tab}-run", scale=3)
            self.stop = gr.Button(
                "Cancel", variant="stop", size="lg", visible=False, elem_id=f"{self._tab}-cancel", scale=1
            )
        self.stop.click(self._cancel, queue=False, show_progress="hidden", api_visibility="private")

    def add_panel(self, text: str) -> None:
        """Place the panel here."""
        self.panel = gr.HTML(
            panels.idle("Nothing has run yet", text),
            apply_default_css=False,
            elem_classes="rd-html",
            elem_id=f"{self._tab}-panel",
        )

    def add_downloads(self, label: str) -> None:
        """Place the downloads and the command here; they show when there is something."""
        with gr.Column(visible=False) as self.downloads:
            with gr.Row():
                self.result = gr.DownloadButton(
                    label, variant="primary", size="md", elem_id=f"{self._tab}-result", min_width=150
                )
                self.mask = gr.DownloadButton("Download mask", size="md", elem_id=f"{self._tab}-mask", min_width=150)
                self.script = gr.DownloadButton(
                    "Download command", size="md", elem_id=f"{self._tab}-script", min_width=150
                )
            self.command = gr.Code(
                label="The same on the command line, where the file is",
                buttons=["copy"],
                interactive=False,
                lines=1,
                wrap_lines=True,
                show_line_numbers=False,
                elem_id=f"{self._tab}-command",
            )

    @property
    def outputs(self) -> set[Any]:
        """What a run changes."""
        return {self.start, self.stop, self.panel, self.downloads, self.result, self.mask, self.script, self.command}

    def run(
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
        """End the jobs of a page that was closed."""
        self._bench.cancel(self._owner(request))

    def _cancel(self, request: gr.Request) -> None:
        self._bench.cancel(self._owner(request))

    def _owner(self, request: gr.Request) -> str:
        return f"{self._tab} {request.session_hash}"

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
