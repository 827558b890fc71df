"""Sequential ℓ1 methods: each atom with its codes for all samples, by thresholded rank-one steps."""

import numpy as np

from roadict.kernels import kernel
from roadict.updates.sparse import Array, residual

ROUNDS = 2
"""Alternations of fitting an atom and its codes, per update."""


@kernel
def _shrunk(value, alpha, adaptive, positive):
    """Soft-threshold at alpha; ``adaptive``: by alpha²/|value|, which hardly shrinks large coefficients.

    ``positive``: negative values become zero, where both penalties on codes that are not negative are smallest.
    """
    size = max(value, 0.0) if positive else abs(value)
    if size <= alpha:
        return 0.0
    return np.sign(value) * (size - (alpha * alpha / size if adaptive else alpha))


@kernel
def _recode(residuals, atom, values, alpha, adaptive, positive):
    """Fit the codes of one atom, updating the residuals, in place."""
    for n in range(len(residuals)):
        row = residuals[n]
        inner = 0.0
        for m in range(len(row)):
            inner += row[m] * atom[m]
        new = _shrunk(inner + values[n], alpha, adaptive, positive)
        step = new - values[n]
        if step != 0:
            values[n] = new
            for m in range(len(row)):
                row[m] -= step * atom[m]


@kernel
def _redirect(residuals, atom, values, positive):
    """Fit one atom, ``positive``: without negative entries, to its codes, updating the residuals, in place."""
    used = np.flatnonzero(values)
    image = np.zeros(len(atom))
    for i in range(len(used)):
        value, row = values[used[i]], residuals[used[i]]
        for m in range(len(atom)):
            image[m] += value * (row[m] + value * atom[m])
    if positive:
        image = np.maximum(image, 0.0)
    length = np.sqrt(np.sum(image * image))
    if length > 0:
        image /= length
        for i in range(len(used)):
            value, row = values[used[i]], residuals[used[i]]
            for m in range(len(atom)):
                row[m] += value * (atom[m] - image[m])
        atom[:] = image


@kernel
def _sweep(residuals, dictionary, codes, alpha, adaptive, positive_code, positive_dict):
    """Update all atoms, codes (one row per atom) and residuals in place."""
    for k in range(len(dictionary)):
        for _ in range(ROUNDS):
            _redirect(residuals, dictionary[k], codes[k], positive_dict)
            _recode(residuals, dictionary[k], codes[k], alpha, adaptive, positive_code)


def _update(
    data: Array, dictionary: Array, codes: Array, alpha: float, adaptive: bool, positive_code: bool, positive_dict: bool
) -> tuple[Array, Array]:
    atoms, samples = dictionary.astype(np.float64), data.astype(np.float64, copy=False)
    start = codes.astype(np.float64, copy=False)
    values = np.array(start.T, order="C")  # a copy: the sweep writes to it
    _sweep(residual(samples, atoms, start), atoms, values, float(alpha), adaptive, positive_code, positive_dict)
    return atoms, np.ascontiguousarray(values.T)


def sequential(
    data: Array,
    dictionary: Array,
    codes: Array,
    *,
    alpha: float,
    positive_code: bool = False,
    positive_dict: bool = False,
) -> tuple[Array, Array]:
    """Update atoms and codes with an ℓ1 penalty (Seghouane and Hanif 2015).

    For every atom k in turn, with E = data - Σ_{j≠k} codes_j atom_j on all samples, lowers
    ``½‖E - outer(codes_k, atom_k)‖_F² + alpha Σ|codes_k|``: first over the unit atom, then over the codes (a soft
    threshold), twice. The sum over all codes never rises. The support is free: no coder is needed.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    alpha : float
        Threshold; half of the paper's λ.
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; those given are not.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Examples
    --------
    >>> dictionary, codes = sequential(
    ...     np.array([[3.0, 0.0], [0.1, 0.0]]), np.array([[1.0, 0.0]]), np.zeros((2, 1)), alpha=1.0
    ... )
    >>> codes
    array([[2.],
           [0.]])
    """
    return _update(data, dictionary, codes, alpha, False, positive_code, positive_dict)


def consistent_sequential(
    data: Array,
    dictionary: Array,
    codes: Array,
    *,
    alpha: float,
    positive_code: bool = False,
    positive_dict: bool = False,
) -> tuple[Array, Array]:
    """Update atoms and codes with an adaptive penalty (Seghouane and Iqbal 2018).

    As ``sequential``, with a weight alpha²/|z| on |code|, where z is the least-squares code: large codes are hardly
    shrunk, and codes below alpha become zero. These steps lower
    ``½‖data - codes @ dictionary‖_F² + Σ p(codes)`` with the concave penalty p of ``adaptive_penalty``.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    alpha : float
        Threshold, in the units of the codes.
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; those given are not.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Examples
    --------
    >>> data = np.array([[4.0, 0.0], [0.1, 0.0]])
    >>> dictionary, codes = consistent_sequential(data, np.array([[1.0, 0.0]]), np.zeros((2, 1)), alpha=1.0)
    >>> codes
    array([[3.75],
           [0.  ]])
    """
    return _update(data, dictionary, codes, alpha, True, positive_code, positive_dict)


def absolute_penalty(codes: Array, alpha: float) -> float:
    """Alpha times Σ|codes|, the penalty of ``sequential`` and the Lasso."""
    return alpha * float(np.abs(codes).sum())


def adaptive_penalty(codes: Array, alpha: float) -> float:
    """Σ p(codes), the penalty of ``consistent_sequential``.

    The threshold z → z - alpha²/z is the proximal operator of p with p'(x) = (√(x² + 4 alpha²) - x)/2 for x > 0,
    that is p(x) = (x √(x² + 4 alpha²) - x²)/4 + alpha² asinh(x / 2 alpha): alpha|x| for small codes, logarithmic
    growth for large ones.
    """
    if alpha == 0:
        return 0.0
    sizes = np.abs(codes[codes != 0].astype(np.float64))
    # x(√(x²+4α²) - x) without cancellation
    bend = 4 * alpha**2 * sizes / (np.hypot(sizes, 2 * alpha) + sizes)
    return float(np.sum(bend) / 4 + alpha**2 * np.sum(np.arcsinh(sizes / (2 * alpha))))
