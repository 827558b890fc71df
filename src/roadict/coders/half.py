"""Sparse coding with an ℓ1/2 penalty, by iterative half thresholding."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    correlate,
    gram_among,
    grow_factor,
    split_features,
    subtract_atoms,
    top_atoms,
)
from roadict.coders.lasso import lasso
from roadict.coders.scaling import ScaledProblem, encode_chunks
from roadict.kernels import kernel, solve_factor

Array = NDArray[np.floating]

CUT = 54 ** (1 / 3) / 4
"""Half thresholding with weight w zeroes everything up to CUT * (2 w)^(2/3)."""
MAX_ITER = 10_000
STEPS_PER_NEWTON = 50
TOLERANCE = 1e-8
"""Change of the codes per iteration, relative to the largest, at which they count as a fixed point."""


@kernel
def half_threshold(value, weight):
    """Minimise ½(z - value)² + weight √|z| over z."""
    size = abs(value)
    if size <= CUT * (2 * weight) ** (2 / 3):
        return 0.0
    angle = np.arccos(weight / 4 * (size / 3) ** -1.5)
    return 2 / 3 * value * (1 + np.cos(2 * np.pi / 3 - 2 / 3 * angle))


@kernel
def _weight_from_cut(cut):
    """Return the weight whose half thresholding zeroes everything up to cut."""
    return 0.5 * (cut / CUT) ** 1.5


@kernel
def _newton_step(rows, gram, missing, codes, correlations, weight):
    """Take a Newton step of the nonzero codes in place, if they are near a minimum.

    With nearly dependent atoms, gradient steps converge slowly there.
    """
    support = np.flatnonzero(codes)
    hessian, step = gram_among(rows, gram, missing, support), np.empty(len(support))
    for i in range(len(support)):
        hessian[i, i] -= weight / 4 * abs(codes[support[i]]) ** -1.5
    factor = np.empty_like(hessian)
    for i in range(len(support)):
        if not grow_factor(factor, i, hessian[i]):
            return
    for i in range(len(support)):
        code = codes[support[i]]
        step[i] = correlations[support[i]] - weight / 2 * np.sign(code) / np.sqrt(abs(code))
    solve_factor(factor, len(support), step)
    if np.all(np.abs(step) <= 0.5 * np.abs(codes[support])):
        codes[support] += step


@kernel
def _half_chunk(rows, columns, gram, observed, samples, codes, alpha, sparsity, step):
    n_components, n_features = rows.shape
    residual, correlations = np.empty(n_features), np.empty(n_components)
    n_unconverged = 0
    for n in range(len(samples)):
        sample, found = samples[n], codes[n]
        seen, missing = split_features(observed, n, n_features)
        correlate(columns, seen, sample, correlations)
        weight = step * (alpha[n] if alpha[n] >= 0 else _weight_from_cut(-alpha[n] * np.max(np.abs(correlations))))
        change, largest, iteration = np.inf, 0.0, 0
        while change > TOLERANCE * largest and iteration < MAX_ITER:
            support = np.flatnonzero(found)
            subtract_atoms(rows, support, found[support], sample, missing, residual)
            correlate(columns, seen, residual, correlations)
            iteration += 1
            if iteration % STEPS_PER_NEWTON == 0:
                _newton_step(rows, gram, missing, found, correlations, weight / step)
                continue
            for k in range(n_components):
                correlations[k] = found[k] + step * correlations[k]
            if sparsity[n] > 0:
                sizes = np.abs(correlations)
                top_atoms(sizes, sparsity[n])
                weight = _weight_from_cut((1 + 1e-12) * np.max(sizes))  # rounding must not retain the next one
            change, largest = 0.0, 0.0
            for k in range(n_components):
                new = half_threshold(correlations[k], weight)
                change, largest = max(change, abs(new - found[k])), max(largest, abs(new))
                found[k] = new
        n_unconverged += iteration == MAX_ITER
    return n_unconverged


def _leave_zero(problem: ScaledProblem, alpha: Array, start: Array | None, n_jobs: int | None, sparse: bool) -> Any:
    """Replace the starts that are missing or zero by Lasso codes."""
    with np.errstate(over="ignore"):
        weights = np.where(alpha < 0, alpha, CUT * (2 * np.abs(alpha)) ** (2 / 3))
    if start is None:
        return lasso(problem, weights, None, n_jobs, sparse)[0]
    zero = ~start.any(axis=1)
    if not zero.any():
        return start
    observed = problem.observed[zero] if problem.observed.size else problem.observed
    part = replace(problem, data=problem.data[zero], observed=observed, exponents=problem.exponents[zero])
    codes = start.copy()
    codes[zero] = lasso(part, weights[zero], None, n_jobs)[0]
    return codes


def half(
    problem: ScaledProblem,
    alpha: Array,
    sparsity: NDArray[np.integer],
    start: Array | None,
    n_jobs: int | None,
    sparse: bool = False,
) -> tuple[Any, int]:
    """Descend on ``½‖sample - codes @ dictionary‖² + alpha Σ√|codes|`` by gradient steps and half thresholding.

    The objective has many minima, including zero: samples without a start, or with zeros as their start, begin at the
    Lasso codes with the same threshold for a single coefficient. With a sparsity, every iteration sets the weight that
    retains that many codes, and the default start is zero (scheme 1 of Xu et al.).

    Parameters
    ----------
    problem : ScaledProblem
    alpha : array of shape (n_samples,)
        In the units of the scaled problem; negative: minus the share of the largest correlation up to which a single
        coefficient is zeroed. Ignored if the sparsity is not zero.
    sparsity : int array of shape (n_samples,)
        Number of nonzero codes; 0: determined by alpha.
    start : array of shape (n_samples, n_components) or None
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.

    Returns
    -------
    codes : array or CSR array of shape (n_samples, n_components)
    n_unconverged : int
        Number of samples that did not reach a fixed point.

    References
    ----------
    Z. Xu, X. Chang, F. Xu and H. Zhang, "L1/2 regularization: a thresholding representation theory and a fast
    solver", 2012.
    """
    if not sparsity.any():
        start = _leave_zero(problem, alpha, start, n_jobs, sparse)
    norm = float(np.linalg.norm(problem.rows, 2))
    step = 0.99 / norm**2 if norm > 0 else 1.0
    return encode_chunks(_half_chunk, problem, alpha, sparsity, step, start=start, sparse=sparse, n_jobs=n_jobs)
