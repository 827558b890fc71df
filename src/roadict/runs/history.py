"""What happened along a run."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("objective", "primal", "dual", "error", "rho", "seconds")
"""Of ROAD."""
TWO_STAGE_COLUMNS = ("objective", "code_change", "atom_change", "error", "seconds")


class Finished(NamedTuple):
    """What a fit returned, after the exact finish or the polish of its codes; its last iteration had other values."""

    objective: float
    error: float
    exact: bool

    @property
    def label(self) -> str:
        """What a chart calls it."""
        return "exact finish" if self.exact else "returned"


class History(Mapping[str, NDArray[np.float64]]):
    """Per-iteration measures of a run, by name.

    Of both learners: ``objective`` (of ROAD Σ‖A_k‖, plus the squared misfit of the Lasso form), ``error`` (relative
    data error, of ROAD before its codes are polished) and ``seconds`` since the start. Of ROAD: ``primal`` and
    ``dual`` (relative residuals) and ``rho``. Of two-stage methods: ``code_change`` and ``atom_change`` (relative
    changes in the iteration).

    Attributes
    ----------
    finished : Finished or None
        Objective and error of the fit as it was returned, and whether the exact finish made it.

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
        """Names of the two columns that fall to zero as a run converges."""
        return ("primal", "dual") if "primal" in self._columns else ("code_change", "atom_change")

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"History({len(self['objective'])} iterations of {', '.join(self)})"

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame, one row per iteration, the index counting from 1."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise ImportError("history as a DataFrame needs pandas: pip install 'roadict[dataframe]'") from missing
        index = pd.RangeIndex(1, len(self["objective"]) + 1, name="iteration")
        return pd.DataFrame(self._columns, index=index)

    def plot(self) -> "Figure":
        """Draw objective, residuals (or changes) and data error against the iteration; returns a matplotlib Figure.

        The fit as it was returned is a marked point after the last iteration.
        """
        from roadict.plotting import history_figure

        finished = self.finished
        marked = None if finished is None else (finished.objective, finished.error, finished.label)
        return history_figure(self._columns, finished=marked)
