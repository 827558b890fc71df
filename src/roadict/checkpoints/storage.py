"""Checkpoint files: the arrays of a run on disk, written atomically, one part per rank.

Checkpoint n consists of ``checkpoint-n.shared.bin``, one ``checkpoint-n.rank-r.bin`` per rank, and the manifest
``checkpoint-n.json``, written last: it describes the problem and holds a SHA-256 of every file and of its own content.
Files hold plain numbers, one array after the other, at offsets given in the manifest; nothing is ever unpickled.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.files.atomic import atomic_write
from roadict.ranks.collectives import allgather_json, offset
from roadict.ranks.comm import Comm

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]

FORMAT = "roadict-checkpoint"
VERSION = 3
N_RETAINED = 2
"""Checkpoints retained: a failing disk may have damaged the last one."""
BLOCK_BYTES = 1 << 24
FILE_NAME = re.compile(r"checkpoint-([0-9]{6,})\.(json|shared\.bin|rank-[0-9]+\.bin)")
"""Files of checkpoints; all others in the folder belong to the user."""
FINISHED_FILE = ".roadict-finished"
"""File with the number of the last checkpoint of a fit that has returned its result."""


class CheckpointError(ValueError):
    """A checkpoint cannot be used."""


class DamagedError(CheckpointError):
    """A checkpoint is incomplete, or mixes files of several; an older one may be usable."""


@dataclass(frozen=True)
class LoadedCheckpoint:
    """The content of a checkpoint for one rank.

    Attributes
    ----------
    name : str
        Path of its manifest.
    metadata : dict
        As passed to ``write``.
    shared : dict of str to array
    parts : list of (int, dict of str to array)
        Rows of the local arrays, and the index of the first among this rank's rows; memory-mapped.
    """

    name: str
    metadata: Metadata
    shared: Arrays
    parts: list[tuple[int, Arrays]]


def write(
    folder: Path,
    number: int,
    problem: Metadata,
    metadata: Metadata,
    shared: Arrays,
    local: Arrays,
    comm: Comm,
    damaged: Collection[int] = (),
) -> str:
    """Write a checkpoint and remove all but the last two intact ones; returns "" or the error, on every rank.

    Parameters
    ----------
    folder : Path
        Accessible to all ranks.
    number : int
        Greater than those of all checkpoints in the folder.
    problem : dict
        What a run must have in common with this one to resume from it.
    metadata : dict
        From rank 0; both dictionaries must be JSON-serializable.
    shared : dict of str to array
        The same on every rank; rank 0 writes them.
    local : dict of str to array
        With as many rows as this rank has samples.
    comm : Comm
    damaged : collection of int
        Numbers of damaged checkpoints.
    """
    stem = f"checkpoint-{number:06d}"
    own = [(f"{stem}.rank-{comm.rank}.bin", local)] + [(f"{stem}.shared.bin", shared)] * (comm.rank == 0)
    outcome: Any = None
    try:
        outcome = [_write_arrays(folder / name, arrays) for name, arrays in own]
    except OSError as failure:
        outcome = _reason(folder, failure)
    outcomes = allgather_json(comm, outcome)
    error = next((text for text in outcomes if isinstance(text, str)), "")
    if comm.rank == 0 and not error:
        content = {
            "problem": problem,
            "facts": metadata,
            "ranks": [files[0] for files in outcomes],
            "shared": outcomes[0][1],
        }
        try:
            with atomic_write(folder / f"{stem}.json") as file:
                head = {"format": FORMAT, "version": VERSION, "sha256": _digest(content)}
                file.write(json.dumps(head | {"content": content}, indent=1).encode())
        except OSError as failure:
            error = _reason(folder, failure)
    error = allgather_json(comm, error)[0]
    if error:
        for name, _ in own:
            _unlink(folder / name)
    elif comm.rank == 0:
        _prune(folder, damaged)
    return str(error)


def _prune(folder: Path, damaged: Collection[int]) -> None:
    present = numbers(folder)
    retained = [number for number in present if number not in damaged][-N_RETAINED:]
    remove(folder, [number for number in present if number not in retained])


def numbers(folder: Path) -> list[int]:
    """Return the sorted numbers of all checkpoints with a manifest."""
    names = [FILE_NAME.fullmatch(path.name) for path in folder.glob("checkpoint-*.json")]
    return sorted(int(name[1]) for name in names if name)


def remove(folder: Path, unwanted: list[int]) -> None:
    """Remove checkpoints, manifests first: files without a manifest are never read."""
    for number in unwanted:
        _unlink(folder / f"checkpoint-{number:06d}.json")
        for path in folder.glob(f"checkpoint-{number:06d}.*.bin"):
            _unlink(path)


def clear(folder: Path) -> None:
    """Remove all checkpoints, once the result is saved elsewhere."""
    remove(folder, numbers(folder))
    remove_leftovers(folder)
    _unlink(folder / FINISHED_FILE)


def mark_finished(folder: Path) -> None:
    """Note that the fit has returned its result."""
    present = numbers(folder)
    with contextlib.suppress(OSError):
        if present:
            with atomic_write(folder / FINISHED_FILE) as file:
                file.write(str(present[-1]).encode())


def is_finished(folder: Path) -> bool:
    """Whether the fit that wrote the checkpoints has returned its result."""
    try:
        return (folder / FINISHED_FILE).read_bytes() == str(max(numbers(folder), default=None)).encode()
    except OSError:
        return False


def saved_share(folder: Path) -> float:
    """Return the share of the fit that was done at the last checkpoint; 0 if there is none, or none that tells."""
    try:
        path = folder / f"checkpoint-{numbers(folder)[-1]:06d}.json"
        return min(1.0, max(0.0, float(json.loads(path.read_bytes())["content"]["facts"]["share"])))
    except (IndexError, KeyError, OSError, TypeError, ValueError):
        return 0.0


def is_of_problem(folder: Path, number: int, problem: Metadata) -> bool:
    """Whether a checkpoint belongs to this problem, and its manifest is intact."""
    return bool(_manifest(folder / f"checkpoint-{number:06d}.json", problem)[0])


def remove_leftovers(folder: Path) -> None:
    """Remove incomplete checkpoints and temporary files of a killed run."""
    complete = {f"checkpoint-{number:06d}" for number in numbers(folder)}
    files = [path for path in folder.glob("checkpoint-*.bin") if FILE_NAME.fullmatch(path.name)]
    for path in [*files, *folder.glob(".roadict-*.tmp")]:
        if path.name.split(".")[0] not in complete:
            _unlink(path)


def read(folder: Path, number: int, problem: Metadata, n_rows: int, comm: Comm) -> LoadedCheckpoint:
    """Read a checkpoint for a rank that now has ``n_rows`` rows, whatever the ranks that wrote it had.

    Raises
    ------
    DamagedError
        On every rank, if the checkpoint is incomplete or damaged.
    CheckpointError
        If it belongs to another problem or format version.
    """
    path = folder / f"checkpoint-{number:06d}.json"
    content, damage, refusal = allgather_json(comm, _manifest(path, problem) if comm.rank == 0 else None)[0]
    if refusal:
        raise CheckpointError(refusal)
    if not damage:
        files = [content["shared"], *content["ranks"]]
        checked = [_damage(folder, file) for file in files[comm.rank :: comm.size]]
        damage = next((text for texts in allgather_json(comm, checked) for text in texts if text), "")
    if damage:
        raise DamagedError(damage)
    start = offset(comm, n_rows)
    parts: list[tuple[int, Arrays]] = []
    first = 0
    for file in content["ranks"]:
        rows = slice(max(start - first, 0), min(start + n_rows - first, file["rows"]))
        if rows.start < rows.stop or not parts:
            parts.append((max(first - start, 0), dict(_arrays(folder, file, rows))))
        first += file["rows"]
    shared = {name: np.array(array) for name, array in _arrays(folder, content["shared"], slice(None))}
    return LoadedCheckpoint(str(path), content["facts"], shared, parts)


def _unlink(path: Path) -> None:
    """Remove a file; a failure, on a broken or read-only disk, does not harm the run."""
    with contextlib.suppress(OSError):
        path.unlink()


def _write_arrays(path: Path, arrays: Arrays) -> Metadata:
    """Write arrays one after the other, and return the file's entry in the manifest."""
    entries: list[Metadata] = []
    digest, size = hashlib.sha256(), 0
    with atomic_write(path) as file:
        for name, array in arrays.items():
            entries.append({"name": name, "dtype": array.dtype.str, "shape": array.shape, "offset": size})
            for block in _blocks(array):
                file.write(block)
                digest.update(block)
                size += block.nbytes
    rows = len(next(iter(arrays.values()))) if arrays else 0
    return {"file": path.name, "bytes": size, "sha256": digest.hexdigest(), "rows": rows, "arrays": entries}


