"""Measures of an iteration from its sums, shared by the engines of the fused recurrence."""

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
    share_before: float,
    share_after: float,
    norm_before: float,
    data_norm: float,
) -> Measures:
    """Compute the measures of an iteration.

    Parameters
    ----------
    sums : array with the columns SUMS of ``columns``
    formulation : Formulation
    share_before, share_after : float
        Share of H that S3 absorbs, before and after the iteration.
    norm_before : float
        Norm of H before the iteration.
    data_norm : float
    """
    norm = math.sqrt(sums[MISFIT])
    # Y - ΣC - S3 is the change of U3 = -(1 - t)H, in a form without cancellation as H converges.
    rest, drift = 1 - share_after, float(sums[DRIFT])
    change = (1 - share_before) - rest
    shrunk = norm_before**2 - norm**2
    data_gap = rest**2 * drift + rest * change * (shrunk + drift) + (change * norm_before) ** 2
    slack, moved = share_after * norm, float(sums[MOVED])
    if not formulation.exact_consensus:  # the share of S3 is constant there
        moved += share_after**2 * drift
    return Measures.relative(
        objective=float(sums[OBJECTIVE]) + formulation.misfit_cost(slack),
        primal=math.sqrt(max(sums[GAP] + data_gap, 0.0)),
        dual=math.sqrt(max(moved, 0.0)),
        error=math.sqrt(sums[ERROR]),
        consensus=math.sqrt(max(sums[SIZE], 0.0)),
        data=data_norm,
        slack=None if formulation.exact_consensus else slack,
    )
