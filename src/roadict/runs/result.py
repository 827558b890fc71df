"""The result of a fit, in the user's units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict.progress.words import duration
from roadict.ranks.collectives import largest, norm
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.loop import Outcome
from roadict.wording import plural

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Fit:
    """Result of a fit in the user's units: atoms of unit norm, polished codes, and the outcome of the run.

    Each rank has the codes of its own samples; everything else refers to all samples.
    """

    outcome: Outcome
    dictionary: Array
    codes: Array
    error: float
    objective: float
    exact: bool = False
    """Whether the exact finish succeeded: nearly every sample is a combination of few atoms, up to rounding."""
    n_starts: int = 1
    """Number of starts that were run."""
    n_agreed: int = 1
    """Number of starts, this one included, with the same objective and atoms."""

    usage: Array | None = None
    """Share of the samples that use each atom, if there are no codes of all samples."""

    @property
    def final_objective(self) -> float:
        """Objective of the last iteration: unlike that of the polished codes, comparable between starts."""
        return float(self.outcome.history["objective"][-1])


def relative_error(
    data: Array, observed: NDArray[np.bool_] | None, codes: Array, dictionary: Array, comm: Comm = SERIAL
) -> float:
    """``‖data - codes @ dictionary‖_F / ‖data‖_F`` over the observed entries; for zero data the residual's norm."""
    top = largest(comm, data) or 1.0  # squares must neither vanish nor overflow
    residual = data / top - (codes / top) @ dictionary.astype(np.float64)
    if observed is not None:
        residual = residual * observed
    size, misfit = norm(comm, data / top), norm(comm, residual)
    return misfit / size if size > 0 else misfit


def summary(fit: Fit) -> str:
    """Summarise a fit in one line."""
    history = fit.outcome.history
    finish = ", by the exact finish" if fit.exact else ""
    return (
        f"{fit.outcome.stop_reason} after {plural(len(history['objective']), 'iteration')}{finish}, "
        f"{duration(history['seconds'][-1])}: objective {fit.objective:.6g}, data error {fit.error:.1e}"
    )
