"""``ROAD.partial_fit``: collect and fit the first parts of a stream, take the others in mini-batches."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roadict.estimators.streaming import Streaming, joined, updated
from roadict.linalg import leading_signs
from roadict.ranks.collectives import counts, on_all_ranks
from roadict.ranks.comm import Comm, local_threads
from roadict.road.plan import Request
from roadict.road.stream import Samples, Stream


def take_part(model: Any, X: ArrayLike, sample_weight: ArrayLike | None) -> None:
    """Learn from one more part; ``model`` is a ROAD estimator, ``X`` and ``sample_weight`` are those of this rank."""
    comm, before = model._comm(), getattr(model, "_stream_", None)
    on_all_ranks(comm, model._check_parameters)
    check_stream(model, before)
    samples = model._validate_on_ranks(X, sample_weight, comm, before)
    if before is not None and not before.can_continue:
        before = None  # of a fit with nothing to continue from
    n_seen = sum(counts(comm, len(samples[0]))) + (0 if before is None else before.n_seen)
    if before is not None and not before.waiting:
        if before.stream is None:  # exact data
            model._stream_, model.codes_ = before._replace(n_seen=n_seen), None
        else:
            update(model, before, before.stream, samples, n_seen, comm)
            model._convert_outputs_like(X)
        return
    parts = (*(() if before is None else before.waiting), samples)
    data, observed, weights = joined(parts)
    needed = Request(data, observed, model._n_atoms(data.shape[1]), model._parameters(), comm).n_searched
    if before is None or n_seen >= 2 * before.n_fitted or before.n_fitted < needed <= n_seen:
        model._fit(data if observed is None else np.where(observed, data, np.nan).astype(data.dtype), weights)
        model._convert_outputs_like(X)
        before = model._stream_
    if n_seen < needed or (before.stream is None and not before.exact):
        model._stream_ = before._replace(n_seen=n_seen, waiting=parts)


def check_stream(model: Any, before: Streaming | None) -> None:
    """Raise ValueError if no part can be taken."""
    if model.formulation == "inexact" or model._parameters().plain:
        raise ValueError(
            "partial_fit needs a descent, which the inexact form and the plain iteration (a numeric rho with one "
            'start) have not; use formulation "constrained" or "lasso" and rho="auto"'
        )
    if model.checkpoint is not None:
        raise ValueError("partial_fit writes no checkpoints; pass checkpoint=None, and save the model now and then")
    if before is not None and model.n_components not in (None, len(model.components_)):
        raise ValueError(
            f"n_components={model.n_components}, but the stream so far has {len(model.components_)} atoms; set it "
            "back, or begin a new stream with a clone"
        )
    if before is None and hasattr(model, "components_"):
        raise ValueError("this model has no statistics to continue from; call fit, or partial_fit of a clone")


def update(model: Any, before: Streaming, stream: Stream, samples: Samples, n_seen: int, comm: Comm) -> None:
    """Take a part in mini-batches, and set what it changes."""
    stream, seen = updated(stream, samples, before.unit, comm, local_threads(model.n_jobs, comm))
    if seen.n_samples > 0:
        model.__dict__.pop("atom_stability_", None)  # that of former atoms
        signs = leading_signs(stream.dictionary)[:, None]
        model.components_ = (stream.dictionary * signs).astype(before.dtype)
        model.objective_ = stream.objective(seen, model.epsilon_) * before.unit
        model.error_ = math.sqrt(seen.misfit / max(seen.square, np.finfo(float).tiny))
        model.atom_usage_ = seen.usage / seen.n_samples
        model.codes_ = None
    model._stream_ = before._replace(stream=stream, n_seen=n_seen)
