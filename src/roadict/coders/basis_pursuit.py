"""Basis pursuit: the smallest Σ|codes| that reproduces a sample, or stays within an error bound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.active import correlate_sample, reset
from roadict.coders.kernels import correlate, least_squares, split_features, subtract_atoms
from roadict.coders.lasso import solve_lasso
from roadict.coders.scaling import ScaledProblem, encode_supports
from roadict.kernels import kernel

Array = NDArray[np.floating]

LASSO_GAP = 1e-12
ROUNDING = 1e-17
FLOOR = 1e-12
"""Smallest weight tried, relative to the one that makes all codes zero."""
GAP = 1e-9
MAX_GAP = 1e-6
"""Bounds on the relative gap between Σ|codes| and its dual: the usual one, and the one for the hardest samples."""
MAX_WEIGHTS = 60


@kernel
def _refit(rows, columns, gram, seen, missing, sample, codes, residual, correlations):
    """Refit the nonzero codes by least squares in place; sets the residual and its correlations, returns its square.

    A second fit, of the residual of the first, removes its rounding errors.
    """
    support = np.flatnonzero(codes)
    square = 0.0
    for again in range(3):
        square = subtract_atoms(rows, support, codes[support], sample, missing, residual)
        correlate(columns, seen, residual, correlations)
        if again < 2:
            codes[support] += least_squares(rows, gram, missing, correlations, support)
    return square


@kernel
def _duality_gap(square, codes, correlations, alpha, positive):
    """Return the gap of the Lasso, as in ``solve_lasso``, from the square and correlations of the residual."""
    largest = 0.0
    for k in range(len(codes)):
        largest = max(largest, correlations[k] if positive else abs(correlations[k]))
    shrink = min(1.0, alpha / largest) if largest > 0 else 1.0
    gap = square / 2 * (1 - shrink) ** 2
    for k in range(len(codes)):
        gap += alpha * abs(codes[k]) - shrink * codes[k] * correlations[k]
    return gap


@kernel
def _is_proven(codes, correlations, alpha, square, least, largest, tolerance, positive):
    """Return whether Σ|codes| is proven minimal.

    correlations, square: of the residual. alpha: weight of the Lasso that the codes should solve, or 0 if the residual
    should be minimal and Σ|codes| equal to ``least``.
    """
    total = np.sum(np.abs(codes))  # codes of the wrong sign count against the proof
    if alpha > 0:
        return _duality_gap(square, codes, correlations, alpha, positive) <= tolerance * alpha * total
    excess = np.max(correlations if positive else np.abs(correlations))
    return total - least <= tolerance * total and excess <= tolerance * largest


@kernel
def _lower_bound(sample, point, products, correlations, negligible, positive):
    """Return a lower bound on Σ|codes| of all best fits, from a dual point, whose products with the atoms are given.

    The point is shrunk to feasibility. If codes must not be negative, only products above one violate it, and only
    with atoms orthogonal to the residual, as no best fit uses others; the bound then holds if the correlations are
    those of a best fit.
    """
    largest = 1.0
    for k in range(len(products)):
        if not positive:
            largest = max(largest, abs(products[k]))
        elif correlations[k] > -negligible:
            largest = max(largest, products[k])
    return np.sum(sample * point) / largest


@kernel
def _pursue_sample(work, rows, columns, gram, observed, seen, missing, sample, square, codes, epsilon):
    """Follow the Lasso path to the weight at which it solves the problem; return whether optimality is proven.

    For given signs the Lasso codes are fitted - alpha * slope, with squared misfit base + alpha² * curvature: the
    weight that meets the bound for these signs, and its codes, follow in closed form.
    """
    residual, point = np.empty(len(sample)), np.empty(len(sample))
    correlations, products = np.empty(len(codes)), np.empty(len(codes))
    codes[:] = 0.0
    positive, largest = work.positive, reset(work)
    if largest == 0 or epsilon >= 1:
        return True
    target = epsilon * epsilon * square
    low, high, alpha, least = 0.0, largest, largest * max(0.1, min(epsilon, 0.9)), 0.0
    for _ in range(MAX_WEIGHTS):
        reset(work)
        size, _ = solve_lasso(work, rows, columns, gram, observed, square, largest, codes, alpha, LASSO_GAP, ROUNDING)
        codes[:] = 0.0
        codes[work.atoms[:size]] = work.codes[:size]
        found = subtract_atoms(rows, work.atoms[:size], work.codes, sample, missing, residual)
        support, fitted = np.flatnonzero(codes), codes.copy()
        slope = least_squares(rows, gram, missing, np.sign(codes), support)
        curvature = subtract_atoms(rows, support, -slope, np.zeros_like(sample), missing, point)
        correlate(columns, seen, point, products)
        base = _refit(rows, columns, gram, seen, missing, sample, fitted, residual, correlations)
        following = np.sqrt((target - base) / curvature) if target > base else 0.0
        fitted[support] -= following * slope
        misfit = base + following * following * curvature
        # A nearly sparse sample is decided at weights where the signs are close to rounding errors.
        tolerance = min(max(GAP, 1e-15 * largest / alpha), MAX_GAP)
        lower = _lower_bound(sample, point, products, correlations, tolerance * largest, positive)
        least = lower if positive else max(least, lower)
        correlations += following * products
        if _is_proven(fitted, correlations, following, misfit, least, largest, tolerance, positive):
            codes[:] = np.maximum(fitted, 0.0) if positive else fitted
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
    if not positive:  # else those of the last Lasso
        codes[:] = fitted
    return False


@kernel
def _basis_pursuit_chunk(rows, columns, gram, observed, samples, squares, signs, work, out, epsilon):
    counts, atoms, values = out
    codes = np.empty(len(rows))
    n_unconverged, position = 0, 0
    for n in range(len(samples)):
        seen, missing = split_features(observed, n, rows.shape[1])
        given = observed[n], seen, missing, samples[n], squares[n]
        correlate_sample(work, columns, samples[n])
        n_unconverged += not _pursue_sample(work, rows, columns, gram, *given, codes, epsilon[n])
        counts[n] = 0
        for k in np.flatnonzero(codes):
            atoms[position], values[position] = k, codes[k]
            position += 1
            counts[n] += 1
    return n_unconverged


def basis_pursuit(
    problem: ScaledProblem, epsilon: Array, n_jobs: int | None, sparse: bool = False, positive: bool = False
) -> tuple[Any, int]:
    """Minimise ``Σ|codes|`` subject to ``‖sample - codes @ dictionary‖ ≤ epsilon ‖sample‖``.

    If no codes meet the bound, the result has the smallest Σ|codes| among the best fits, those of least squares, or of
    nonnegative least squares if codes must not be negative. The solution lies on the Lasso
    path: a few warm-started Lasso solutions lead to it, and a dual point proves it optimal.

    Parameters
    ----------
    problem : ScaledProblem
    epsilon : array of shape (n_samples,)
        0: equality.
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.
    positive : bool
        Whether codes must not be negative.

    Returns
    -------
    codes : array or CSR array of shape (n_samples, n_components)
    n_unconverged : int
        Number of samples whose codes are not proven optimal (to 1e-9, if rounding allows it).

    References
    ----------
    S. Chen, D. Donoho and M. Saunders, "Atomic decomposition by basis pursuit", 1998.
    """
    return encode_supports(_basis_pursuit_chunk, problem, epsilon, sparse=sparse, n_jobs=n_jobs, positive=positive)
