"""Replacement of unused, duplicate and rarely used atoms by the worst-represented samples, as in K-SVD."""

import numpy as np

from roadict.constraints import Constraints
from roadict.kernels import kernel
from roadict.linalg import unit_rows
from roadict.updates.sparse import Array, atom_usage, energies, refit, residual

DUPLICATE = 0.99
"""Correlation above which two atoms count as duplicates."""
RARE = 0.3
"""Share of the mean usage below which an atom is rarely used."""
NEGLIGIBLE = 1e-12
"""Share of a sample's squared norm below which its error is rounding, so that it needs no new atom."""


def replace_atoms(
    data: Array,
    dictionary: Array,
    codes: Array,
    alpha: float = 0.0,
    *,
    positive_code: bool = False,
    positive_dict: bool = False,
) -> tuple[Array, Array]:
    """Replace unused atoms, and one of every pair of duplicates, by the worst-represented samples.

    The codes of a duplicate are added to those of its counterpart; the sample is then coded by its new atom alone. An
    atom is replaced only if this lowers ``½‖data - codes @ dictionary‖_F² + alpha Σ|codes|``. No sample gets more
    nonzeros, unless it had none.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    alpha : float
    positive_code : bool
        Whether codes must not be negative: atoms of opposite sign are then no duplicates.
    positive_dict : bool
        Whether atoms must not be negative: a sample without its negative entries becomes an atom.

    Returns
    -------
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Examples
    --------
    >>> data = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> replace_atoms(data, np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))
    (array([[1., 0.],
           [0., 1.]]), array([[1., 0.],
           [0., 2.]]))
    """
    candidates = _candidates(dictionary, codes, positive_code)
    if not candidates:
        return dictionary, codes
    dictionary, codes = dictionary.copy(), codes.copy()
    residuals = residual(data, dictionary, codes)
    errors = energies(residuals)
    reached = Constraints(positive_code, positive_dict).nearest_directions(data)
    lost = energies(data) - energies(reached)  # what no single atom reproduces
    for atom, nearest in candidates:
        moved = np.flatnonzero(codes[:, atom])
        sign = np.sign(dictionary[atom] @ dictionary[nearest])
        apart = dictionary[atom] - sign * dictionary[nearest]
        changed = residuals[moved] + np.outer(codes[moved, atom], apart)
        after = errors.copy()
        after[moved] = energies(changed)
        worst = int((after - lost).argmax())
        new = reached[worst]
        gain = after[worst] - lost[worst] - 2 * alpha * np.sqrt(after[worst])
        length = np.linalg.norm(new)
        if gain <= after.sum() - errors.sum() or after[worst] <= NEGLIGIBLE * length**2 or length == 0:
            continue
        codes[moved, nearest] += sign * codes[moved, atom]
        codes[moved, atom] = 0
        residuals[moved] = changed
        dictionary[atom] = new / length
        codes[worst] = 0
        turned = np.sign(data[worst] @ new)
        codes[worst, atom] = turned * length
        residuals[worst], after[worst] = data[worst] - turned * new, lost[worst]
        errors = after
    return dictionary, codes


@kernel
def _has_duplicates(dictionary):
    gram = dictionary @ dictionary.T
    for i in range(len(gram)):
        for j in range(i):
            if abs(gram[i, j]) > DUPLICATE:
                return True
    return False


def _candidates(dictionary: Array, codes: Array, positive: bool) -> list[tuple[int, int]]:
    """Unused atoms, and the less used of every pair of duplicates, each with the atom nearest to it."""
    usage = atom_usage(codes)
    if usage.all() and not _has_duplicates(dictionary):
        return []
    gram = dictionary @ dictionary.T
    near = gram if positive else np.abs(gram)
    np.fill_diagonal(near, 0)
    found, excluded = [], usage == 0
    for atom in np.flatnonzero(excluded):
        found.append((int(atom), int(near[atom].argmax())))
    if (near > DUPLICATE).any():
        for atom in np.argsort(usage, kind="stable"):
            duplicates = (near[atom] > DUPLICATE) & ~excluded
            if not excluded[atom] and duplicates.any():
                found.append((int(atom), int(np.where(duplicates, near[atom], 0).argmax())))
                excluded[atom] = True
    return found


def replace_rare_atoms(
    data: Array, dictionary: Array, codes: Array, *, positive_code: bool = False, positive_dict: bool = False
) -> Array:
    """Replace rarely used atoms by the residuals of the worst-represented samples.

    A rarely used atom indicates that another one was missed, and its samples can be coded almost as well without it.
    The error may rise at first: for runs that still explore, and need new codes afterwards.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    positive_code, positive_dict : bool
        Whether codes, or atoms, must not be negative; residuals become atoms without their negative entries.

    Returns
    -------
    array of shape (n_components, n_features), rows of unit norm
    """
    usage = atom_usage(codes)
    rare = np.flatnonzero(usage < RARE * usage.mean())
    if len(rare) == 0:
        return dictionary
    others = codes.copy()
    others[:, rare] = 0
    residuals = residual(data, dictionary, refit(data, dictionary, others, 0.0, positive_code))
    residuals = Constraints(positive_code, positive_dict).nearest_directions(residuals)
    errors = energies(residuals)
    worst = np.argsort(-errors, kind="stable")[: len(rare)]
    worst = worst[errors[worst] > NEGLIGIBLE * energies(data[worst])]
    replaced = dictionary.copy()
    replaced[rare[: len(worst)]] = unit_rows(residuals[worst])[0]
    return replaced
