"""What a fit leaves, in the user's units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict.progress.terminal import duration
from roadict.ranks.collectives import largest, norm
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.loop import Outcome

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Fit:
    """What a fit gives, in the user's units: atoms of unit norm, polished codes, and how it went.

    Of several ranks each has the codes of its own samples; all else is of all samples.
    """

    outcome: Outcome
    dictionary: Array
    codes: Array
    error: float
    objective: float
    exact: bool = False
    """Whether the exact finish succeeded: nearly every sample is a combination of few atoms, to rounding."""
    n_starts: int = 1
    """Starts that were run."""
    n_agreed: int = 1
    """Starts, this one included, that found the same atoms at the same objective."""

    @property
    def minimised(self) -> float:
        """What the run minimised, at its end: unlike the objective of polished codes it can be compared."""
        return float(self.outcome.history["objective"][-1])


def relative_error(
    data: Array, observed: NDArray[np.bool_] | None, codes: Array, dictionary: Array, comm: Comm = SERIAL
) -> float:
    """``‖data - codes @ dictionary‖_F / ‖data‖_F`` over the observed entries (of zero data: the residual's norm)."""
    top = largest(comm, data) or 1.0  # squares must neither vanish nor overflow
    residual = data / top - (codes / top) @ dictionary.astype(np.float64)
    if observed is not None:
        residual = residual * observed
    size, misfit = norm(comm, data / top), norm(comm, residual)
    return misfit / size if size > 0 else misfit


def summary(fit: Fit) -> str:
    """Say how a fit ended, in one line."""
    history = fit.outcome.history
    finish = ", by the exact finish" if fit.exact else ""
    return (
        f"{fit.outcome.stop_reason} after {len(history['objective'])} iterations{finish}, "
        f"{duration(history['seconds'][-1])}: objective {fit.objective:.6g}, data error {fit.error:.1e}"
    )
