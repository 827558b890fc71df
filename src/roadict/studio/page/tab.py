"""What both tabs share: layout, and running a job with progress, cancellation and downloads."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import gradio as gr

from roadict.studio import panels
from roadict.studio.commands import Command
from roadict.studio.jobs import Job, JobQueue, Owner
from roadict.studio.naming import as_fields
from roadict.studio.page.strip import Strip, page_of
from roadict.studio.page.views import PLAIN, QUIET, SCRIPT, result_view
from roadict.studio.past import PastRuns
from roadict.wording import path_problem

Update = dict[Any, Any]
MORE = "More options"
PAUSE = 0.3
"""Seconds between two updates of the panel."""
PATIENCE = 2.0
"""Seconds to wait for the job of a page that is just being closed."""


class Tab(ABC):
    """Inputs and buttons on the left; the panel, results and downloads on the right.

    Parameters
    ----------
    queue : JobQueue
    past : PastRuns
        Gives every job its folder, and keeps it.
    strip : Strip
        Shows jobs and past runs.
    samples : Path
        Folder for the samples of the tab.
    """

    name: ClassVar[str]
    """Prefix of its element ids and of the owner of its jobs."""
    run_label: ClassVar[str]
    download_label: ClassVar[str]
    invitation: ClassVar[str]
    """Text of the panel before the first job."""
    uploads: ClassVar[tuple[str, ...]]
    """Names of the fields that hold files."""

    def __init__(self, queue: JobQueue, past: PastRuns, strip: Strip, samples: Path) -> None:
        self._queue = queue
        self._past = past
        self._strip = strip
        self._folder = samples.parent
        # In the user's browser, by the fixed secret also for the next studio. Inside the tab, which the page makes when
        # it is opened, it would be read too late: the page renders it outside.
        self.saved: Any = gr.BrowserState(None, storage_key=f"roadict-{self.name}", secret="roadict", render=False)
        self.restored = gr.State(False)
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
        fields = self.fields
        gr.on(
            [field.change for field in fields.values()],
            lambda *values: self._told(dict(zip(fields, values, strict=True))),
            list(fields.values()),
            self.more,
            trigger_mode="always_last",
            **QUIET,
        )
        gr.on(
            [field.change for field in fields.values()],
            self._save,
            [self.restored, *fields.values()],
            self.saved,
            trigger_mode="always_last",
            **QUIET,
        )

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

    @property
    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Components of the form by name."""

    @abstractmethod
    def settings(self, job: Job) -> dict[str, Any]:
        """Values of fields with which the form gives the command of a job again."""

    @abstractmethod
    def _set_options(self, settings: Mapping[str, Any]) -> list[str]:
        """What is set under "More options", in words; [] if all is at its default."""

    @property
    def form(self) -> list[Any]:
        """Components that filling in the form updates."""
        return [*self.fields.values(), self.more]

    def _add_more_options(self) -> Any:
        self.more = gr.Accordion(MORE, open=False, elem_id=f"{self.name}-more")
        return self.more

    def fill(self, settings: Mapping[str, Any]) -> Update:
        """Updates that put values into the form, and open "More options" if something is set there."""
        more = self._told(settings) | ({"open": True} if self._set_options(settings) else {})
        return {self.fields[name]: gr.update(value=value) for name, value in settings.items()} | {self.more: more}

    def _told(self, settings: Mapping[str, Any]) -> Any:
        """Update that says in the heading of "More options" what is set there: closed, it would act unseen."""
        words = self._set_options(settings)
        return gr.update(label=f"{MORE}: {', '.join(words)}" if words else MORE)

    def _save(self, restored: bool, *values: Any) -> Any:
        """Save the form, but not an empty one before the last one has been restored."""
        return dict(zip(self.fields, values, strict=True)) if restored else gr.skip()

    def restore(self, saved: Any, request: gr.Request) -> Update:
        """Updates that fill the form as it was saved, or with the settings of a job whose page was closed."""
        form = {self.restored: True}
        if self._is_form(saved):
            return form | self.fill(saved | {name: self._file(saved[name]) for name in self.uploads})
        for job in self._queue.within_reach(page_of(request)):
            if job.owner.tab == self.name:
                return form | self.fill(self.settings(job))
        return form

    def _is_form(self, saved: Any) -> bool:
        """Whether a form was saved, and not by another release with other fields."""
        if not isinstance(saved, dict) or saved.keys() != self.fields.keys():
            return False
        return all(self._fits(name, saved[name]) for name in saved if name not in self.uploads)

    def _fits(self, name: str, value: Any) -> bool:
        field = self.fields[name]
        if hasattr(field, "choices"):
            return value in [choice for _, choice in field.choices]
        return isinstance(value, type(field.value))

    def _file(self, path: Any) -> str | None:
        """A saved path if it is a file of this studio: browsers can send any."""
        if not isinstance(path, str):
            return None
        file = Path(path).resolve()
        return str(file) if file.is_relative_to(self._folder.resolve()) and file.is_file() else None

    def _add_buttons(self) -> None:
        with gr.Row(equal_height=True, elem_classes="rd-actions"):
            # Three in a row, also on a phone.
            self.start = gr.Button(
                self.run_label, variant="primary", size="lg", elem_id=f"{self.name}-run", scale=3, min_width=70
            )
            self.keep = gr.Button(
                "Stop and keep", size="lg", visible=False, elem_id=f"{self.name}-keep", scale=2, min_width=110
            )
            self.cancel = gr.Button(
                "Cancel", variant="stop", size="lg", visible=False, elem_id=f"{self.name}-cancel", scale=1, min_width=70
            )
        self.keep.click(self.stop_jobs, queue=False, **QUIET)
        self.cancel.click(self.cancel_jobs, queue=False, **QUIET)

    def _add_panel(self) -> None:
        self.panel = gr.HTML(
            self._idle(),
            elem_id=f"{self.name}-panel",
            js_on_load=SCRIPT,
            **PLAIN,
        )

    def _forget_error(self, shown: str) -> Any:
        """Replace an error by the invitation: its cause has been removed."""
        return self._idle() if panels.is_error(shown) else gr.skip()

    def _idle(self) -> str:
        return panels.idle("Nothing has run yet", self.invitation)

    def _add_downloads(self) -> None:
        """Add the downloads and the command, hidden until a job is done."""
        with gr.Column(visible=False) as self.downloads:
            with gr.Row():
                self.result = gr.DownloadButton(
                    self.download_label, variant="primary", size="md", elem_id=f"{self.name}-result", min_width=150
                )
                self.input = gr.DownloadButton("Download input", size="md", elem_id=f"{self.name}-input", min_width=150)
                self.mask = gr.DownloadButton("Download mask", size="md", elem_id=f"{self.name}-mask", min_width=150)
                self.script = gr.DownloadButton(
                    "Download command", size="md", elem_id=f"{self.name}-script", min_width=150
                )
            self.command = gr.Code(
                label="The command, in the folder of the file",
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
        downloads = {self.downloads, self.result, self.input, self.mask, self.script, self.command}
        return {self.start, self.keep, self.cancel, self.panel, self.view, self.details, self._strip.cards} | downloads

    @abstractmethod
    def _finish(self, job: Job) -> Update:
        """Read the results of a job that is done, and return the updates that show them."""

    def _run_job(self, request: gr.Request, prepare: Callable[[Path], Command]) -> Iterator[Update]:
        """Run a job to its end, and yield updates of the page.

        ``prepare`` copies the inputs to the folder of the job and returns the command; it raises ValueError for bad
        input.
        """
        waiting = panels.idle("One moment", "The job is being prepared.")
        yield {**self._running(True), self.panel: waiting, **self._nothing()}
        folder = None
        try:
            folder = self._past.new_folder()
            job = Job(prepare(folder), folder, self._owner(request), self._past.settle)
            self._queue.submit(job)
        except Exception as error:  # whatever it is, the page must not wait for a job that there is not
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            yield {self.panel: panels.error(_in_words(error)), **self._running(False)}
            return
        yield from self.watch(job)

    def adopt(self, request: gr.Request) -> Job | None:
        """Take over a job whose page was closed or reloaded.

        A page that is reloaded may be back before the server knows that it has gone.
        """
        owner, end = self._owner(request), time.monotonic() + PATIENCE
        while (job := self._queue.adopt(owner)) is None and time.monotonic() < end:
            if not any(other.owner.tab == self.name for other in self._queue.unfinished()):
                break
            time.sleep(PAUSE)
        return job

    def watch(self, job: Job) -> Iterator[Update]:
        """Show the progress of a job, and then its result, unless the page shows a past run meanwhile."""
        page = job.owner.page
        yield {**self._running(True), self._strip.cards: self._strip.html(page)}
        while not job.ended.wait(PAUSE):
            # Buttons too: an update that a busy page has lost is made good by the next one.
            buttons = self._running(True) | {self.keep: gr.update(visible=job.can_keep)}
            yield buttons | (self._or_error(lambda: self._progress(job)) if job.in_view else {})
        end = {**self._running(False), self._strip.cards: self._strip.html(page)}
        yield end | (self.show(job) if job.in_view else {})

    def stop_jobs(self, request: gr.Request) -> None:
        """End the jobs of this tab of a page with their best so far."""
        self._queue.stop(self._owner(request))

    def cancel_jobs(self, request: gr.Request) -> None:
        """Cancel the jobs of this tab of a page."""
        self._queue.cancel(self._owner(request))

    def look_at(self, job: Job, request: gr.Request) -> Update:
        """Show a past run, or this page's job again, which its next progress does; the form gets its settings."""
        for running in self._queue.unfinished(self._owner(request)):
            running.in_view = running is job
        return self.fill(self.settings(job)) | (self.show(job) if job.ended.is_set() else self._nothing())

    def _owner(self, request: gr.Request) -> Owner:
        return Owner(self.name, page_of(request))

    def _running(self, running: bool) -> Update:
        hidden = gr.update(visible=False)  # until the job runs
        return {
            self.start: gr.update(interactive=not running),
            self.keep: hidden,
            self.cancel: gr.update(visible=running),
        }

    def _nothing(self) -> Update:
        """Updates that show no result."""
        hidden = gr.update(visible=False)
        return {self.downloads: hidden, self.view: hidden, self.details: hidden}

    def show(self, job: Job) -> Update:
        """Updates that show how a job ended."""
        if job.state == "cancelled":
            return {self.panel: panels.cancelled()}
        if job.state == "failed":
            return {self.panel: panels.error(as_fields(job.error, job.command))}
        return self._or_error(lambda: self._result(job))

    def _progress(self, job: Job) -> Update:
        return {self.panel: panels.progress(job, self._queue.ahead(job))}

    def _result(self, job: Job) -> Update:
        """Updates that show a result, and offer its files even if it cannot be drawn."""
        script = job.folder / f"{job.result.stem}-command.txt"
        script.write_text(f"{job.command.text()}\n", encoding="utf-8")
        return {
            self.result: gr.update(value=str(job.result)),
            self.input: gr.update(value=str(job.source)),
            self.mask: gr.update(visible=False),
            self.script: gr.update(value=str(script)),
            self.command: job.command.text(),
            **self._or_error(lambda: self._finish(job)),
            self.downloads: gr.update(visible=True),
        }

    def _or_error(self, draw: Callable[[], Update]) -> Update:
        """Updates that draw something, or say that it cannot be drawn: without any the page would stay as it was."""
        try:
            return draw()
        except Exception as error:
            sentence = f"The page cannot show this run ({type(error).__name__}: {error}); its files are not affected"
            return {**self._nothing(), self.panel: panels.error(sentence)}


def _in_words(error: Exception) -> str:
    """Say why a job could not be prepared, without the folders of uploads and jobs."""
    if isinstance(error, OSError):
        return path_problem(Path(error.filename or "The disk").name, error)
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
