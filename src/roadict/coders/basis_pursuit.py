"""Basis pursuit: the smallest Σ|codes| that reproduces a sample, or stays within an error bound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.active import (
    coder,
    combine,
    correlate_sample,
    forget_support,
    leaf,
    reset,
    solve_support,
    write_support,
)
from roadict.coders.lasso import solve_lasso
from roadict.coders.scaling import ScaledProblem, encode_supports
from roadict.kernels import inlined

Array = NDArray[np.floating]

LASSO_GAP = 1e-12
ROUNDING = 1e-17
FLOOR = 1e-12
"""Smallest weight tried, relative to the one that makes all codes zero."""
GAP = 1e-9
MAX_GAP = 1e-6
"""Bounds on the relative gap between Σ|codes| and its dual: the usual one, and the one for the hardest samples."""
MAX_WEIGHTS = 60


# Not literals, for each of which Numba would compile a function anew.
CODES, FITTED, CORRELATIONS, PRODUCTS, SLOPE, RESIDUAL, POINT = np.arange(7)
"""Rows of scratch: codes, correlations and products per atom; fitted codes and slope per atom of the support; the last
two per feature."""


@leaf
def _subtract_support(work, size, row, rows, seen, sample, out):
    """Set a row of scratch to sample - scratch[row] @ atoms of the support; return its squared norm.

    The row has one entry per atom of the support. Features that are not seen get zero.
    """
    scratch, square = work.scratch, 0.0
    for m in range(rows.shape[1]):
        scratch[out, m] = sample[m]
    for i in range(size):
        value, atom = scratch[row, i], work.atoms[i]
        for m in range(rows.shape[1]):
            scratch[out, m] -= value * rows[atom, m]
    for m in range(rows.shape[1]):
        if seen.size > 0 and not seen[m]:
            scratch[out, m] = 0.0
        square += scratch[out, m] * scratch[out, m]
    return square


@leaf
def _correlate_row(work, columns, row, out):
    """Set a row of scratch to the products of another, zero at features that are not seen, with all atoms."""
    for k in range(columns.shape[1]):
        work.scratch[out, k] = 0.0
    combine(columns, work.order, work.scratch[row], len(columns), work.scratch[out], columns.shape[1])


@inlined
def _refit(work, size, rows, columns, seen, sample):
    """Fit the support's codes by least squares; sets the residual and its correlations, returns its square.

    A second fit, of the residual of the first, removes its rounding errors.
    """
    scratch, square = work.scratch, 0.0
    for i in range(size):
        scratch[FITTED, i] = work.codes[i]
    for again in range(3):
        square = _subtract_support(work, size, FITTED, rows, seen, sample, RESIDUAL)
        _correlate_row(work, columns, RESIDUAL, CORRELATIONS)
        if again < 2:
            for i in range(size):
                work.products[i] = scratch[CORRELATIONS, work.atoms[i]]
            solve_support(work, size)
            for i in range(size):
                scratch[FITTED, i] += work.steps[i]
    return square


@inlined
def _duality_gap(square, work, size, alpha):
    """Return the gap of the Lasso, as in ``solve_lasso``, from the square and correlations of the residual."""
    scratch, largest = work.scratch, 0.0
    for k in range(len(work.start)):
        correlation = scratch[CORRELATIONS, k]
        largest = max(largest, correlation if work.positive else abs(correlation))
    shrink = min(1.0, alpha / largest) if largest > 0 else 1.0
    gap = square / 2 * (1 - shrink) ** 2
    for i in range(size):
        code = scratch[FITTED, i]
        gap += alpha * abs(code) - shrink * code * scratch[CORRELATIONS, work.atoms[i]]
    return gap


@inlined
def _is_proven(work, size, alpha, square, least, largest, tolerance):
    """Return whether Σ|codes| of the fitted codes is proven minimal.

    square: of the residual. alpha: weight of the Lasso that the codes should solve, or 0 if the residual should be
    minimal and Σ|codes| equal to ``least``.
    """
    scratch, total, excess = work.scratch, 0.0, -np.inf
    for i in range(size):
        total += abs(scratch[FITTED, i])  # codes of the wrong sign count against the proof
    if alpha > 0:
        return _duality_gap(square, work, size, alpha) <= tolerance * alpha * total
    for k in range(len(work.start)):
        correlation = scratch[CORRELATIONS, k]
        excess = max(excess, correlation if work.positive else abs(correlation))
    return total - least <= tolerance * total and excess <= tolerance * largest


@inlined
def _lower_bound(work, sample, negligible):
    """Return a lower bound on Σ|codes| of all best fits, from a dual point, whose products with the atoms are given.

    The point is shrunk to feasibility. If codes must not be negative, only products above one violate it, and only
    with atoms orthogonal to the residual, as no best fit uses others; the bound then holds if the correlations are
    those of a best fit.
    """
    scratch, largest, product = work.scratch, 1.0, 0.0
    for k in range(len(work.start)):
        if not work.positive:
            largest = max(largest, abs(scratch[PRODUCTS, k]))
        elif scratch[CORRELATIONS, k] > -negligible:
            largest = max(largest, scratch[PRODUCTS, k])
    for m in range(len(sample)):
        product += sample[m] * scratch[POINT, m]
    return product / largest


@inlined
def _sloped(work, size, rows, columns, seen):
    """Set slope, point and products to those of the support's signs; return the squared norm of the point.

    For given signs the Lasso codes are fitted - alpha * slope, with squared misfit base + alpha² * curvature.
    """
    scratch = work.scratch
    for i in range(size):
        work.products[i] = np.sign(work.codes[i])
    solve_support(work, size)
    for i in range(size):
        scratch[SLOPE, i] = -work.steps[i]
    for m in range(rows.shape[1]):
        scratch[RESIDUAL, m] = 0.0  # nothing to subtract from; a refit sets the residual next
    curvature = _subtract_support(work, size, SLOPE, rows, seen, scratch[RESIDUAL], POINT)
    _correlate_row(work, columns, POINT, PRODUCTS)
    return curvature


@inlined
def _pursue_sample(work, rows, columns, gram, seen, sample, square, epsilon):
    """Follow the Lasso path to the weight at which it solves the problem; return the size of the support and a proof.

    The weight that meets the bound for the signs of a Lasso solution, and its codes, follow in closed form. The codes
    found are work.codes; the proof is whether they are proven optimal.
    """
    scratch, codes = work.scratch, work.scratch[CODES, : len(work.start)]
    for k in range(len(work.start)):
        codes[k] = 0.0
    size: Any = np.int64(0)
    largest = reset(work)
    if largest == 0 or epsilon >= 1:
        return size, True
    target = epsilon * epsilon * square
    low, high, alpha, least = 0.0, largest, largest * max(0.1, min(epsilon, 0.9)), 0.0
    for _ in range(MAX_WEIGHTS):
        forget_support(work)
        size, _ = solve_lasso(work, rows, columns, gram, seen, square, largest, codes, alpha, LASSO_GAP, ROUNDING)
        for k in range(len(work.start)):
            codes[k] = 0.0
        for i in range(size):
            codes[work.atoms[i]] = scratch[FITTED, i] = work.codes[i]
        found = _subtract_support(work, size, FITTED, rows, seen, sample, RESIDUAL)
        curvature = _sloped(work, size, rows, columns, seen)
        base = _refit(work, size, rows, columns, seen, sample)
        following = np.sqrt((target - base) / curvature) if target > base else 0.0
        for i in range(size):
            scratch[FITTED, i] += following * scratch[SLOPE, i]
        misfit = base + following * following * curvature
        # A nearly sparse sample is decided at weights where the signs are close to rounding errors.
        tolerance = min(max(GAP, 1e-15 * largest / alpha), MAX_GAP)
        lower = _lower_bound(work, sample, tolerance * largest)
        least = lower if work.positive else max(least, lower)
        for k in range(len(work.start)):
            scratch[CORRELATIONS, k] += following * scratch[PRODUCTS, k]
        proven = _is_proven(work, size, following, misfit, least, largest, tolerance)
        if proven or not work.positive:  # else, at the end, the codes of the last Lasso
            for i in range(size):
                work.codes[i] = scratch[FITTED, i]
        if proven:
            return size, True
        if found > target:
            high = alpha
        else:
            low = alpha
        if not low < following < high:
            following = np.sqrt(low * high) if low > 0 else 0.1 * high
        if following < FLOOR * largest:
            break  # the rest is rounding
        alpha = following
    return size, False


@coder
def _basis_pursuit_chunk(rows, columns, gram, observed, samples, squares, signs, work, out, epsilon):
    n_unconverged, position = 0, np.int64(0)
    for n in range(len(samples)):
        correlate_sample(work, columns, samples[n])
        size, proven = _pursue_sample(work, rows, columns, gram, observed[n], samples[n], squares[n], epsilon[n])
        n_unconverged += not proven
        position = write_support(work, size, n, position, out)
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
