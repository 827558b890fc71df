"""What happened along a run."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("objective", "primal", "dual", "error", "rho", "seconds")


class History(Mapping[str, NDArray[np.float64]]):
    """Per-iteration measures of a run, by name.

    ``objective`` (Σ‖A_k‖, plus the squared misfit of the Lasso form), ``primal`` and ``dual`` (relative residuals),
    ``error`` (relative data error of the codes before their polish), ``rho`` and ``seconds`` (since the start).

    Examples
    --------
    >>> history = History({name: [1.0, 0.5] for name in COLUMNS})
    >>> len(history["objective"]), list(history)[:2]
    (2, ['objective', 'primal'])
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: np.asarray(columns[name], dtype=np.float64) for name in COLUMNS}

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
        """Draw objective, residuals and data error against the iteration; returns a matplotlib Figure."""
        from roadict.plotting import history_figure

        return history_figure(self._columns)
