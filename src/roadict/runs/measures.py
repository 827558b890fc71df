"""What one iteration reports."""

import math
from dataclasses import dataclass

SMALLEST_CONSENSUS = 1e-6
"""Norm of C, relative to the data's, below which residuals are no longer measured against it."""


@dataclass(frozen=True)
class Measures:
    """What one iteration reports.

    ``objective`` is Σ‖A_k‖_{2,1}, plus the squared misfit of the Lasso form;
    ``primal`` is ‖(A-C-S1, B-C-S2, Y-ΣC-S3)‖/‖C‖; ``dual`` is ‖C⁺-C‖/‖C⁺‖;
    ``error`` is the relative data error of the codes u_k·A_k over the observed entries.
    """

    objective: float
    primal: float
    dual: float
    error: float

    @classmethod
    def relative(
        cls, *, objective: float, primal: float, dual: float, error: float, consensus: float, data: float
    ) -> "Measures":
        """Divide norms: residuals by that of C (kept from vanishing where C does), the error by that of the data."""
        size = max(consensus, SMALLEST_CONSENSUS * data)
        return cls(objective, primal / size, dual / size, error / data)

    @property
    def finite(self) -> bool:
        """Whether every number is finite."""
        return all(map(math.isfinite, (self.objective, self.primal, self.dual, self.error)))
