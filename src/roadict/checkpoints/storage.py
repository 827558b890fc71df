"""Checkpoints: the arrays of a run on disk, each set whole or not there at all, in parts that ranks have written.

A set of number n is ``checkpoint-n.shared.bin``, one ``checkpoint-n.rank-r.bin`` for every rank, and the manifest
``checkpoint-n.json``, written last: it names the problem and holds a SHA-256 of every file and of its own content.
Files hold plain numbers, one array after the other, at places that the manifest tells; nothing is ever unpickled.
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
from roadict.ranks.collectives import offset, words
from roadict.ranks.comm import Comm

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]

FORMAT = "roadict-checkpoint"
VERSION = 2
KEPT = 2
"""Sets that stay: the last one may be the one that a failing disk has spoiled."""
BLOCK_BYTES = 1 << 24
OWN_NAME = re.compile(r"checkpoint-([0-9]{6,})\.(json|shared\.bin|rank-[0-9]+\.bin)")
"""Files of sets; others in the folder, whatever they are called, are the user's."""


class CheckpointError(ValueError):
    """A checkpoint cannot be used."""


class DamagedError(CheckpointError):
    """It is not whole, or made of files of several; an older one may do."""


@dataclass(frozen=True)
class LoadedCheckpoint:
    """What a checkpoint holds for one rank.

    Attributes
    ----------
    name : str
        Path of its manifest.
    metadata : dict
        What was written with it.
    shared : dict of str to array
    parts : list of (int, dict of str to array)
        Rows of the local arrays, and the number of the first of them among this rank's rows; read as they are used.
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
    spoiled: Collection[int] = (),
) -> str:
    """Write a set and remove all but the last two good ones; returns "" or why it could not be written, on every rank.

    Parameters
    ----------
    folder : Path
        One that all ranks see.
    number : int
        Above those of all sets in the folder.
    problem : dict
        What a run must have in common with this one to go on from it.
    metadata : dict
        Of rank 0; both dictionaries hold what JSON can.
    shared : dict of str to array
        The same on every rank; rank 0 writes them.
    local : dict of str to array
        With as many rows as this rank has samples.
    comm : Comm
    spoiled : collection of int
        Numbers of sets that were found damaged.
    """
    stem = f"checkpoint-{number:06d}"
    own = [(f"{stem}.rank-{comm.rank}.bin", local)] + [(f"{stem}.shared.bin", shared)] * (comm.rank == 0)
    answer: Any = None
    try:
        answer = [_write_arrays(folder / name, arrays) for name, arrays in own]
    except OSError as failure:
        answer = _reason(folder, failure)
    answers = words(comm, answer)
    trouble = next((text for text in answers if isinstance(text, str)), "")
    if comm.rank == 0 and not trouble:
        content = {
            "problem": problem,
            "facts": metadata,
            "ranks": [files[0] for files in answers],
            "shared": answers[0][1],
        }
        try:
            with atomic_write(folder / f"{stem}.json") as file:
                head = {"format": FORMAT, "version": VERSION, "sha256": _digest(content)}
                file.write(json.dumps(head | {"content": content}, indent=1).encode())
        except OSError as failure:
            trouble = _reason(folder, failure)
    trouble = words(comm, trouble)[0]
    if trouble:
        for name, _ in own:
            _drop(folder / name)
    elif comm.rank == 0:
        _prune(folder, spoiled)
    return str(trouble)


def _prune(folder: Path, spoiled: Collection[int]) -> None:
    present = numbers(folder)
    good = [number for number in present if number not in spoiled][-KEPT:]
    remove(folder, [number for number in present if number not in good])


def numbers(folder: Path) -> list[int]:
    """Return the numbers of all sets that have a manifest, in order."""
    names = [OWN_NAME.fullmatch(path.name) for path in folder.glob("checkpoint-*.json")]
    return sorted(int(name[1]) for name in names if name)


def remove(folder: Path, unwanted: list[int]) -> None:
    """Remove sets, the manifest first: what is left of a set without one is never read."""
    for number in unwanted:
        _drop(folder / f"checkpoint-{number:06d}.json")
        for path in folder.glob(f"checkpoint-{number:06d}.*.bin"):
            _drop(path)


def clear(folder: Path) -> None:
    """Remove all sets, when the result is safe elsewhere."""
    remove(folder, numbers(folder))
    sweep(folder)


def sweep(folder: Path) -> None:
    """Remove what a killed run has left of sets and files that it could not finish."""
    whole = {f"checkpoint-{number:06d}" for number in numbers(folder)}
    files = [path for path in folder.glob("checkpoint-*.bin") if OWN_NAME.fullmatch(path.name)]
    for path in [*files, *folder.glob(".roadict-*.tmp")]:
        if path.name.split(".")[0] not in whole:
            _drop(path)


def read(folder: Path, number: int, problem: Metadata, n_rows: int, comm: Comm) -> LoadedCheckpoint:
    """Read a set for a rank that now has ``n_rows`` rows, however many the ranks that wrote it had.

    Raises
    ------
    DamagedError
        On every rank, where the set is not whole.
    CheckpointError
        Where it is of another problem or of a later version.
    """
    path = folder / f"checkpoint-{number:06d}.json"
    content, damage, refusal = words(comm, _manifest(path, problem) if comm.rank == 0 else None)[0]
    if refusal:
        raise CheckpointError(refusal)
    if not damage:
        files = [content["shared"], *content["ranks"]]
        checked = [_damage(folder, file) for file in files[comm.rank :: comm.size]]
        damage = next((text for texts in words(comm, checked) for text in texts if text), "")
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


def _drop(path: Path) -> None:
    """Remove a file; one that stays, on a disk that has failed or is not ours, does no harm to the run."""
    with contextlib.suppress(OSError):
        path.unlink()


def _write_arrays(path: Path, arrays: Arrays) -> Metadata:
    """Write arrays one after the other, and return what the manifest says of the file."""
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
    """Bytes of an array in C order, in pieces, so that no second copy of it is needed."""
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
    """Read a manifest; also what is damaged, and why it is refused, if anything."""
    try:
        whole = json.loads(path.read_bytes())
        if whole["format"] == FORMAT and whole["version"] > VERSION:
            return {}, "", f"{path} was written by a later roadict, as version {whole['version']}; install that one"
        if whole["format"] == FORMAT and whole["version"] < VERSION:
            remedy = "resume it with that one, or start again in an empty folder"
            return {}, "", f"{path} was written by an earlier roadict, as version {whole['version']}; {remedy}"
        content = whole["content"]
        if whole["format"] != FORMAT or whole["sha256"] != _digest(content):
            return {}, f"{path} is damaged: its checksum does not fit", ""
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}, f"{path} is damaged or cut short", ""
    theirs, ours = content["problem"], json.loads(json.dumps(problem))
    differing = [name for name in theirs | ours if theirs.get(name) != ours.get(name)]
    if differing:
        told = ", ".join(f"{name}: {theirs.get(name)!r} there, {ours.get(name)!r} here" for name in differing[:3])
        remedy = "name another folder, or remove this one to start anew"
        return {}, "", f"{path} is of another problem ({told}); {remedy}"
    return content, "", ""


def _damage(folder: Path, file: Metadata) -> str:
    """Say what is wrong with a file of a set, if anything."""
    path = folder / file["file"]
    digest = hashlib.sha256()
    try:
        if path.stat().st_size != file["bytes"]:
            return f"{path} has {path.stat().st_size} bytes in place of {file['bytes']}: damaged, or of another set"
        with path.open("rb") as stream:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
    except OSError as failure:
        return f"{path} cannot be read ({failure.strerror})"
    return "" if digest.hexdigest() == file["sha256"] else f"{path} is damaged, or of another set: its checksum differs"


def _digest(content: Metadata) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _reason(folder: Path, failure: OSError) -> str:
    return f"no checkpoint could be written to {folder} ({failure.strerror or failure})"
