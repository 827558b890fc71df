"""What all ranks of a fit must have in common, and a checkpoint with the fit that resumes it."""

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.lock import FolderLock
from roadict.checkpoints.schedule import Checkpoint, Keeper, fingerprint
from roadict.checkpoints.storage import Facts
from roadict.ranks.collectives import counts, words
from roadict.ranks.comm import SERIAL, Comm
from roadict.seeds import RandomStateLike, seed_sequence

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

WITHOUT_EFFECT = ("callback", "checkpoint", "verbose", "n_jobs")
FEWEST = 2
"""Samples that can be learned from."""


def described(estimator: Any) -> Facts:
    """Return the parameters that a fit depends on, as JSON can hold them; of a given start only that there is one."""
    facts: Facts = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in WITHOUT_EFFECT or name.startswith("transform_"):
            continue
        if name in ("dict_init", "code_init"):
            facts[name] = None if value is None else name
        elif name == "random_state":
            facts[name] = int(value) if isinstance(value, numbers.Integral) else None
        elif name == "missing_values":
            facts[name] = value is not None
        else:
            facts[name] = np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic | tuple) else value
    return facts


def agree_on_parameters(facts: Facts, comm: Comm) -> None:
    """Refuse ranks that were given different parameters: they would wait for each other for ever."""
    first, *others = words(comm, facts)
    for rank, other in enumerate(others, start=1):
        for name in first:
            if first[name] != other[name] and repr(first[name]) != repr(other[name]):
                raise ValueError(
                    f"{name}={other[name]!r} on rank {rank}, but {name}={first[name]!r} on rank 0; all ranks must "
                    "have the same parameters"
                )


def agree_on_samples(data: Array, observed: Mask, comm: Comm) -> tuple[Array, Mask]:
    """Check that all ranks have samples of one kind; where one has a mask, all get one."""
    kinds = words(comm, [data.shape[1], str(data.dtype)])
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(
                f"rank {rank} has samples of {kind[0]} features in {kind[1]}, rank 0 of {kinds[0][0]} in "
                f"{kinds[0][1]}; all ranks must have the same"
            )
    n_samples = sum(counts(comm, len(data)))
    if n_samples < FEWEST:
        raise ValueError(f"Found {n_samples} sample(s) on {comm.size} ranks while a minimum of {FEWEST} is required.")
    masked = any(words(comm, observed is not None))
    return data, np.ones(data.shape, bool) if masked and observed is None else observed


def agreed_seed(random_state: RandomStateLike, keeper: Keeper | None, comm: Comm) -> np.random.SeedSequence:
    """Return the seed of rank 0, or that of the run that is resumed."""
    root = seed_sequence(random_state)
    seed = words(comm, {"entropy": root.entropy, "key": list(root.spawn_key)})[0]
    if keeper is not None:
        seed = keeper.notes.setdefault("seed", seed)
    return np.random.SeedSequence(seed["entropy"], spawn_key=tuple(seed["key"]))


@contextmanager
def keeping(
    checkpoint: "str | os.PathLike[str] | Checkpoint | None", facts: Facts, data: Array, observed: Mask, comm: Comm
) -> Iterator[Keeper | None]:
    """Open the checkpoints of a fit, if it is to have any; their folder is this fit's while the block lasts.

    Parameters
    ----------
    checkpoint : path, Checkpoint or None
        As for ``ROAD``.
    facts : dict
        What describes the fit beside its data.
    data, observed
        This rank's, as the user gave them.
    comm : Comm
    """
    if checkpoint is None:
        yield None
        return
    settings = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    rows = data if observed is None else np.where(observed, data, np.nan).astype(data.dtype)
    problem = facts | {
        "n_samples": sum(counts(comm, len(data))),
        "n_features": data.shape[1],
        "dtype": str(data.dtype),
        "data": fingerprint(rows, comm),
    }
    if settings.lock is not None:
        yield Keeper(settings, problem, len(data), comm, settings.lock)
        return
    with FolderLock(settings.folder) as lock:
        yield Keeper(settings, problem, len(data), comm, lock)


def start_facts(dict_init: Array | None, code_init: Array | None, comm: Comm) -> Facts:
    """Describe a start that the user gave."""
    return {
        "dict_init": None if dict_init is None else fingerprint(dict_init, SERIAL),
        "code_init": None if code_init is None else fingerprint(code_init, comm),
    }
