"""SimCO: all atoms and all codes at once, by gradient steps of the atoms on their spheres."""

import numpy as np

from roadict.updates.sparse import Array, energies, products, refit, residual

STEPS = 5
"""Gradient steps per update."""
LONGEST = 20
"""Halvings, or doublings, of a step in the line search."""


def simco(data: Array, dictionary: Array, codes: Array, *, ridge: float = 0.0) -> tuple[Array, Array]:
    """Update by simultaneous codeword optimisation (Dai, Xu and Wang 2012).

    Lowers ``f(dictionary) = min ‖data - codes @ dictionary‖_F² + ridge ‖codes‖_F²``, the minimum over codes on the
    given support, by gradient steps along the great circles of the unit atoms; the line search starts at the step
    that would be best for fixed codes. ridge = 0 is primitive SimCO, ridge > 0 the regularised one, whose
    objective has no singular points where atoms of one sample become dependent.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
        Only their support matters.
    ridge : float

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
        Those that minimise the objective on the support.
    """
    samples = data.astype(np.float64, copy=False)
    atoms: Array = dictionary.astype(np.float64, copy=False)
    value, values, left = _evaluate(samples, atoms, codes.astype(np.float64, copy=False), ridge)
    for _ in range(STEPS):
        gram, downhill = products(values, left)
        downhill -= np.sum(downhill * atoms, axis=1, keepdims=True) * atoms
        curvature = float(np.sum((gram @ downhill) * downhill))
        if not curvature > 0:
            break
        step = float(np.sum(downhill**2)) / curvature
        found = _line_search(samples, atoms, values, ridge, downhill, step, value)
        if found is None:
            break
        value, atoms, values, left = found
    return atoms, values


def _evaluate(data: Array, dictionary: Array, codes: Array, ridge: float) -> tuple[float, Array, Array]:
    """f, the codes that attain it, and their residual."""
    fitted = refit(data, dictionary, codes, ridge)
    left = residual(data, dictionary, fitted)
    return float(energies(left).sum() + ridge * np.sum(fitted**2)), fitted, left


def _moved(dictionary: Array, direction: Array, step: float) -> Array:
    """Atoms after a step along their great circles."""
    speeds = np.linalg.norm(direction, axis=1, keepdims=True)
    ways = np.divide(direction, speeds, out=np.zeros_like(direction), where=speeds > 0)
    moved = np.cos(step * speeds) * dictionary + np.sin(step * speeds) * ways
    unit: Array = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def _line_search(
    data: Array, dictionary: Array, codes: Array, ridge: float, direction: Array, step: float, value: float
) -> tuple[float, Array, Array, Array] | None:
    """Double the step while that lowers f further, or halve it until f is lowered at all; None: it never is."""

    def tried(length: float) -> tuple[float, Array, Array, Array]:
        atoms = _moved(dictionary, direction, length)
        reached, values, left = _evaluate(data, atoms, codes, ridge)
        return reached, atoms, values, left

    best = tried(step)
    lowered = best[0] < value
    for _ in range(LONGEST):
        step = 2 * step if lowered else step / 2
        other = tried(step)
        if lowered and not other[0] < best[0]:
            return best
        best = other
        if not lowered and best[0] < value:
            return best
    return best if lowered else None
