"""Basis pursuit: the smallest Σ|codes| that reproduces a sample, or stays within an error bound."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import correlate, least_squares, split_features, subtract_atoms
from roadict.coders.lasso import FLOOR, solve_lasso
from roadict.coders.scaling import Scaled, code_chunks
from roadict.parallel import kernel

Array = NDArray[np.floating]

LASSO_GAP = 1e-12
GAP = 1e-9
"""Bound on the gap between Σ|codes| and its dual, as a share of it."""
MAX_WEIGHTS = 60


@kernel
def _refit(  # type: ignore[no-untyped-def]
    rows, columns, gram, seen, hidden, sample, codes, residual, correlations
):
    """Fit the codes in use by least squares, in place; leave the residual and its correlations.

    Twice: the second fit, of what the first left, takes off the rounding of the first.
    """
    support = np.flatnonzero(codes)
    for _ in range(2):
        subtract_atoms(rows, support, codes[support], sample, hidden, residual)
        correlate(columns, seen, residual, correlations)
        codes[support] += least_squares(rows, gram, hidden, correlations, support)
    square = subtract_atoms(rows, support, codes[support], sample, hidden, residual)
    correlate(columns, seen, residual, correlations)
    return square


@kernel
def _is_optimal(codes, products, largest, correlations):  # type: ignore[no-untyped-def]
    """Tell whether the codes fit as well as any and a dual point proves their Σ|codes| smallest.

    products: of all atoms with the dual point; correlations: with the residual of the codes.
    """
    total, bound, steepest, left = 0.0, 0.0, 1.0, 0.0
    for k in range(len(codes)):
        total += abs(codes[k])
        bound += codes[k] * products[k]
        steepest = max(steepest, abs(products[k]))
        left = max(left, abs(correlations[k]))
    return total - bound / steepest <= GAP * total and left <= GAP * largest


@kernel
def _pursue_sample(  # type: ignore[no-untyped-def]
    rows, columns, gram, seen, hidden, sample, codes, epsilon, buffers, residuals
):
    """Follow the Lasso codes to the weight at which they solve the problem; return whether it was found.

    For given signs the Lasso codes are refitted + alpha * change, and their squared misfit is that of the refitted
    ones plus alpha² times a constant: the weight that meets the bound is then known exactly.
    """
    correlations, refitted = buffers[0], buffers[1]
    residual, left = residuals[0], residuals[1]
    codes[:] = 0.0
    correlate(columns, seen, sample, correlations)
    largest, square = np.max(np.abs(correlations)), np.sum(sample * sample)
    if largest == 0 or epsilon >= 1:
        return True
    target = epsilon * epsilon * square
    low, high, alpha = 0.0, largest, largest * max(0.1, min(epsilon, 0.9))
    for _ in range(MAX_WEIGHTS):
        solve_lasso(rows, columns, gram, seen, hidden, sample, codes, alpha, LASSO_GAP, residual, correlations)
        polished = codes.copy()
        base = _refit(rows, columns, gram, seen, hidden, sample, polished, left, refitted)
        if target <= 0:
            if _is_optimal(polished, (correlations - refitted) / alpha, largest, refitted):
                codes[:] = polished
                return True
            following = 0.1 * alpha
        else:
            found = np.sum(residual * residual)
            if found > target:
                high = alpha
            else:
                low = alpha
            change = np.sum((residual - left) ** 2)
            following = alpha * np.sqrt((target - base) / change) if target > base and change > 0 else 0.0
            if abs(following - alpha) <= GAP * alpha:
                codes[:] = polished + following / alpha * (codes - polished)
                return True
            if not low < following < high:
                following = np.sqrt(low * high) if low > 0 else 0.1 * high
        if following < FLOOR * largest:
            # Nothing fits better than least squares on this support, or the rest is rounding.
            codes[:] = polished
            return np.max(np.abs(refitted)) <= 1e-6 * largest
        alpha = following
    return False


@kernel
def _basis_pursuit_chunk(rows, columns, gram, observed, samples, codes, epsilon):  # type: ignore[no-untyped-def]
    n_components, n_features = rows.shape
    buffers, residuals = np.empty((2, n_components)), np.empty((2, n_features))
    rough = 0
    for n in range(len(samples)):
        seen, hidden = split_features(observed, n, n_features)
        rough += not _pursue_sample(
            rows, columns, gram, seen, hidden, samples[n], codes[n], epsilon[n], buffers, residuals
        )
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
        Number of samples for which the weight was not found.

    References
    ----------
    S. Chen, D. Donoho and M. Saunders, "Atomic decomposition by basis pursuit", 1998.
    """
    return code_chunks(_basis_pursuit_chunk, problem, epsilon, n_jobs=n_jobs)
