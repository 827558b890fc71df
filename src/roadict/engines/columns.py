"""Columns of the rows of numbers that all engines sum and report.

Plain integers: arrays are indexed with them, Numba compiles them in, Triton takes them as ``tl.constexpr``.
"""

SUMS = range(7)
OBJECTIVE, GAP, MOVED, SIZE, ERROR, MISFIT, DRIFT = SUMS
"""Σ‖A‖, then squared norms over all samples: consensus gap, change of C, C, data error, misfit H, change of H."""
N_SUMS = len(SUMS)

# A GPU reports the sums in a row that is a power of two long, as Triton's tiles are, and then:
SUMS_WIDTH = 8
OLD_SHARE, OLD_NORM, NEW_SHARE = range(SUMS_WIDTH, SUMS_WIDTH + 3)
"""Share of H that S3 kept before the iteration, norm of H then, share after it."""
N_REPORT = 16

# A GPU's control numbers, one row for each problem.
RHO, NEXT_RHO = 0, 1
LIMIT = 2  # the ball's radius, or β3 of a ridge
SHARE = 3  # of the misfit that S3 keeps
STRETCH = 4  # of the misfit, where ρ has changed
NORM = 5  # of the misfit, stretched
COUNT = 6  # iterations since reports were read
ACTIVE = 7  # 0: the kernels leave this problem alone
N_CONTROL = 8
