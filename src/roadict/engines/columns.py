"""Columns of the sums, reports and control numbers of the engines.

Plain integers: they index arrays, Numba compiles them in, Triton takes them as ``tl.constexpr``.
"""

SUMS = range(7)
OBJECTIVE, GAP, MOVED, SIZE, ERROR, MISFIT, DRIFT = SUMS
"""Σ‖A‖, then squared norms over all samples: consensus gap, change of C, C, data error, misfit H, change of H.

In the inexact form the change is that of S1 and S2 instead of C.
"""
N_SUMS = len(SUMS)

# On a GPU a report is the sums, padded to a power of two for Triton's tiles, followed by:
SUMS_WIDTH = 8
OLD_SHARE, OLD_NORM, NEW_SHARE = range(SUMS_WIDTH, SUMS_WIDTH + 3)
"""Share of H that S3 absorbs and norm of H before the iteration, share after it."""
N_REPORT = 16

# Control numbers on a GPU, one row per problem.
RHO, NEXT_RHO = 0, 1
LIMIT = 2  # the ball's radius, or β3 of a ridge
SHARE = 3  # of the misfit that S3 absorbs
STRETCH = 4  # factor of the misfit after a change of ρ
NORM = 5  # of the misfit, stretched
COUNT = 6  # iterations since the last reading of reports
ACTIVE = 7  # 0: kernels skip the problem
N_CONTROL = 8
