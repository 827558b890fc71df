"""Jobs: commands of roadict, run one at a time, each in a process whose output is read and that can be cancelled."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.pictures.upscaling import cache_folder
from roadict.progress import json_lines
from roadict.runs.signals import INTERRUPTED
from roadict.studio.commands import Command

State = Literal["waiting", "running", "done", "stopped", "failed", "cancelled"]
MAX_UNFINISHED = 8
"""Running and waiting jobs; more are refused."""
GRACE = 3.0
"""Seconds for a job to end after a signal; an iteration takes less, except for the largest problems."""
_ERROR, _WARNING, _CURVE = "roadict: error: ", "roadict: warning: ", "curve: "
_TABLE = re.compile(r"atoms +hidden error|\d+( +[\d.]+){4}( +chosen)?$")
"""Lines of the table by which the number of atoms is chosen."""


@dataclass
class JobStatus:
    """What a job has reported so far.

    Attributes
    ----------
    verb, stage, text, left : str
        The task, its present stage, that with details, and the time left for all of it.
    share : float
        How much of the whole job is done.
    n_moves : int
        Number of reports of a share above 0.
    runs : list of lists of float
        The objective after every iteration, of every start.
    measures : dict of str to list of float
        Residuals and data error after every iteration of the latest start, by name; NaN where not finite.
    at : (int, int)
        Start and iteration of the last snapshot.
    atoms : array of shape (n_components, n_features), or None
    lines : list of str
        Other output of the command.
    """

    verb: str = ""
    stage: str = ""
    text: str = ""
    left: str = ""
    share: float = 0.0
    n_moves: int = 0
    runs: list[list[float]] = field(default_factory=list)
    measures: dict[str, list[float]] = field(default_factory=dict)
    at: tuple[int, int] = (0, 0)
    atoms: NDArray[np.floating] | None = None
    lines: list[str] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Parse one line of output."""
        event = json_lines.read(line)
        if event is None:
            self.lines.append(line.strip())
        elif "progress" in event:
            told = event["progress"]
            self.verb, self.stage, self.text = told["verb"], told["stage"], told["text"]
            self.left, self.share = told["left"], told["share"]
            self.n_moves += self.share > 0
        else:
            self._read_snapshot(event["snapshot"])

    @property
    def has_result(self) -> bool:
        """Whether there is something to keep.

        The command reports an iteration before it heeds signals at its end, so there must have been a second report.
        The choice of a number of atoms reports whole runs, and no iterations.
        """
        moves = 0 if self.stage.startswith("choosing") else 1
        return sum(map(len, self.runs)) > 1 or self.n_moves > moves

    def _read_snapshot(self, snapshot: dict[str, Any]) -> None:
        at = (snapshot["start"], snapshot["iteration"])
        if at[0] != self.at[0] or at[1] <= self.at[1]:  # another start, or another fit of the same command
            self.runs.append([])
            self.measures = {}
        self.at = at
        self.runs[-1].append(snapshot["objective"])
        for name, value in snapshot.get("measures", {}).items():
            self.measures.setdefault(name, []).append(math.nan if value is None else value)
        self.atoms = snapshot.get("atoms", self.atoms)


class Owner(NamedTuple):
    """Tab and page that show a job and may cancel it."""

    tab: str
    page: str


