"""Snapshots of a run, for observers."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.runs.state import Run

Array = NDArray[np.floating]


class Snapshot:
    """Read-only view of a run after an iteration, passed to callbacks and yielded by ``iter_fit``.

    Atoms and codes are computed on access: read them before the next iteration.

    Attributes
    ----------
    start, n_starts : int
        Number of the start, counting from 1, and maximum number of starts.
    stage : {"noise", "search", "last step", "descent", "mini-batches"}
        What the run is for: to find the noise level (ROAD, with part of the entries hidden; its codes are those of the
        samples it uses), to find the atoms, to continue the best search on samples that were scaled for it, to lower
        the objective until it is stationary, or to do so in mini-batches (which have no codes). Searches, and descents
        that compare starts, may use some of the samples.
    iteration, max_iter : int
        Of the stage.
    share : float
        About how much of the whole fit is done, between 0 and 1; it never falls. How many stages follow, and when each
        converges, is not known in advance.
    objective, error, seconds : float
        Measures of this iteration, as in ``history_``.
    primal, dual, rho : float
        ROAD only; NaN in a descent.
    stationarity : float
        Descent only.
    change, samples_per_second : float
        Mini-batches only; their objective and error are those of a held-out batch.
    code_change, atom_change : float
        Two-stage methods only.

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
        residuals: tuple[str, ...],
        *,
        iteration: int,
        max_iter: int,
        start: int = 1,
        n_starts: int = 1,
        stage: str = "search",
        code_unit: float | Array = 1.0,
        finite: bool = True,
    ) -> None:
        self._run, self._row, self._residuals, self._code_unit = run, row, residuals, code_unit
        self.iteration, self.max_iter = iteration, max_iter
        self.start, self.n_starts, self.stage = start, n_starts, stage
        self.share = iteration / max_iter
        self.finite = finite
        self.stopped = False
        self._current = True

    def __getattr__(self, name: str) -> float:
        row: Mapping[str, float] = self.__dict__.get("_row", {})
        if name not in row:
            raise AttributeError(f"a snapshot of this run has no {name!r}; it has {', '.join(row)}")
        return row[name]

    def __repr__(self) -> str:
        measures = ", ".join(f"{name}={value:.4g}" for name, value in self._row.items())
        of_start = f" of start {self.start}/{self.n_starts}" if self.n_starts > 1 else ""
        return f"<Snapshot of iteration {self.iteration}/{self.max_iter}{of_start}: {measures}>"

    @property
    def residuals(self) -> dict[str, float]:
        """Measures that fall to zero as the run converges, by name."""
        return {name: self._row[name] for name in self._residuals}

    @property
    def dictionary(self) -> Array:
        """Atoms after this iteration, shape (n_components, n_features), as a read-only copy.

        Only while the snapshot is the latest one: the run holds one dictionary.
        """
        self._check_current()
        return _read_only(np.array(self._run.dictionary()))

    @property
    def codes(self) -> Array:
        """Codes after this iteration, shape (n_samples, n_components), in the units of the data; as ``dictionary``."""
        self._check_current()
        codes = self._run.codes()
        return _read_only((codes * self._code_unit).astype(codes.dtype))

    def stop(self) -> None:
        """End the run after this iteration, like a callback that returns True."""
        self._check_current()
        self.stopped = True

    def expire(self) -> None:
        """Mark the snapshot as outdated: the run is about to move on."""
        self._current = False

    def _check_current(self) -> None:
        if not self._current:
            raise RuntimeError(
                f"this snapshot is of iteration {self.iteration}, and the run has moved on or ended; read dictionary "
                "and codes, and call stop(), while it is the latest one"
            )


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


Callback = Callable[[Snapshot], Any]
