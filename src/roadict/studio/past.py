"""Past runs: finished jobs with their files, for a week, also after a restart of the studio."""

import contextlib
import dataclasses
import json
import math
import secrets
import shutil
import threading
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from roadict.drawing.grids import side_of
from roadict.drawing.numbers import number
from roadict.drawing.raster import grey, mosaic, own_scale
from roadict.estimators import load
from roadict.pictures import files
from roadict.studio import inputs
from roadict.studio.commands import Command
from roadict.studio.jobs import Job, JobStatus, Owner
from roadict.studio.methods import METHODS, ROAD
from roadict.wording import plural

MAX_RUNS = 24
MAX_BYTES = 500 * 2**20
"""Of all runs together; the newest one is kept whatever its size."""
_DAY = 24 * 3600.0
MAX_AGE = 7 * _DAY
"""Seconds."""
NOBODY = Owner("", "")
_RECORD, _ARRAYS, _PARTIAL = "roadict-run.json", "roadict-run.npz", ".partial-"
_THUMBNAIL = (112, 84)
_REMOVED = "This run has been removed; runs are kept for a week, as long as there is room"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


@dataclass(frozen=True)
class PastRun:
    """A run as the strip shows it.

    Attributes
    ----------
    id : str
        Name of its folder.
    arguments : tuple of str
        Of its command.
    name : str
        Of the file that it was run on.
    when : float
        End of the run, in seconds since 1970.
    stopped : bool
        Whether it was stopped, with its best so far.
    headline : str
        Its result in a few words.
    thumbnail : str
        A data URI.
    """

    id: str
    arguments: tuple[str, ...]
    name: str
    when: float
    stopped: bool
    headline: str
    thumbnail: str

    @property
    def task(self) -> str:
        """The command's name."""
        return self.arguments[0]


class PastRuns:
    """Folders of jobs, and of finished ones a copy that outlives the studio.

    Parameters
    ----------
    work : Path
        For the folders of jobs, which the page can show files of; deleted with the studio.
    store : Path
        For copies of finished ones. It may be shared by several studios.
    """

    def __init__(self, work: Path, store: Path) -> None:
        self._work = work
        self._store = store
        self._lock = threading.Lock()
        self._expire()

    def new_folder(self) -> Path:
        """Create a folder for a job."""
        folder = self._work / f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        folder.mkdir()
        return folder

    def settle(self, job: Job) -> None:
        """Keep a job that has a result, and remove the folder of any other."""
        if job.state not in ("done", "stopped"):
            shutil.rmtree(job.folder, ignore_errors=True)
            return
        _record(job)
        self._store.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._store / f"{_PARTIAL}{job.folder.name}"
        try:
            shutil.copytree(job.folder, partial)
            partial.rename(self._store / job.folder.name)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._prune(job.folder.name)

    def listed(self) -> list[PastRun]:
        """Runs that can be shown, newest first; those older than a week are deleted."""
        self._expire()
        runs = []
        for folder in self._complete():
            with contextlib.suppress(*_DAMAGED):
                record = json.loads((folder / _RECORD).read_text("utf-8"))
                shown = {field.name: record[field.name] for field in dataclasses.fields(PastRun) if field.name != "id"}
                runs.append(PastRun(folder.name, **(shown | {"arguments": tuple(shown["arguments"])})))
        return sorted(runs, key=lambda run: run.id, reverse=True)

    def open(self, run_id: str) -> Job:
        """Return a past run as the job that it was, with its files in a folder of this studio."""
        if run_id not in {run.id for run in self.listed()}:  # also: no path from outside
            raise ValueError(_REMOVED)
        folder, partial = self._work / run_id, self._work / f"{_PARTIAL}{run_id}"
        try:
            with self._lock:
                if not folder.exists():
                    shutil.copytree(self._store / run_id, partial)
                    partial.rename(folder)
            return _read_job(folder)
        except _DAMAGED as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not (self._store / run_id).exists():  # another studio has just deleted it
                raise ValueError(_REMOVED) from None
            raise ValueError(f"This run cannot be read: {error}; run its command again") from error

    def clear(self) -> None:
        """Delete all past runs."""
        for folder in self._complete():
            self._remove(folder)

    def _folders(self) -> list[Path]:
        return sorted(self._store.iterdir()) if self._store.is_dir() else []

    def _complete(self) -> list[Path]:
        """Folders without those that a studio is still copying."""
        return [folder for folder in self._folders() if not folder.name.startswith(_PARTIAL)]

    def _expire(self) -> None:
        """Delete what is older than a week."""
        oldest = time.time() - MAX_AGE
        for folder in self._folders():
            with contextlib.suppress(FileNotFoundError):  # another studio has deleted it
                if folder.stat().st_mtime < oldest:
                    self._remove(folder)

    def _prune(self, newest: str) -> None:
        """Delete the oldest runs beyond the bounds, by when they began; the one that has just ended is the newest."""
        size = 0
        ordered = sorted(self._complete(), key=lambda each: (each.name == newest, each.name), reverse=True)
        for count, folder in enumerate(ordered):
            with contextlib.suppress(FileNotFoundError):
                size += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            if count and (count >= MAX_RUNS or size > MAX_BYTES):
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self._work / folder.name, ignore_errors=True)


