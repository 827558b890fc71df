"""Passes over more samples than memory holds: mini-batches in random order, judged by a held-out batch."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import DESCENT, FitJournal
from roadict.linalg import leading_signs
from roadict.ranks.collectives import allreduce_max, counts, total
from roadict.road.descent import STATIONARY
from roadict.road.fit import DEFAULT_TOL
from roadict.road.multistart import Settings
from roadict.road.plan import Plan
from roadict.road.stream import BATCH, Seen, Stream, lasso_weight, stream_from
from roadict.runs.driving import Fitting
from roadict.runs.history import History
from roadict.runs.loop import Rule, View, follow
from roadict.runs.measures import BatchMeasures
from roadict.runs.result import Fit
from roadict.runs.state import RunState
from roadict.seeds import PASSES, streams

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None
Samples = tuple[Array, Mask, Array | None]
"""Data, zero at unobserved entries; which are observed; weights."""

BLOCK = 64
"""Successive rows that are read together: in random order, but not each by itself."""
HELD_OUT = 2048
"""Samples that no pass uses, over all ranks, at most a tenth."""
ROUND = 16
"""Maximum number of mini-batches between two looks at the held-out batch."""


class Rows(Protocol):
    """Samples of this rank that are read in blocks."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, starts: NDArray[np.int64], size: int) -> Samples:
        """Return the rows of these blocks, in the user's units."""


