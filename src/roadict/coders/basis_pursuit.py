"""Basis pursuit: the smallest Σ|codes| that reproduces a sample, or stays within an error bound."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import correlate, least_squares, split_features, subtract_atoms
from roadict.coders.lasso import duality_gap, solve_lasso
from roadict.coders.scaling import Scaled, code_chunks
from roadict.kernels import kernel

Array = NDArray[np.floating]

LASSO_GAP = 1e-12
ROUNDING = 1e-17
FLOOR = 1e-12
"""Smallest weight tried, as a share of the one that makes all codes zero."""
GAP = 1e-9
MAX_GAP = 1e-6
"""Bounds on the gap between Σ|codes| and its dual, as shares of it: the usual one, and that for the worst samples."""
MAX_WEIGHTS = 60


@kernel
def _refit(rows, columns, gram, seen, hidden, sample, codes, residual, correlations):
    """Fit the codes in use by least squares, in place; leave the residual and its correlations, return its square.

    Twice: the second fit, of what the first left, takes off the rounding of the first.
    """
    support = np.flatnonzero(codes)
    square = 0.0
    for again in range(3):
        square = subtract_atoms(rows, support, codes[support], sample, hidden, residual)
        correlate(columns, seen, residual, correlations)
        if again < 2:
            codes[support] += least_squares(rows, gram, hidden, correlations, support)
    return square


@kernel
def _is_proven(codes, correlations, alpha, square, least, largest, tolerance):
    """Tell whether Σ|codes| is proven the smallest.

    correlations, square: of the residual; alpha: weight of the Lasso of which the codes are to be the solution, or 0
    where the residual is to be as small as any and Σ|codes| is to be ``least``.
    """
    total = np.sum(np.abs(codes))
    if alpha > 0:
        gap, _, _ = duality_gap(square, codes, correlations, alpha)
        return gap <= tolerance * alpha * total
    return total - least <= tolerance * total and np.max(np.abs(correlations)) <= tolerance * largest


@kernel
def _pursue_sample(rows, columns, gram, seen, hidden, sample, codes, epsilon):
    """Follow the Lasso codes to the weight at which they solve the problem; return whether that is proven.

    For given signs the Lasso codes are fitted - alpha * slope, their squared misfit is base + alpha² * curvature: the
    weight that meets the bound for these signs, and the codes for it, are known exactly.
    """
    residual, point = np.empty(len(sample)), np.empty(len(sample))
    correlations, products = np.empty(len(codes)), np.empty(len(codes))
    codes[:] = 0.0
    correlate(columns, seen, sample, correlations)
    largest = np.max(np.abs(correlations))
    if largest == 0 or epsilon >= 1:
        return True
    target = epsilon * epsilon * np.sum(sample * sample)
    low, high, alpha, least = 0.0, largest, largest * max(0.1, min(epsilon, 0.9)), 0.0
    for _ in range(MAX_WEIGHTS):
        solve_lasso(
            rows, columns, gram, seen, hidden, sample, codes, alpha, LASSO_GAP, ROUNDING, residual, correlations
        )
        found = np.sum(residual * residual)
        support, fitted = np.flatnonzero(codes), codes.copy()
        slope = least_squares(rows, gram, hidden, np.sign(codes), support)
        curvature = subtract_atoms(rows, support, -slope, np.zeros_like(sample), hidden, point)
        correlate(columns, seen, point, products)
        base = _refit(rows, columns, gram, seen, hidden, sample, fitted, residual, correlations)
        following = np.sqrt((target - base) / curvature) if target > base else 0.0
        fitted[support] -= following * slope
        square = base + following * following * curvature
        # The point is dual feasible once shrunk, and so bounds Σ|codes| of all that fit as well as any.
        least = max(least, np.sum(sample * point) / max(1.0, np.max(np.abs(products))))
        # A sample that few atoms nearly make up is settled at weights where signs are near the rounding.
        tolerance = min(max(GAP, 1e-15 * largest / alpha), MAX_GAP)
        correlations += following * products
        if _is_proven(fitted, correlations, following, square, least, largest, tolerance):
            codes[:] = fitted
            return True
        if found > target:
            high = alpha
        else:
            low = alpha
        if not low < following < high:
            following = np.sqrt(low * high) if low > 0 else 0.1 * high
        if following < FLOOR * largest:
            break  # the rest is rounding
        alpha = following
    codes[:] = fitted
    return False


@kernel
def _basis_pursuit_chunk(rows, columns, gram, observed, samples, codes, epsilon):
    rough = 0
    for n in range(len(samples)):
        seen, hidden = split_features(observed, n, rows.shape[1])
        rough += not _pursue_sample(rows, columns, gram, seen, hidden, samples[n], codes[n], epsilon[n])
    return rough


def basis_pursuit(problem: Scaled, epsilon: Array, n_jobs: int | None) -> tuple[Array, int]:
    """Minimise ``Σ|codes|`` subject to ``‖sample - codes @ dictionary‖ ≤ epsilon ‖sample‖``.

    Where no codes meet the bound, the smallest Σ|codes| among those that fit best. The solution lies on the path of
    Lasso solutions: a few of them, each started from the last, lead to it, and a dual point proves it optimal.

    Parameters
    ----------
    problem : Scaled
    epsilon : array of shape (n_samples,)
        0: equality.
    n_jobs : int or None

    Returns
    -------
    codes : array of shape (n_samples, n_components)
    rough : int
        Number of samples whose codes are not proven optimal (to 1e-9, where rounding allows it).

    References
    ----------
    S. Chen, D. Donoho and M. Saunders, "Atomic decomposition by basis pursuit", 1998.
    """
    return code_chunks(_basis_pursuit_chunk, problem, epsilon, n_jobs=n_jobs)
