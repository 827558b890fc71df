"""From the sums of an iteration to its measures; the engines that run the fused recurrence share it."""

import math

import numpy as np
from numpy.typing import NDArray

from roadict.engines.columns import DRIFT, ERROR, GAP, MISFIT, MOVED, OBJECTIVE, SIZE
from roadict.formulation import Formulation
from roadict.runs.measures import Measures


def measures_of(
    sums: NDArray[np.floating],
    formulation: Formulation,
    *,
    share: float,
    kept: float,
    norm_before: float,
    data_norm: float,
) -> Measures:
    """Measures of an iteration.

    Parameters
    ----------
    sums : array with the columns SUMS of ``columns``
    formulation : Formulation
    share, kept : float
        Share of H that S3 kept before the iteration and after it.
    norm_before : float
        Norm of H before the iteration.
    data_norm : float
    """
    norm = math.sqrt(sums[MISFIT])
    # Y - ΣC - S3 is the change of U3 = -(1 - t)H; written so that nothing cancels when H settles.
    keep, drift = 1 - kept, float(sums[DRIFT])
    change = (1 - share) - keep
    shrunk = norm_before**2 - norm**2
    data_gap = keep**2 * drift + keep * change * (shrunk + drift) + (change * norm_before) ** 2
    return Measures.relative(
        objective=float(sums[OBJECTIVE]) + formulation.misfit_cost(kept * norm),
        primal=math.sqrt(max(sums[GAP] + data_gap, 0.0)),
        dual=math.sqrt(max(sums[MOVED], 0.0)),
        error=math.sqrt(sums[ERROR]),
        consensus=math.sqrt(max(sums[SIZE], 0.0)),
        data=data_norm,
    )
