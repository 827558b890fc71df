"""Lasso coding: an active set that gains the worst violating atom, stopped by the duality gap."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.coders.active import (
    best_atom,
    coder,
    correlate_sample,
    enter_atom,
    forget_support,
    leaf,
    remove_atom,
    reset,
    solve_support,
    take_atom,
    update_correlations,
    write_support,
)
from roadict.coders.kernels import absolute_weight
from roadict.coders.scaling import ScaledProblem, encode_supports
from roadict.kernels import inlined

Array = NDArray[np.floating]

GAP = 1e-9
"""Bound on the duality gap, relative to the objective; float32: ten rounding errors."""
ROUNDING = 50
"""Rounding errors in correlations, and in a gap relative to the squared sample, that count as such."""
FLOOR = 1e-7
"""Minimum weight, relative to the one that makes all codes zero: below, Σ|codes| is lost in rounding."""
NEAR = 1.01
"""The gap is not computed while a correlation exceeds this multiple of the weight."""
MAX_ENTRIES = 20
"""Maximum number of entries into the support, per atom of the dictionary."""
MAX_SETTLED = 3


@inlined
def _support_gap(work, size, square, largest, alpha):
    """Return duality gap, objective and Σ|codes|; largest: correlation of the other atoms.

    The dual point is the residual, shrunk to feasibility: no |correlation|, or no correlation if codes must not be
    negative, exceeds alpha. The gap is a sum of nonnegative terms: the difference of the objectives would cancel near
    the solution.
    """
    total, product = 0.0, 0.0
    for i in range(size):
        code, before, after = work.codes[i], work.start[work.atoms[i]], work.correlations[work.atoms[i]]
        total += abs(code)
        product += code * after
        square -= code * (before + after)
        largest = max(largest, abs(after))
    square = max(square, 0.0)
    shrink = alpha / largest if largest > alpha else 1.0
    return square / 2 * (1 - shrink) ** 2 + alpha * total - shrink * product, square / 2 + alpha * total, total


@inlined
def _settle(work, size, alpha):
    """Solve for the codes of the support with their present signs, without atoms whose sign changes; return its size.

    Neither the codes nor the correlations, which are reset to those of the sample, retain rounding errors.
    """
    atoms, codes, solution, products = work.atoms, work.codes, work.before, work.products
    consistent = False
    while not consistent:
        for i in range(size):
            solution[i] = 0.0
        for _ in range(2):  # the second removes rounding errors of the first
            for i in range(size):
                left = work.start[atoms[i]] - alpha * np.sign(codes[i])
                for j in range(size):
                    left -= solution[j] * work.table[work.slots[j], atoms[i]]
                products[i] = left
            solve_support(work, size)
            for i in range(size):
                solution[i] += work.steps[i]
        consistent = True
        for i in range(size - 1, -1, -1):
            if not solution[i] * codes[i] > 0:
                consistent = False
                remove_atom(work, size, i)
                size -= 1
    forget_support(work)
    for i in range(size):
        codes[i], solution[i] = solution[i], 0.0
        work.weights[atoms[i]] = 0
    return size


@leaf
def solve_lasso(work, rows, columns, gram, seen, square, largest, initial, alpha, bound, rounding):
    """Minimise ½‖sample - codes @ rows‖² + alpha Σ|codes|; return the size of the support, and if the gap is closed.

    work: ``reset`` after ``correlate_sample``; gets the atoms and codes of the support, and the correlations of the
    residual. square, largest: squared norm of the sample, and its largest correlation. initial: codes whose signs are
    tried first, or empty. bound, rounding: bounds on the gap, relative to the objective, and to the squared sample once
    it has been computed from scratch. With ``work.positive`` codes are not negative: only an atom of positive
    correlation may enter, and as for any atom, its code leaves the support where it would change its sign.
    """
    size: Any = np.int64(0)  # a literal 0 would compile all that it is passed to a second time
    n_tried, n_settled, settle = 0, 0, False
    noise = rounding * largest
    for _ in range((MAX_ENTRIES + 1) * len(work.start)):
        new: Any = np.int64(-1)
        n_left: Any = np.int64(0)
        while n_tried < len(initial) and new < 0:
            new = n_tried if initial[n_tried] > 0 or (initial[n_tried] < 0 and not work.positive) else -1
            n_tried += 1
        warm = new >= 0
        if not warm and not settle:
            new = best_atom(work)
            largest = work.scores[new]
            if largest <= NEAR * alpha:
                gap, objective, total = _support_gap(work, size, square, largest, alpha)
                if gap <= bound * objective + (rounding * square + noise * total if n_settled > 0 else 0.0):
                    return size, True
                settle = largest <= alpha + noise
                n_settled += settle
                if n_settled > MAX_SETTLED:
                    break
        if warm or not settle:
            work.weights[new] = 0
            take_atom(work, size, rows, columns, gram, seen, new)
            former = size
            size, n_left = enter_atom(work, size, alpha, 0.0 if warm else np.sign(work.correlations[new]))
            if warm and size > former:
                work.codes[former] = initial[new]
            settle = warm
        else:
            size = _settle(work, size, alpha)
            settle = False
        if not warm:
            update_correlations(work, size, n_left)
    return size, False


@coder
def _lasso_chunk(rows, columns, gram, observed, samples, squares, signs, work, out, alpha, floor, bound, rounding):
    """Code samples; return the number of those whose gap is not closed."""
    n_unconverged, position = 0, 0
    for n in range(len(samples)):
        correlate_sample(work, columns, samples[n])
        size, largest = np.int64(0), reset(work)
        weight = max(absolute_weight(alpha[n], largest), floor * largest)
        if weight < largest:
            size, closed = solve_lasso(
                work, rows, columns, gram, observed[n], squares[n], largest, signs[n], weight, bound, rounding
            )
            n_unconverged += not closed
        position = write_support(work, size, n, position, out)
    return n_unconverged


def lasso(
    problem: ScaledProblem,
    alpha: Array,
    start: Array | None,
    n_jobs: int | None,
    sparse: bool = False,
    positive: bool = False,
) -> tuple[Any, int]:
    """Minimise ``½‖sample - codes @ dictionary‖² + alpha Σ|codes|`` for every sample.

    An active set as in the feature-sign search of H. Lee, A. Battle, R. Raina and A. Ng (2007): the atom that violates
    the optimality conditions most enters the support, on which the minimum is then exact. Weights are at least 1e-7
    (float32: 1e-5) times the one that makes all codes of a sample zero.

    Parameters
    ----------
    problem : ScaledProblem
    alpha : array of shape (n_samples,)
        In the units of the scaled problem; negative: minus the share of the one that makes all codes zero.
    start : array of shape (n_samples, n_components) or None
        Codes to start from: their signs are tried first.
    n_jobs : int or None
    sparse : bool
        Whether to return a CSR array.
    positive : bool
        Whether codes must not be negative.

    Returns
    -------
    codes : array or CSR array of shape (n_samples, n_components)
    n_unconverged : int
        Number of samples whose relative duality gap is above 1e-9 (float32: 1e-6, or what rounding allows).
    """
    constants = tolerances(problem.rows.dtype)
    options: dict[str, Any] = {"start": start, "sparse": sparse, "n_jobs": n_jobs, "positive": positive}
    return encode_supports(_lasso_chunk, problem, alpha, *constants, **options)


def tolerances(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Return the minimum weight, and the bounds on the gap, for arithmetic in a dtype."""
    eps = float(np.finfo(dtype).eps)
    return max(FLOOR, 100 * eps), max(GAP, 10 * eps), ROUNDING * eps
