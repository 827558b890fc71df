"""The history of a run."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.extras import require
from roadict.wording import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("objective", "primal", "dual", "error", "rho", "seconds")
"""Of ROAD."""
DESCENT_COLUMNS = ("stationarity", "change", "samples_per_second")
"""Of its descents, and of mini-batches; optional."""
TWO_STAGE_COLUMNS = ("objective", "code_change", "atom_change", "error", "seconds")


class Finished(NamedTuple):
    """Values of the returned fit, after the exact finish or the polish; the last iteration had different ones.

    ``exact`` is None for a model of version 0.1, which did not record it.
    """

    objective: float
    error: float
    exact: bool | None

    @property
    def label(self) -> str:
        """Label in charts."""
        return "exact finish" if self.exact else "returned"


class History(Mapping[str, NDArray[np.float64]]):
    """Per-iteration measures of a run, by name.

    Both learners: ``objective`` (ROAD: Σ‖A_k‖, plus the squared misfit of the Lasso form), ``error`` (relative data
    error; ROAD: before the codes are polished) and ``seconds`` since the start. ROAD: ``primal`` and ``dual`` (relative
    residuals) and ``rho``; of its descents ``stationarity``; of mini-batches, whose objective and error are those of a
    held-out batch, ``change`` (of the objective, in a pass) and ``samples_per_second``. Two-stage methods:
    ``code_change`` and ``atom_change`` (relative changes per iteration).

    Attributes
    ----------
    finished : Finished or None
        Objective and error of the returned fit, and whether the exact finish produced it.

    Examples
    --------
    >>> history = History({name: [1.0, 0.5] for name in COLUMNS})
    >>> len(history["objective"]), list(history)[:2]
    (2, ['objective', 'primal'])
    """

    def __init__(self, columns: Mapping[str, Any], finished: Finished | None = None) -> None:
        self.finished = finished
        self._columns = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}

    @property
    def residuals(self) -> tuple[str, str]:
        """Names of the two columns that tend to zero as a run converges."""
        return ("primal", "dual") if "primal" in self._columns else ("code_change", "atom_change")

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"History({plural(len(self['objective']), 'iteration')} of {', '.join(self)})"

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with one row per iteration, indexed from 1."""
        require("to_frame()", "pandas")
        import pandas as pd

        index = pd.RangeIndex(1, len(self["objective"]) + 1, name="iteration")
        return pd.DataFrame(self._columns, index=index)

    def plot(self) -> "Figure":
        """Plot objective, residuals (or changes) and data error over the iterations; returns a matplotlib Figure.

        A marker after the last iteration shows the returned fit.
        """
        from roadict.plotting import history_figure

        finished = self.finished
        marked = None if finished is None else (finished.objective, finished.error, finished.label)
        return history_figure(self._columns, finished=marked)