def _record(job: Job) -> None:
    """Write what the files of a job do not say: its command, its output and what the strip shows."""
    status = {field.name: getattr(job.status, field.name) for field in dataclasses.fields(JobStatus)}
    arrays: dict[str, Any] = {name: value for name, value in status.items() if isinstance(value, np.ndarray)}
    headline, thumbnail = _shown(job)
    record = {
        "arguments": job.command.arguments,
        "output": job.command.output,
        "name": job.source.name,
        "when": time.time(),
        "seconds": job.seconds,
        "stopped": job.state == "stopped",
        "headline": headline,
        "thumbnail": thumbnail,
        "status": {name: value for name, value in status.items() if name not in arrays},
    }
    np.savez(job.folder / _ARRAYS, **arrays)
    (job.folder / _RECORD).write_text(json.dumps(record), "utf-8")


def _read_job(folder: Path) -> Job:
    record = json.loads((folder / _RECORD).read_text("utf-8"))
    job = Job(Command(tuple(record["arguments"]), record["output"]), folder, NOBODY)
    with np.load(folder / _ARRAYS) as arrays:
        job.status = JobStatus(**record["status"], **arrays)
    job.seconds = record.get("seconds")  # which earlier releases did not keep
    job.state = "stopped" if record["stopped"] else "done"
    job.ended.set()
    return job


def _shown(job: Job) -> tuple[str, str]:
    """Headline and thumbnail of a finished job."""
    if job.command.task == "learn":
        model = load(job.result)
        atoms = model.components_[np.argsort(-model.atom_usage_, kind="stable")][:64]
        columns = math.ceil(math.sqrt(len(atoms) * 4 / 3))
        values = mosaic(atoms, columns) if side_of(atoms.shape[1]) else own_scale(atoms).T
        image = Image.fromarray(grey(values)).resize(_THUMBNAIL, Image.Resampling.NEAREST)
        method = METHODS[getattr(model, "update", ROAD)]
        headline = f"{method}, {plural(len(model.components_), 'atom')}, error {number(model.error_, 2)}"
        return headline, inputs.thumbnail_uri(image)
    picture = files.read_picture(job.result)
    image = inputs.for_screen(picture)
    image.thumbnail(_THUMBNAIL)
    return f"{picture.shape[1]} × {picture.shape[0]} pixels{_option(job.command)}", inputs.thumbnail_uri(image)


def _option(command: Command) -> str:
    """The option that tells two runs on one picture apart."""
    names = {"--scale": ", {} times", "--sigma": ", noise {}"}
    given = command.options
    return "".join(text.format(given[name]) for name, text in names.items() if name in given)


def when(seconds: float, now: float | None = None) -> str:
    """Time of a run, with the day if it was another one than today."""
    then, today = time.localtime(seconds), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    if then[:3] == time.localtime(time.mktime(today) - _DAY)[:3]:
        return time.strftime("yesterday %H:%M", then)
    return f"{then.tm_mday} {time.strftime('%b %H:%M', then)}"
