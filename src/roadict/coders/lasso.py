"""Lasso coding: coordinate descent on a working set and exact steps on the support, stopped by the duality gap."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    absolute_weight,
    correlate,
    gram_among,
    grow_factor,
    split_features,
    subtract_atoms,
)
from roadict.coders.scaling import ScaledProblem, encode_chunks
from roadict.kernels import kernel, solve_factor

Array = NDArray[np.floating]

GAP = 1e-9
"""Bound on the duality gap, relative to the objective."""
ROUNDING = 1e-14
"""A gap below this share of the squared sample is a rounding error."""
FLOOR = 1e-7
"""Minimum weight, relative to the one that makes all codes zero: below, Σ|codes| is lost in rounding."""
MAX_ROUNDS = 100
MAX_SWEEPS = 60
SWEEPS_PER_STEP = 8
MAX_STEPS = 20


@kernel
def _sweep(gram, codes, gradient, alpha):
    """Minimise over one code after another; return whether any sign has changed."""
    changed = False
    for j in range(len(codes)):
        old, square = codes[j], gram[j, j]
        target = gradient[j] + square * old
        # Rounding must not activate an atom at the bound, such as the duplicate of an active one.
        cut = alpha if old != 0 else (1 + 1e-12) * alpha
        new = np.sign(target) * (abs(target) - alpha) / square if abs(target) > cut and square > 0 else 0.0
        change = new - old
        if change != 0:
            codes[j] = new
            row = gram[j]
            for i in range(len(gradient)):
                gradient[i] -= change * row[i]
            changed |= np.sign(new) != np.sign(old)
    return changed


@kernel
def _move(gram, codes, gradient, support, step, furthest):
    """Move along a step, up to ``furthest`` times its length or until a code is zero; return whether one is."""
    length, blocking = furthest, -1
    for i in range(len(support)):
        code = codes[support[i]]
        if code * step[i] < 0 and abs(code) < length * abs(step[i]):
            length, blocking = -code / step[i], support[i]
    for i in range(len(support)):
        change, row = length * step[i], gram[support[i]]
        codes[support[i]] += change
        for j in range(len(gradient)):
            gradient[j] -= change * row[j]
    if blocking >= 0:
        codes[blocking] = 0.0
    return blocking >= 0


@kernel
def exact_step(gram, codes, gradient, alpha):
    """Move to the minimum over the nonzero codes for their signs, or until the first of them becomes zero.

    If an active atom depends on others, move along the null direction that lowers Σ|codes| instead, until one of these
    codes becomes zero. Returns whether the minimum was reached.
    """
    support = np.flatnonzero(codes)
    factor, step = np.empty((len(support), len(support))), np.empty(len(support))
    for size in range(len(support)):
        for i in range(size + 1):
            step[i] = gram[support[size], support[i]]
        if not grow_factor(factor, size, step):
            solve_factor(factor, size, step)
            step[size] = -1.0
            slope = 0.0
            for i in range(size + 1):
                slope += step[i] * np.sign(codes[support[i]])
            for i in range(size + 1):
                step[i] = -step[i] if slope > 0 else step[i]
            _move(gram, codes, gradient, support[: size + 1], step, np.inf)
            return False
    for i in range(len(support)):
        step[i] = gradient[support[i]] - alpha * np.sign(codes[support[i]])
    solve_factor(factor, len(support), step)
    return not _move(gram, codes, gradient, support, step, 1.0)


@kernel
def _descend(gram, codes, gradient, alpha):
    """Minimise over the working set: sweep until the signs are stable, then move to the minimum for these signs."""
    reached = False
    for sweep in range(MAX_SWEEPS):
        changed = _sweep(gram, codes, gradient, alpha)
        if reached and not changed:
            break
        reached = False
        if not changed or sweep % SWEEPS_PER_STEP == SWEEPS_PER_STEP - 1:
            for _ in range(MAX_STEPS):
                reached = exact_step(gram, codes, gradient, alpha)
                if reached:
                    break


@kernel
def duality_gap(square, codes, correlations, alpha):
    """Return the gap, the objective and the largest correlation; the dual point is the residual, shrunk to feasibility.

    The gap is a sum of nonnegative terms: the difference of the objectives would cancel near the solution.
    """
    largest, total = 0.0, 0.0
    for k in range(len(codes)):
        largest = max(largest, abs(correlations[k]))
        total += abs(codes[k])
    shrink = min(1.0, alpha / largest) if largest > 0 else 1.0
    gap = square / 2 * (1 - shrink) ** 2
    for k in range(len(codes)):
        gap += alpha * abs(codes[k]) - shrink * codes[k] * correlations[k]
    return gap, square / 2 + alpha * total, largest


@kernel
def solve_lasso(rows, columns, gram, seen, missing, sample, codes, alpha, bound, rounding, residual, correlations):
    """Minimise ½‖sample - codes @ rows‖² + alpha Σ|codes| from the given codes; return whether the gap is closed.

    bound, rounding: bounds on the gap, relative to the objective and to the squared sample. Writes the residual and its
    correlations with the atoms to the last two arguments.
    """
    rounding *= np.sum(sample * sample)
    for _ in range(MAX_ROUNDS):
        support = np.flatnonzero(codes)
        square = subtract_atoms(rows, support, codes[support], sample, missing, residual)
        correlate(columns, seen, residual, correlations)
        gap, objective, largest = duality_gap(square, codes, correlations, alpha)
        if gap <= bound * objective + rounding:
            return True
        # Active atoms, and those that violate the optimality conditions at least half as much as the worst.
        working = np.flatnonzero((codes != 0) | (np.abs(correlations) > max(alpha, (alpha + largest) / 2)))
        local, gradient = codes[working], correlations[working]
        _descend(gram_among(rows, gram, missing, working), local, gradient, alpha)
        codes[working] = local
    return False


@kernel
def _lasso_chunk(rows, columns, gram, observed, samples, codes, alpha):
    n_components, n_features = rows.shape
    residual, correlations = np.empty(n_features), np.empty(n_components)
    n_unconverged = 0
    for n in range(len(samples)):
        sample = samples[n]
        seen, missing = split_features(observed, n, n_features)
        correlate(columns, seen, sample, correlations)
        largest = np.max(np.abs(correlations))
        weight = max(absolute_weight(alpha[n], largest), FLOOR * largest)
        if weight >= largest:
            codes[n] = 0.0
            continue
        n_unconverged += not solve_lasso(
            rows, columns, gram, seen, missing, sample, codes[n], weight, GAP, ROUNDING, residual, correlations
        )
    return n_unconverged


def lasso(problem: ScaledProblem, alpha: Array, start: Array | None, n_jobs: int | None) -> tuple[Array, int]:
    """Minimise ``½‖sample - codes @ dictionary‖² + alpha Σ|codes|`` for every sample.

    Coordinate descent finds the signs of the codes; the exact minimum for given signs (as in the feature-sign search
    of H. Lee, A. Battle, R. Raina and A. Ng, 2007) then avoids a long tail of small steps. Neither raises the
    objective. Weights are at least 1e-7 times the one that makes all codes of a sample zero.

    Parameters
    ----------
    problem : ScaledProblem
    alpha : array of shape (n_samples,)
        In the units of the scaled problem; negative: minus the share of the one that makes all codes zero.
    start : array of shape (n_samples, n_components) or None
        Codes to start from.
    n_jobs : int or None

    Returns
    -------
    codes : array of shape (n_samples, n_components)
    n_unconverged : int
        Number of samples whose relative duality gap is above 1e-9.
    """
    return encode_chunks(_lasso_chunk, problem, alpha, start=start, n_jobs=n_jobs)
