"""Consistency of a fit across ranks, and with the checkpoint it resumes from."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.schedule import Checkpoints, fingerprint
from roadict.checkpoints.storage import Metadata
from roadict.ranks.collectives import allgather_json, counts
from roadict.ranks.comm import SERIAL, Comm
from roadict.seeds import RandomStateLike, seed_sequence
from roadict.tensors import plain
from roadict.wording import plural

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

NO_EFFECT_ON_RESULT = ("callback", "checkpoint", "verbose", "n_jobs")
MIN_SAMPLES = 2
"""Minimum number of samples, over all ranks."""


def describe_parameters(estimator: Any) -> Metadata:
    """Return the parameters that affect a fit as JSON values; of a given start only that there is one.

    Known atoms are described by their hash: errors show differing values in one line.
    """
    described: Metadata = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in NO_EFFECT_ON_RESULT or name.startswith("transform_"):
            continue
        if name in ("dict_init", "code_init"):
            described[name] = None if value is None else name
        elif name == "fixed_atoms":
            described[name] = None if value is None else fingerprint(np.asarray(plain(value), np.float64), SERIAL)
        elif name == "random_state":
            described[name] = int(value) if isinstance(value, numbers.Integral) else None
        elif name == "missing_values":
            described[name] = value is not None
        else:
            described[name] = (
                np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic | tuple) else value
            )
    return described


def consistent_parameters(estimator: Any, comm: Comm) -> Metadata:
    """Describe the parameters; raises ValueError unless all ranks have the same, as they would deadlock otherwise."""
    described = describe_parameters(estimator)
    _check_consistent(described, comm)
    return described


def _check_consistent(values: Metadata, comm: Comm) -> None:
    first, *others = allgather_json(comm, values)
    for rank, other in enumerate(others, start=1):
        for name in first:
            if first[name] != other[name] and repr(first[name]) != repr(other[name]):
                raise ValueError(
                    f"{name}={other[name]!r} on rank {rank}, but {name}={first[name]!r} on rank 0; all ranks must "
                    "have the same parameters"
                )


def consistent_samples(data: Array, observed: Mask, comm: Comm, min_samples: int = MIN_SAMPLES) -> tuple[Array, Mask]:
    """Check that features and dtype are the same on all ranks; if one rank has a mask, all get one."""
    kinds = allgather_json(comm, [data.shape[1], str(data.dtype)])
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(
                f"rank {rank} has samples of {plural(kind[0], 'feature')} in {kind[1]}, rank 0 of {kinds[0][0]} in "
                f"{kinds[0][1]}; all ranks must have the same"
            )
    n_samples = sum(counts(comm, len(data)))
    if n_samples < min_samples:
        found = f"Found {plural(n_samples, 'sample')} on {comm.size} ranks"
        raise ValueError(f"{found} while a minimum of {min_samples} is required.")
    masked = any(allgather_json(comm, observed is not None))
    return data, np.ones(data.shape, bool) if masked and observed is None else observed


def shared_seed(random_state: RandomStateLike, checkpoints: Checkpoints | None, comm: Comm) -> np.random.SeedSequence:
    """Return the seed of rank 0, or of the checkpoint if the fit resumes."""
    root = seed_sequence(random_state)
    seed = allgather_json(comm, {"entropy": root.entropy, "key": list(root.spawn_key)})[0]
    if checkpoints is not None:
        seed = checkpoints.notes.setdefault("seed", seed)
    return np.random.SeedSequence(seed["entropy"], spawn_key=tuple(seed["key"]))


def describe_start(dict_init: Array | None, code_init: Array | None, comm: Comm) -> Metadata:
    """Fingerprint dict_init and code_init."""
    return {
        "dict_init": None if dict_init is None else fingerprint(dict_init, SERIAL),
        "code_init": None if code_init is None else fingerprint(code_init, comm),
    }


def consistent_start(
    dict_init: Array | None, code_init: Array | None, engine: str, has_checkpoint: bool, comm: Comm
) -> Metadata:
    """Fingerprint the given start; its atoms, the engine and the use of checkpoints must be the same on all ranks."""
    described = describe_start(dict_init, code_init, comm)
    _check_consistent({"dict_init": described["dict_init"], "engine": engine, "checkpoint": has_checkpoint}, comm)
    return described
