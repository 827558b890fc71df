"""Passes over all samples in mini-batches, in random order, judged by a held-out batch."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadict.ranks.collectives import allreduce_max, counts, on_all_ranks
from roadict.ranks.comm import Comm
from roadict.road.plan import Plan
from roadict.road.stream import BATCH, Samples, Seen, Stream, add_up, nothing_seen, picked
from roadict.runs.measures import BatchMeasures
from roadict.runs.state import RunState
from roadict.seeds import PASSES, streams

Array = NDArray[np.floating]

BLOCK = 64
"""Successive rows that are read together: in random order, but not each by itself."""
HELD_OUT = 2048
"""Samples that no pass uses, over all ranks, at most a tenth."""
MIN_BATCH, FEW_BATCHES = 256, 32
"""Smallest mini-batch, and number of mini-batches in a pass below which they are smaller than others."""
ROUND = 16
"""Maximum number of mini-batches between two looks at the held-out batch."""


class Rows(Protocol):
    """Samples of this rank that are read in blocks."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, starts: NDArray[np.int64], size: int) -> Samples:
        """Return the rows of these blocks."""

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""


class Passes:
    """A run in progress over all samples; an iteration takes up to ``ROUND`` mini-batches.

    Parameters
    ----------
    stream : Stream
    rows : Rows
    unit : float
        The unit of the stream in that of the rows.
    bound : float or None
        On the relative data error, that the weight of the stream stands for.
    seed : SeedSequence
    n_jobs : int or None
    comm : Comm
    """

    rhos = ()
    """There is no augmented Lagrangian."""

    def __init__(
        self,
        stream: Stream,
        rows: Rows,
        unit: float,
        bound: float | None,
        seed: np.random.SeedSequence,
        n_jobs: int | None,
        comm: Comm,
    ) -> None:
        self._stream, self._rows, self._unit, self._bound = stream, rows, unit, bound
        self._seed, self._n_jobs, self._comm = seed, n_jobs, comm
        n_rows = counts(comm, len(rows))
        blocks = np.arange(0, len(rows), BLOCK)
        order = streams(seed, PASSES, 1)[0].permutation(len(blocks))
        n_held = round(min(HELD_OUT, sum(n_rows) / 10) * len(rows) / sum(n_rows) / BLOCK)
        n_held = min(max(n_held, 1), len(blocks) // 2)
        held, self._blocks = np.sort(blocks[order[:n_held]]), np.sort(blocks[order[n_held:]])
        self._held_out = self._taken(held)
        size = min(BATCH, max(MIN_BATCH, sum(n_rows) // FEW_BATCHES))
        n_batches, most = -(-len(self._blocks) * BLOCK * comm.size // size), len(self._blocks)
        self._n_batches = max(1, min(allreduce_max(comm, n_batches, most)))
        self._pass, self._batch = 0, 0
        self._sums = nothing_seen(len(stream.dictionary))
        self.last = self._look()
        self._before, self._change = self.objective(self.last), 1.0

    def _taken(self, starts: NDArray[np.int64]) -> Samples:
        """Return the rows of these blocks, in the unit of the stream; all ranks fail if one cannot read its own."""
        data, observed, weights = on_all_ranks(self._comm, lambda: self._rows.take(np.sort(starts), BLOCK))
        return (data / data.dtype.type(self._unit)).astype(data.dtype), observed, weights

    def step(self, following: float | None = None) -> BatchMeasures:
        """Carry out one iteration; there is no ρ, and ``following`` is None."""
        if self._batch == 0:
            self._sums = nothing_seen(len(self._stream.dictionary))
        began, before = time.perf_counter(), self._sums.n_samples
        for samples in self._next_batches():
            self._stream, seen = self._stream.updated(samples, self._comm, self._n_jobs)
            self._sums = add_up([self._sums, seen])
        held = self._look()
        self.last = held if held.square > 0 else self._sums  # samples or weights of the held-out batch may all be zero
        if self._batch == self._n_batches:
            now = self.objective(self.last)
            self._change = abs(self._before - now) / max(now, np.finfo(float).tiny)
            self._before = now
            self._pass, self._batch = self._pass + 1, 0
        return BatchMeasures(
            objective=self.objective(self.last),
            change=self._change,
            error=float(np.sqrt(self.last.misfit / self.last.square)) if self.last.square else 0.0,
            samples_per_second=(self._sums.n_samples - before) / max(time.perf_counter() - began, 1e-9),
        )

    def _next_batches(self) -> Iterator[Samples]:
        rng = streams(self._seed, PASSES, self._pass + 2)[-1]
        parts = np.array_split(rng.permutation(self._blocks), self._n_batches)
        end = min(self._batch + ROUND, self._n_batches)
        for part in parts[self._batch : end]:
            yield self._taken(part)
        self._batch = end

    def _look(self) -> Seen:
        """Measure the held-out batch."""
        return self._stream.measured(self._held_out, self._comm, self._n_jobs)

    def objective(self, seen: Seen) -> float:
        """Return the formulation's objective per unit of weight of the samples."""
        return self._stream.objective(seen, self._bound) / max(seen.n_samples, np.finfo(float).tiny)

    def usage(self) -> Array:
        """Share of the samples of the last pass that use each atom."""
        return self._sums.usage / max(self._sums.n_samples, np.finfo(float).tiny)

    def state(self) -> RunState:
        """Return the arrays of the run between two iterations."""
        stream, sums = self._stream, self._sums
        numbers = [stream.n_samples, self._pass, self._batch, self._before, self._change]
        numbers += [sums.objective, sums.misfit, sums.square, sums.n_samples]
        shared = {"dictionary": stream.dictionary, "gram": stream.gram, "target": stream.target}
        return RunState({}, shared | {"usage": sums.usage, "numbers": np.array(numbers)})

    def restore(self, state: RunState, start: int = 0) -> None:
        """Continue from a state."""
        arrays = {name: np.array(array) for name, array in state.shared.items()}
        n_samples, at_pass, at_batch, self._before, self._change, *sums = map(float, arrays["numbers"])
        self._pass, self._batch = int(at_pass), int(at_batch)
        objective, misfit, square, n_seen = sums
        self._sums = Seen(objective, misfit, square, arrays["usage"], n_seen)
        atoms, gram, target = arrays["dictionary"], arrays["gram"], arrays["target"]
        self._stream = replace(self._stream, dictionary=atoms, gram=gram, target=target, n_samples=n_samples)
        self.last = self._look()

    @property
    def n_steps(self) -> int:
        """Number of iterations in a pass."""
        return -(-self._n_batches // ROUND)

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


class HeldRows:
    """Rows in memory."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples[0])

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""
        return float(len(self) if self._samples[2] is None else self._samples[2].sum())

    def take(self, starts: NDArray[np.int64], size: int) -> Samples:
        """Return the rows of these blocks."""
        return picked(self._samples, rows_of(starts, size, len(self)))


def rows_of(starts: NDArray[np.int64], size: int, n_rows: int) -> NDArray[np.int64]:
    """Return the numbers of the rows in blocks of this size, or less at the end."""
    ends = np.minimum(starts + size, n_rows)
    return np.concatenate([np.arange(0), *map(np.arange, starts, ends)])


def held_samples(plan: Plan) -> Samples:
    """Return the samples of a plan in its engine's units, and their weights."""
    roots = plan.problem.roots
    return plan.unweighted(plan.problem.data), plan.problem.observed, None if roots is None else roots[:, 0] ** 2