class Job:
    """A command in a folder, from the queue to its end.

    Parameters
    ----------
    command : Command
    folder : Path
        Holds the inputs and the result.
    owner : Owner
    at_end : callable or None
        Called with the job in its last state, before others learn of its end.
    """

    def __init__(
        self, command: Command, folder: Path, owner: Owner, at_end: Callable[["Job"], None] | None = None
    ) -> None:
        self.command = command
        self.folder = folder
        self.owner = owner
        self.in_view = True
        """Whether its page shows it, and not a past run."""
        self.abandoned = False
        """Whether its page has been closed; another may adopt it."""
        self._at_end = at_end
        self.status = JobStatus()
        self.state: State = "waiting"
        self.stopping = self._signalled = False
        self.seconds: float | None = None
        """How long it ran; None: not known yet, or not kept."""
        self.ended = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    @property
    def result(self) -> Path:
        """The output file of a job that is done, or was stopped."""
        return self.folder / self.command.output

    @property
    def source(self) -> Path:
        """The file that the command works on."""
        return self.folder / self.command.arguments[1]

    @property
    def mask(self) -> Path | None:
        """The mask among the command's arguments."""
        name = self.command.options.get("--mask")
        return None if name is None else self.folder / name

    @property
    def error(self) -> str:
        """Why it failed, in a sentence."""
        errors = [line.removeprefix(_ERROR) for line in self.status.lines if line.startswith(_ERROR)]
        if errors:
            return errors[-1]
        return "The job ended without an error message, as when memory runs out; try less data or a smaller picture"

    @property
    def messages(self) -> list[str]:
        """Output of the command without progress, errors, warnings, what is drawn, and the path of the user's cache."""
        lines = [
            line
            for line in self.status.lines
            if not line.startswith((_ERROR, _WARNING, _CURVE)) and not _TABLE.match(line)
        ]
        with contextlib.suppress(OSError):  # no home folder, and so no cache
            return [line.replace(f"{cache_folder()}{os.sep}", "") for line in lines]
        return lines

    @property
    def warnings(self) -> list[str]:
        """Warnings of the command."""
        return [line.removeprefix(_WARNING) for line in self.status.lines if line.startswith(_WARNING)]

    def run(self) -> None:
        """Run to the end, unless it was cancelled."""
        state: State = "failed"
        try:
            state = self._state_of(self._run_command())
        except Exception as error:  # the page waits for the end, whatever happens
            self.status.lines.append(f"{_ERROR}{error}")
        finally:
            with self._lock:
                if self.state != "cancelled":
                    self.state = state
            self._settle()
            self.ended.set()

    def _settle(self) -> None:
        if self._at_end is not None:
            try:
                self._at_end(self)
            except Exception as error:  # as when the disk is full: the result can still be shown
                self.status.lines.append(f"{_WARNING}this run is not among the past runs: {error}")

    @property
    def can_keep(self) -> bool:
        """Whether ``stop`` leaves a result: it runs, its command does so, and the system has the signal."""
        return self.state == "running" and self.command.keeps and os.name != "nt" and not self.stopping

    def _state_of(self, code: int | None) -> State:
        """State by exit status; Ctrl-C in its terminal ends a job too, before its first iteration with no result."""
        if code in (INTERRUPTED, -signal.SIGINT):
            return "stopped" if self.result.exists() else "cancelled"
        return "done" if code == 0 else "failed"

    def stop(self) -> None:
        """Ask it to end with its best so far, once it has one; cancels a job that waits."""
        with self._lock:
            if self.state == "waiting":
                self.state = "cancelled"
                self.ended.set()
            elif self.can_keep and self._process is not None:
                self.stopping = True
                self._signal()

    def _signal(self) -> None:
        """Send the signal to stop if it is due: once, as a second would discard the result, as one too early would."""
        if self.stopping and self.status.has_result and not self._signalled and self._process is not None:
            self._signalled = True
            self._process.send_signal(signal.SIGINT)

    def _run_command(self) -> int | None:
        """Start the process and read its output; return its exit status, None for a job that was cancelled before."""
        with self._lock:
            if self.state == "cancelled":
                return None
            self.state = "running"
            self._process = subprocess.Popen(
                [sys.executable, "-m", "roadict", *self.command.arguments],
                cwd=self.folder,
                env=os.environ | {json_lines.VARIABLE: "json", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
        begin = time.monotonic()
        with self._process as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.status.read(line)
                with self._lock:
                    self._signal()
        self.seconds = time.monotonic() - begin
        return process.returncode

    def cancel(self) -> None:
        """End it now, without a result; does nothing to a job that has ended."""
        with self._lock:
            if self.state not in ("waiting", "running"):
                return
            self.state = "cancelled"
            process = self._process
        if process is not None:
            _terminate(process, signal.SIGTERM if self.command.keeps else signal.SIGINT)
        self.ended.set()


class JobQueue:
    """Runs jobs one at a time, first in, first out."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="roadict-job")
        self._unfinished: list[Job] = []
        self._closed: set[str] = set()
        self._ended = False
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """Add a job to the queue."""
        with self._lock:
            self._unfinished = [other for other in self._unfinished if not other.ended.is_set()]
            if self._ended:
                raise ValueError("the studio is being stopped; start it again to run more")
            if len(self._unfinished) >= MAX_UNFINISHED:
                raise ValueError(f"{len(self._unfinished)} jobs are waiting already; try again when some are done")
            job.abandoned = job.owner.page in self._closed  # while its inputs were copied
            self._unfinished.append(job)
            self._worker.submit(job.run)

    def ahead(self, job: Job) -> int:
        """Number of jobs ahead of this one."""
        with self._lock:
            before = self._unfinished[: self._unfinished.index(job)] if job in self._unfinished else []
            return sum(not other.ended.is_set() for other in before)

    def cancel(self, owner: Owner | None = None) -> None:
        """Cancel the jobs of an owner; None: all."""
        for job in reversed(self.unfinished(owner)):  # last first, so that no waiting one starts
            job.cancel()

    def stop(self, owner: Owner) -> None:
        """Stop the jobs of an owner, with their best so far."""
        for job in reversed(self.unfinished(owner)):
            job.stop()

    def unfinished(self, owner: Owner | None = None) -> list[Job]:
        """Running and waiting jobs of an owner; None: all."""
        with self._lock:
            return [job for job in self._unfinished if owner in (None, job.owner) and not job.ended.is_set()]

    def within_reach(self, page: str) -> list[Job]:
        """Running and waiting jobs that a page has or may adopt."""
        return [job for job in self.unfinished() if job.abandoned or job.owner.page == page]

    def abandon(self, page: str) -> None:
        """Leave the jobs of a page that was closed to the next page."""
        with self._lock:
            self._closed.add(page)
            for job in self._unfinished:
                job.abandoned |= job.owner.page == page

    def adopt(self, owner: Owner) -> Job | None:
        """Give the first job of that tab whose page was closed to another page; None if there is none.

        A page that was closed meanwhile, as at two reloads in a row, gets none: nobody would see it.
        """
        with self._lock:
            for job in self._unfinished if owner.page not in self._closed else ():
                if job.abandoned and job.owner.tab == owner.tab and not job.ended.is_set():
                    job.owner, job.abandoned, job.in_view = owner, False, True
                    return job
        return None

    def close(self) -> None:
        """Accept no more jobs, and cancel all."""
        with self._lock:
            self._ended = True
        self.cancel()
        self._worker.shutdown()


def _terminate(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """End a process by a signal, and kill it if that fails.

    Ctrl-C lets a command remove partial output, which may lie outside the folder of its job, unless the command keeps
    its best so far: then SIGTERM, after which only that folder has partial output.
    """
    if os.name == "nt":
        process.terminate()
    else:
        process.send_signal(number)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