class Passes:
    """A run in progress over all samples; an iteration takes up to ``ROUND`` mini-batches.

    Parameters
    ----------
    stream : Stream
        In units of ``unit``.
    rows : Rows
    plan : Plan
        For some of the samples: unit, error bound and ranks.
    seed : SeedSequence
    n_jobs : int or None
    """

    rhos = ()
    """There is no augmented Lagrangian."""

    def __init__(
        self, stream: Stream, rows: Rows, plan: Plan, seed: np.random.SeedSequence, n_jobs: int | None
    ) -> None:
        self._stream, self._rows, self._plan, self._seed, self._n_jobs = stream, rows, plan, seed, n_jobs
        comm = plan.comm
        n_rows = counts(comm, len(rows))
        blocks = np.arange(0, len(rows), BLOCK)
        order = streams(seed, PASSES, 1)[0].permutation(len(blocks))
        n_held = round(min(HELD_OUT, sum(n_rows) / 10) * len(rows) / sum(n_rows) / BLOCK)
        held, self._blocks = np.sort(blocks[order[:n_held]]), np.sort(blocks[order[n_held:]])
        self._held_out = self._scaled(rows.take(held, BLOCK))
        self._n_batches = int(allreduce_max(comm, -(-len(self._blocks) * BLOCK * comm.size // BATCH))[0])
        self._pass, self._batch = 0, 0
        self._usage, self._n_used = np.zeros(len(stream.dictionary)), 0.0
        self.last = self._look()
        self._before, self._change = self.last.objective, 1.0

    def _scaled(self, samples: Samples) -> Samples:
        data, observed, weights = samples
        return (data / data.dtype.type(self._plan.unit)).astype(data.dtype), observed, weights

    def step(self, following: float | None = None) -> BatchMeasures:
        """Carry out one iteration; there is no ρ, and ``following`` is None."""
        began, n_samples = time.perf_counter(), 0.0
        for samples in self._next_batches():
            self._stream, seen = self._stream.updated(*samples, self._plan.comm, self._n_jobs)
            self._usage, self._n_used = self._usage + seen.usage, self._n_used + seen.n_samples
            n_samples += seen.n_samples
        self.last = self._look()
        if self._batch == self._n_batches:
            self._change = abs(self._before - self.last.objective) / max(self.last.objective, np.finfo(float).tiny)
            self._before = self.last.objective
            self._pass, self._batch = self._pass + 1, 0
        return BatchMeasures(
            objective=self.objective(self.last),
            change=self._change,
            error=float(np.sqrt(self.last.misfit / self.last.square)) if self.last.square else 0.0,
            samples_per_second=n_samples / max(time.perf_counter() - began, 1e-9),
        )

    def _next_batches(self) -> Iterator[Samples]:
        rng = streams(self._seed, PASSES, self._pass + 2)[-1]
        parts = np.array_split(rng.permutation(self._blocks), self._n_batches)
        if self._batch == 0:
            self._usage, self._n_used = np.zeros_like(self._usage), 0.0
        end = min(self._batch + ROUND, self._n_batches)
        for part in parts[self._batch : end]:
            yield self._scaled(self._rows.take(np.sort(part), BLOCK))
        self._batch = end

    def _look(self) -> Seen:
        """Measure the held-out batch."""
        return self._stream.updated(*self._held_out, self._plan.comm, self._n_jobs)[1]

    def objective(self, seen: Seen) -> float:
        """Return the formulation's objective per unit of weight of the samples; under a bound, the dual function."""
        bound = self._plan.bound or 0.0
        return (seen.objective - bound**2 * seen.square / 2) / self._stream.weight / max(seen.n_samples, 1.0)

    def usage(self) -> Array:
        """Share of the samples of the last pass that use each atom."""
        return self._usage / max(self._n_used, 1.0)

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations."""
        stream = self._stream
        numbers = [stream.n_samples, self._pass, self._batch, self._before, self._change, self._n_used]
        shared = {"dictionary": stream.dictionary, "gram": stream.gram, "target": stream.target}
        return RunState({}, shared | {"usage": self._usage, "numbers": np.array(numbers)})

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state."""
        arrays = {name: np.array(array) for name, array in state.shared.items()}
        n_samples, at_pass, at_batch, self._before, self._change, self._n_used = map(float, arrays["numbers"])
        self._pass, self._batch, self._usage = int(at_pass), int(at_batch), arrays["usage"]
        atoms, gram, target = arrays["dictionary"], arrays["gram"], arrays["target"]
        self._stream = replace(self._stream, dictionary=atoms, gram=gram, target=target, n_samples=n_samples)
        self.last = self._look()

    @property
    def stream(self) -> Stream:
        """The atoms and statistics so far."""
        return self._stream

    def dictionary(self) -> Array:
        """Return the atoms, shape (n_components, n_features)."""
        return self._stream.dictionary

    def codes(self) -> Array:
        """Return no codes: those of all samples may not fit into memory."""
        return np.empty((0, len(self._stream.dictionary)), self._held_out[0].dtype)


def learn_from_rows(
    rows: Rows,
    fit: Fit,
    plan: Plan,
    stream: Stream,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
) -> "Fitting[tuple[Fit, Stream]]":
    """Continue a fit of some samples with passes over all; objective and error are those of the held-out batch.

    Parameters
    ----------
    rows : Rows
    fit : Fit
        In the user's units.
    plan : Plan
        That of the fit; it descends.
    stream : Stream
        That continues the fit.
    settings : Settings
    seed : SeedSequence
        Of the whole fit.
    journal : FitJournal
    """
    comm = plan.comm
    run = Passes(stream, rows, plan, seed, settings.n_jobs)
    saving, (resumed, _) = journal.open_run(run, DESCENT)
    n_samples = total(comm, float(len(rows)))
    history = resumed or rescaled(fit.outcome.history, n_samples / plan.n_samples)
    rule = Rule(len(history["objective"]) + settings.max_iter, STATIONARY * (settings.tol or DEFAULT_TOL))
    view = View(plan.unit, watched=settings.watched, stage="mini-batches", share=1 / n_samples)
    outcome = yield from follow(run, rule, view, history, saving, comm)
    atoms = run.dictionary() * leading_signs(run.dictionary())[:, None]
    objective = run.objective(run.last) * n_samples * plan.unit
    error = float(outcome.history["error"][-1])
    result = replace(
        fit,
        outcome=outcome,
        dictionary=atoms.astype(fit.dictionary.dtype),
        codes=fit.codes[:0],
        error=error,
        objective=objective,
        usage=run.usage(),
    )
    return result, run.stream


def continued(fit: Fit, plan: Plan, samples: Samples) -> Stream:
    """Return the stream that continues a fit of these samples, in its engine's units."""
    (data, observed, weights), comm = samples, plan.comm
    scaled, codes = (np.asarray(array / array.dtype.type(plan.unit)) for array in (data, fit.codes))
    weight = plan.alpha or lasso_weight(scaled, observed, codes, fit.dictionary, comm)
    return stream_from(scaled, observed, codes, fit.dictionary, weight, weights, comm)


def rescaled(history: History, factor: float) -> History:
    """Return a history with another objective: that of some samples, for all."""
    return History({name: column * factor if name == "objective" else column for name, column in history.items()})
