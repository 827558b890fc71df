"""``ROAD.partial_fit``: collect and fit the first parts of a stream, take the others in mini-batches."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roadict.checkpoints.journal import FitJournal
from roadict.coders.registry import encode
from roadict.estimators.streaming import TERMS, TOO_LARGE, Streaming, joined, scaled, terms_of, updated
from roadict.estimators.weights import used_samples
from roadict.ranks.collectives import counts, on_all_ranks
from roadict.ranks.comm import Comm, local_threads
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.learning import Learned
from roadict.road.multistart import Settings, descend
from roadict.road.plan import Plan, Request, make_plan
from roadict.road.stream import Samples, Stream, continued, seen_in
from roadict.runs.driving import drive, observe
from roadict.runs.loop import View
from roadict.tensors import plain
from roadict.wording import plural

EXACT_ERROR = 1e-3
"""Relative error up to which a part of a stream of exact data still counts as exact."""
HELD = 16
"""Samples that a stream holds for descents, relative to those of a search."""


def take_part(model: Any, X: ArrayLike, sample_weight: ArrayLike | None) -> None:
    """Learn from one more part; ``model`` is a ROAD estimator, ``X`` and ``sample_weight`` are those of this rank."""
    comm, before = model._comm(), getattr(model, "_stream_", None)
    on_all_ranks(comm, model._check_parameters)
    check_stream(model, before)
    samples = model._validate_on_ranks(X, sample_weight, comm, before)
    if before is not None and not before.can_continue:
        before = None  # of a fit with nothing to continue from
    n_seen = sum(counts(comm, len(samples[0]))) + (0 if before is None else before.n_seen)
    data, observed, _ = samples
    needed = Request(data, observed, model._n_atoms(data.shape[1]), model._parameters(), comm).n_searched
    if before is None or not before.is_searched(needed):
        search(model, before, samples, n_seen, needed)
    elif before.stream is None and keep_exact(model, before, samples, comm):
        model._stream_ = before._replace(n_seen=n_seen)
    elif before.stream is None:  # data are no longer exact: learn from what is held, and from this part
        search(model, before._replace(n_fitted=0, exact=False), samples, n_seen, needed)
    else:
        update(model, before, before.stream, samples, n_seen, comm)
        hold(model, before, samples, HELD * needed, comm)
    model.codes_ = None
    model._convert_outputs_like(X)


def search(model: Any, before: Streaming | None, samples: Samples, n_seen: int, needed: int) -> None:
    """Collect a part; fit all so far if they have doubled, or are as many as a search needs."""
    parts = (*(() if before is None else before.waiting), samples)
    if before is None or n_seen >= 2 * before.n_fitted or before.n_fitted < needed <= n_seen:
        data, observed, weights = joined(parts)
        names = getattr(model, "feature_names_in_", None)
        model._fit(data if observed is None else np.where(observed, data, np.nan).astype(data.dtype), weights)
        if names is not None:  # which the joined parts do not have
            model.feature_names_in_ = names
        before = model._stream_._replace(n_fitted=n_seen)
    held = n_seen <= HELD * needed or (before.stream is None and not before.exact)
    model._stream_ = before._replace(n_seen=n_seen, waiting=parts if held else ())


def keep_exact(model: Any, before: Streaming, samples: Samples, comm: Comm) -> bool:
    """Code a part in exact atoms; return whether these reproduce it by few, and set its measures then."""
    data, observed, weights = scaled(samples, before.unit)
    atoms = plain(model.components_).astype(data.dtype)
    threads = local_threads(model.n_jobs, comm)
    codes = encode(
        data, observed, atoms, algorithm="basis-pursuit", positive=model.positive_code, n_jobs=threads, warn=False
    )
    residual = data - codes @ atoms
    seen = seen_in((data, observed, weights), codes, residual if observed is None else residual * observed, 1.0, comm)
    if seen.square == 0:
        return True
    few = (model.atom_usage_.sum() + min(atoms.shape)) / 2
    if seen.error > EXACT_ERROR or seen.usage.sum() / seen.n_samples > few:
        return False
    model.objective_, model.error_ = seen.size(1.0) * before.unit, seen.error
    model.atom_usage_ = seen.usage / seen.n_samples
    return True


def hold(model: Any, before: Streaming, samples: Samples, most: int, comm: Comm) -> None:
    """Hold a part, as long as all so far are at most so many; descend over these whenever they have doubled."""
    if not before.waiting:
        return
    parts, now = (*before.waiting, samples), model._stream_
    if now.n_seen >= 2 * now.n_fitted or now.n_seen > most:
        settle(model, joined(parts), comm)
    model._stream_ = model._stream_._replace(waiting=() if now.n_seen > most else parts)


def settle(model: Any, samples: Samples, comm: Comm) -> None:
    """Descend from the present atoms over all samples so far; the stream continues from there."""
    before = model._stream_
    data, observed, weights, _ = used_samples(*samples, comm)
    plan = _plan(model, (data, observed, weights), comm)
    threads, dtype = local_threads(model.n_jobs, comm), data.dtype
    start = before.stream.dictionary.astype(dtype), np.zeros((len(data), len(before.stream.dictionary)), dtype)
    watched = model.callback is not None or bool(model.verbose)
    settings = Settings("numba", model._n_iterations, model.tol, threads, watched)
    run = descend(plan, start, settings, View(plan.unit, watched=watched), FitJournal(None), None)
    fit = drive(observe(run, model.callback, model.verbose if comm.rank == 0 else 0))
    if fit.outcome.stop_reason == "non-finite":
        raise ValueError(TOO_LARGE)
    fit = replace(fit, n_starts=model.n_starts_, n_agreed=model.n_starts_agreed_)
    of_part = {name: getattr(model, name) for name in ("objective_", "error_", "atom_usage_")}
    model._set_attributes(Learned(fit, plan, model.epsilon_path_), weights)
    model.__dict__.update(of_part)
    stream = continued(fit, plan, (data, observed, weights))
    model._stream_ = before._replace(stream=stream, unit=plan.unit, n_fitted=before.n_seen)


def _plan(model: Any, samples: Samples, comm: Comm) -> Plan:
    """Plan a descent with the error bound or Lasso weight of the stream, raised to what the atoms can reach."""
    data, observed, weights = samples
    n_components, parameters = len(model.components_), model._parameters()
    if model.formulation == "lasso":
        parameters = replace(parameters, alpha=model.transform_alpha_)
    else:
        weighed = data if weights is None else data * np.sqrt(weights)[:, None]
        limits = parameters.constraints, parameters.fixed_atoms
        reachable = auto_epsilon(smallest_error(weighed, observed, n_components, comm, *limits))
        parameters = replace(parameters, epsilon=max(model.epsilon_, reachable))
    return make_plan(data, observed, n_components, parameters, comm, weights)


def check_stream(model: Any, before: Streaming | None) -> None:
    """Raise ValueError if no part can be taken."""
    if model.formulation == "inexact" or model._parameters().plain:
        raise ValueError(
            "partial_fit needs a descent, which the inexact form and the plain iteration (a numeric rho with one "
            'start) have not; use formulation "constrained" or "lasso" and rho="auto"'
        )
    if model.checkpoint is not None:
        raise ValueError("partial_fit writes no checkpoints; pass checkpoint=None, and save the model now and then")
    if before is not None and before.terms != terms_of(model):
        changed = [name for name, old, new in zip(TERMS, before.terms, terms_of(model), strict=True) if old != new]
        then = dict(zip(TERMS, before.terms, strict=True))
        shown = [f"other {name}" if name == "fixed_atoms" else f"{name}={then[name]!r}" for name in changed]
        raise ValueError(f"the stream began with {', '.join(shown)}; set that back, or begin a new stream with a clone")
    if before is not None and model.n_components not in (None, len(model.components_)):
        raise ValueError(
            f"n_components={model.n_components}, but the stream so far has {plural(len(model.components_), 'atom')}; "
            "set it back, or begin a new stream with a clone"
        )
    if before is None and hasattr(model, "components_"):
        raise ValueError("this model has no statistics to continue from; call fit, or partial_fit of a clone")


def update(model: Any, before: Streaming, stream: Stream, samples: Samples, n_seen: int, comm: Comm) -> None:
    """Take a part in mini-batches, and set what it changes."""
    stream, seen = updated(stream, samples, before.unit, comm, local_threads(model.n_jobs, comm))
    if seen.n_samples > 0:
        model.__dict__.pop("atom_stability_", None)  # that of former atoms
        signs = stream.constraints.signs(stream.dictionary)[:, None]
        model.components_ = (stream.dictionary * signs).astype(before.dtype)
        size = seen.objective / stream.weight if model.formulation == "lasso" else seen.size(stream.weight)
        model.objective_, model.error_ = size * before.unit, seen.error
        model.atom_usage_ = seen.usage / seen.n_samples
        model.stationarity_ = None
    model._stream_ = before._replace(stream=stream, n_seen=n_seen)
