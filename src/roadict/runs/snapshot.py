"""What observers see of a run."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.runs.state import Run

Array = NDArray[np.floating]


class Snapshot:
    """Read-only view of a run after an iteration; copy from it what should outlast the moment.

    Callbacks are given one, ``iter_fit`` yields them.

    Attributes
    ----------
    start, n_starts : int
        The start that this iteration belongs to, counting from 1, and how many there will be at most.
    iteration, max_iter : int
    objective, error, seconds : float
        The measures of this iteration, as in ``history_``.
    primal, dual, rho : float
        Of ROAD.
    code_change, atom_change : float
        Of a two-stage method.

    Examples
    --------
    >>> from roadict import AlternatingDictionaryLearning
    >>> from roadict.synthetic import planted
    >>> seen = []
    >>> def stop_after_three(snapshot):
    ...     seen.append(snapshot.error)
    ...     return snapshot.iteration == 3
    >>> model = AlternatingDictionaryLearning(8, n_nonzero_coefs=2, callback=stop_after_three, random_state=0)
    >>> model.fit(planted(60, 6, 8, sparsity=2, random_state=0).data).stop_reason_, len(seen)
    ('callback', 3)
    """

    def __init__(
        self,
        run: Run,
        row: Mapping[str, float],
        residuals: tuple[str, str],
        *,
        iteration: int,
        max_iter: int,
        start: int = 1,
        n_starts: int = 1,
        unit: float = 1.0,
        finite: bool = True,
    ) -> None:
        self._run, self._row, self._residuals, self._unit = run, row, residuals, unit
        self.iteration, self.max_iter = iteration, max_iter
        self.start, self.n_starts = start, n_starts
        self.finite = finite
        self.stopped = False

    def __getattr__(self, name: str) -> float:
        row: Mapping[str, float] = self.__dict__.get("_row", {})
        if name not in row:
            raise AttributeError(f"a snapshot of this run has no {name!r}; it has {', '.join(row)}")
        return row[name]

    @property
    def residuals(self) -> dict[str, float]:
        """Measures that fall to zero as the run converges (primal and dual, or code_change and atom_change)."""
        return {name: self._row[name] for name in self._residuals}

    @property
    def dictionary(self) -> Array:
        """Atoms after this iteration, shape (n_components, n_features); a copy that cannot be written to."""
        return _read_only(np.array(self._run.dictionary()))

    @property
    def codes(self) -> Array:
        """Codes after this iteration, shape (n_samples, n_components), in the units of the data."""
        return _read_only(self._run.codes() * self._unit)

    def stop(self) -> None:
        """End the run after this iteration, as a callback does by returning True."""
        self.stopped = True


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


Callback = Callable[[Snapshot], Any]
