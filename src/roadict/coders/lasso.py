"""Lasso codes: coordinate descent on a working set, exact steps on the support, stopped by the duality gap."""

import numpy as np
from numpy.typing import NDArray

from roadict.coders.kernels import (
    absolute_weight,
    correlate,
    gram_among,
    grow_factor,
    solve_factor,
    split_features,
    subtract_atoms,
)
from roadict.coders.scaling import Scaled, code_chunks
from roadict.kernels import kernel

Array = NDArray[np.floating]

GAP = 1e-9
"""Bound on the duality gap, as a share of the objective."""
ROUNDING = 1e-14
"""A gap below this share of the squared sample is rounding."""
FLOOR = 1e-7
"""Smallest weight, as a share of the one that makes all codes zero: below, Σ|codes| is lost in rounding."""
MAX_ROUNDS = 100
MAX_SWEEPS = 60
SWEEPS_PER_STEP = 8
MAX_STEPS = 20


@kernel
def _sweep(gram, codes, gradient, alpha):
    """Minimise over one code after the other; return whether the sign of one has changed."""
    changed = False
    for j in range(len(codes)):
        old, square = codes[j], gram[j, j]
        target = gradient[j] + square * old
        # An atom at the bound, such as the twin of one in use, must not come into use by rounding.
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
    """Go along a step, at most ``furthest`` times its length, until a code becomes zero; return whether one did."""
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
    """Go to the minimum over the codes in use with their signs, or until the first of them becomes zero.

    Where an atom depends on others in use, go instead along the combination of them that leaves the fit as it is and
    lowers Σ|codes|, until one of them is out of use. Returns whether the minimum was reached.
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
    """Minimise over the working set: sweeps until the signs settle, then the minimum that these signs give."""
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
    """Return the gap, the objective and the largest correlation; the dual point is the residual, shrunk to feasible.

    A sum of terms that are not negative: the difference of the objectives would be rounding near the solution.
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
def solve_lasso(rows, columns, gram, seen, hidden, sample, codes, alpha, bound, rounding, residual, correlations):
    """Minimise ½‖sample - codes @ rows‖² + alpha Σ|codes| from the given codes; return whether the gap is closed.

    bound, rounding: on the gap, as shares of the objective and of the squared sample. Leaves the residual and its
    correlations with the atoms in the last two arguments.
    """
    rounding *= np.sum(sample * sample)
    for _ in range(MAX_ROUNDS):
        support = np.flatnonzero(codes)
        square = subtract_atoms(rows, support, codes[support], sample, hidden, residual)
        correlate(columns, seen, residual, correlations)
        gap, objective, largest = duality_gap(square, codes, correlations, alpha)
        if gap <= bound * objective + rounding:
            return True
        # Atoms in use, and those that violate the optimality conditions at least half as much as the worst does.
        working = np.flatnonzero((codes != 0) | (np.abs(correlations) > max(alpha, (alpha + largest) / 2)))
        local, gradient = codes[working], correlations[working]
        _descend(gram_among(rows, gram, hidden, working), local, gradient, alpha)
        codes[working] = local
    return False


@kernel
def _lasso_chunk(rows, columns, gram, observed, samples, codes, alpha):
    n_components, n_features = rows.shape
    residual, correlations = np.empty(n_features), np.empty(n_components)
    rough = 0
    for n in range(len(samples)):
        sample = samples[n]
        seen, hidden = split_features(observed, n, n_features)
        correlate(columns, seen, sample, correlations)
        largest = np.max(np.abs(correlations))
        weight = max(absolute_weight(alpha[n], largest), FLOOR * largest)
        if weight >= largest:
            codes[n] = 0.0
            continue
        rough += not solve_lasso(
            rows, columns, gram, seen, hidden, sample, codes[n], weight, GAP, ROUNDING, residual, correlations
        )
    return rough


def lasso(problem: Scaled, alpha: Array, start: Array | None, n_jobs: int | None) -> tuple[Array, int]:
    """Minimise ``½‖sample - codes @ dictionary‖² + alpha Σ|codes|`` for every sample.

    Coordinate descent finds the signs of the codes; the exact minimum for given signs (as in the feature-sign search
    of H. Lee, A. Battle, R. Raina and A. Ng, 2007) then spares the long tail of small steps. Both only ever lower
    the objective. Weights below 1e-7 of the one that makes all codes of a sample zero count as that.

    Parameters
    ----------
    problem : Scaled
    alpha : array of shape (n_samples,)
        In the scaled problem's units; negative: minus the share of the one that makes all codes zero.
    start : array of shape (n_samples, n_components) or None
        Codes to start from.
    n_jobs : int or None

    Returns
    -------
    codes : array of shape (n_samples, n_components)
    rough : int
        Number of samples whose duality gap is above 1e-9 of the objective.
    """
    return code_chunks(_lasso_chunk, problem, alpha, start=start, n_jobs=n_jobs)