def _blocks(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield the bytes of an array in C order, in blocks, to avoid a second copy."""
    rows = max(1, BLOCK_BYTES // max(1, array[:1].nbytes))
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows]).reshape(-1).view(np.uint8).data


def _arrays(folder: Path, file: Metadata, rows: slice) -> Iterator[tuple[str, NDArray[Any]]]:
    for entry in file["arrays"]:
        shape = tuple(entry["shape"])
        if 0 in shape:
            yield entry["name"], np.zeros(shape, entry["dtype"])[rows]
        else:
            offset = entry["offset"]
            yield entry["name"], np.memmap(folder / file["file"], entry["dtype"], "r", offset, shape)[rows]


def _manifest(path: Path, problem: Metadata) -> tuple[Metadata, str, str]:
    """Return the manifest's content, a message if it is damaged, and a message if it is refused."""
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] == FORMAT and manifest["version"] > VERSION:
            return {}, "", f"{path} was written by a later roadict, as version {manifest['version']}; install that one"
        if manifest["format"] == FORMAT and manifest["version"] < VERSION:
            remedy = "resume it with that one, or start again in an empty folder"
            return {}, "", f"{path} was written by an earlier roadict, as version {manifest['version']}; {remedy}"
        content = manifest["content"]
        if manifest["format"] != FORMAT or manifest["sha256"] != _digest(content):
            return {}, f"{path} is damaged: its checksum does not match", ""
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}, f"{path} is damaged or cut short", ""
    theirs, ours = content["problem"], json.loads(json.dumps(problem))
    differing = [name for name in theirs | ours if theirs.get(name) != ours.get(name)]
    if differing:
        values = ", ".join(f"{name}: {theirs.get(name)!r} there, {ours.get(name)!r} here" for name in differing[:3])
        remedy = "choose another folder, or remove this one to start over"
        return {}, "", f"{path} belongs to another problem ({values}); {remedy}"
    return content, "", ""


def _damage(folder: Path, file: Metadata) -> str:
    """Describe the damage of a checkpoint file; "" if it is intact."""
    path = folder / file["file"]
    digest = hashlib.sha256()
    try:
        if path.stat().st_size != file["bytes"]:
            return f"{path} has {path.stat().st_size} bytes, not {file['bytes']}: damaged, or of another checkpoint"
        with path.open("rb") as stream:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
    except OSError as failure:
        return f"{path} cannot be read ({failure.strerror})"
    intact = digest.hexdigest() == file["sha256"]
    return "" if intact else f"{path} is damaged, or of another checkpoint: its checksum differs"


def _digest(content: Metadata) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _reason(folder: Path, failure: OSError) -> str:
    return f"no checkpoint could be written to {folder} ({failure.strerror or failure})"
