"""Measures of one iteration, of ROAD and of two-stage methods."""

import math
from dataclasses import dataclass
from typing import ClassVar

MIN_NORM = 1e-6
"""Minimum norm of C or S3, relative to the data's, that residuals are divided by."""


@dataclass(frozen=True)
class Measures:
    """Measures of an iteration of ROAD.

    ``objective`` is Σ‖A_k‖_{2,1}, plus the squared misfit of the Lasso form;
    ``primal`` is ‖(A-C-S1, B-C-S2, Y-ΣC-S3)‖/‖C‖; ``dual`` is ‖C⁺-C‖/‖C⁺‖, in the inexact form ‖S⁺-S‖/‖S3⁺‖ with
    S = (S1, S2, S3), as in the paper: C creeps there, and changes little long before it has arrived;
    ``error`` is the relative data error of the codes u_k·A_k over the observed entries.
    """

    RESIDUALS: ClassVar[tuple[str, ...]] = ("primal", "dual")
    """Measures that tend to zero as a run converges."""
    objective: float
    primal: float
    dual: float
    error: float

    @classmethod
    def relative(
        cls,
        *,
        objective: float,
        primal: float,
        dual: float,
        error: float,
        consensus: float,
        data: float,
        slack: float | None = None,
    ) -> "Measures":
        """Divide residuals by the norm of C (bounded below, as C may vanish) and the error by the norm of the data.

        ``slack``: the norm of S3, by which the dual residual of the inexact form is divided instead.
        """
        least = MIN_NORM * data
        size = max(consensus, least)
        return cls(objective, primal / size, dual / (size if slack is None else max(slack, least)), error / data)


@dataclass(frozen=True)
class Changes:
    """Measures of an iteration of a two-stage method: relative changes of codes and atoms instead of residuals."""

    RESIDUALS: ClassVar[tuple[str, ...]] = ("code_change", "atom_change")
    objective: float
    code_change: float
    atom_change: float
    error: float


@dataclass(frozen=True)
class DescentMeasures:
    """Measures of an iteration of the descent after a search of ROAD.

    ``stationarity`` is the distance of the atoms from the best ones for the same codes, see ``road.descent``.
    """

    RESIDUALS: ClassVar[tuple[str, ...]] = ("stationarity",)
    objective: float
    stationarity: float
    error: float


@dataclass(frozen=True)
class BatchMeasures:
    """Measures of some mini-batches: objective and error are those of a held-out batch.

    ``change`` is the relative change of the objective in the last pass over all samples, 1 until there was one.
    """

    RESIDUALS: ClassVar[tuple[str, ...]] = ("change",)
    objective: float
    change: float
    error: float
    samples_per_second: float


Reported = Measures | Changes | DescentMeasures | BatchMeasures


def is_finite(measures: Reported) -> bool:
    """Whether every number is finite."""
    return all(map(math.isfinite, vars(measures).values()))
