"""SimCO: all atoms and codes jointly, by gradient steps of the atoms on their spheres."""

import numpy as np

from roadict.updates.sparse import Array, energies, products, refit, residual

STEPS = 5
"""Gradient steps per update."""
MAX_SEARCH_STEPS = 20
"""Maximum number of halvings or doublings of the step in the line search."""


def simco(
    data: Array, dictionary: Array, codes: Array, *, ridge: float = 0.0, positive_code: bool = False
) -> tuple[Array, Array]:
    """Update by simultaneous codeword optimisation (Dai, Xu and Wang 2012).

    Lowers ``f(dictionary) = min ‖data - codes @ dictionary‖_F² + ridge ‖codes‖_F²``, the minimum over codes on the
    given support, by gradient steps along the great circles of the unit atoms; the line search starts at the optimal
    step for fixed codes. ridge = 0 is primitive SimCO; ridge > 0 is regularised SimCO, whose objective is not singular
    where atoms of a sample become dependent.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
        Only their support is used.
    ridge : float
    positive_code : bool
        Whether codes must not be negative: the minimum is then over such codes, which f has a gradient for as well.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
        Minimisers of the objective on the support.
    """
    samples = data.astype(np.float64, copy=False)
    atoms: Array = dictionary.astype(np.float64, copy=False)
    value, values, residuals = _evaluate(samples, atoms, codes.astype(np.float64, copy=False), ridge, positive_code)
    for _ in range(STEPS):
        gram, downhill = products(values, residuals)
        downhill -= np.sum(downhill * atoms, axis=1, keepdims=True) * atoms
        curvature = float(np.sum((gram @ downhill) * downhill))
        if not curvature > 0:
            break
        step = float(np.sum(downhill**2)) / curvature
        found = _line_search(samples, atoms, values, ridge, downhill, step, value, positive_code)
        if found is None:
            break
        value, atoms, values, residuals = found
    return atoms, values


def _evaluate(data: Array, dictionary: Array, codes: Array, ridge: float, positive: bool) -> tuple[float, Array, Array]:
    """Return f, its minimising codes, and their residuals."""
    fitted = refit(data, dictionary, codes, ridge, positive)
    residuals = residual(data, dictionary, fitted)
    return float(energies(residuals).sum() + ridge * np.sum(fitted**2)), fitted, residuals


def _geodesic_step(dictionary: Array, direction: Array, step: float) -> Array:
    """Move the atoms along their great circles."""
    speeds = np.linalg.norm(direction, axis=1, keepdims=True)
    unit_directions = np.divide(direction, speeds, out=np.zeros_like(direction), where=speeds > 0)
    moved = np.cos(step * speeds) * dictionary + np.sin(step * speeds) * unit_directions
    unit: Array = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def _line_search(
    data: Array,
    dictionary: Array,
    codes: Array,
    ridge: float,
    direction: Array,
    step: float,
    value: float,
    positive: bool,
) -> tuple[float, Array, Array, Array] | None:
    """Double the step while that lowers f, or halve it until f is lowered; None: it never is."""

    def evaluate_at(length: float) -> tuple[float, Array, Array, Array]:
        atoms = _geodesic_step(dictionary, direction, length)
        reached, values, residuals = _evaluate(data, atoms, codes, ridge, positive)
        return reached, atoms, values, residuals

    best = evaluate_at(step)
    lowered = best[0] < value
    for _ in range(MAX_SEARCH_STEPS):
        step = 2 * step if lowered else step / 2
        other = evaluate_at(step)
        if lowered and not other[0] < best[0]:
            return best
        best = other
        if not lowered and best[0] < value:
            return best
    return best if lowered else None
