"""Atoms that are of no use make room for the samples that are represented worst, as K-SVD's authors do."""

import numpy as np

from roadict.kernels import kernel
from roadict.linalg import unit_rows
from roadict.updates.sparse import Array, counts, energies, refit, residual

TWINS = 0.99
"""Correlation beyond which two atoms count as one."""
RARE = 0.3
"""Share of the mean use below which an atom counts as rarely used."""
NEGLIGIBLE = 1e-12
"""Share of a sample's squared norm below which its error is rounding: such a sample needs no atom of its own."""


def replace_atoms(data: Array, dictionary: Array, codes: Array, alpha: float = 0.0) -> tuple[Array, Array]:
    """Replace unused atoms, and one of every two that nearly coincide, by the worst-represented samples.

    The codes of a twin go to its other; the sample is then coded by its new atom alone. An atom is replaced only
    where this lowers ``½‖data - codes @ dictionary‖_F² + alpha Σ|codes|``; no sample gets more nonzeros, but for one
    that had none.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)
    alpha : float

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
    candidates = _candidates(dictionary, codes)
    if not candidates:
        return dictionary, codes
    dictionary, codes = dictionary.copy(), codes.copy()
    left = residual(data, dictionary, codes)
    errors = energies(left)
    for atom, twin in candidates:
        moved = np.flatnonzero(codes[:, atom])
        sign = np.sign(dictionary[atom] @ dictionary[twin])
        apart = dictionary[atom] - sign * dictionary[twin]
        changed = left[moved] + np.outer(codes[moved, atom], apart)
        after = errors.copy()
        after[moved] = energies(changed)
        worst = int(after.argmax())
        gain = after[worst] - 2 * alpha * np.sqrt(after[worst])
        length = np.linalg.norm(data[worst])
        if gain <= after.sum() - errors.sum() or after[worst] <= NEGLIGIBLE * length**2:
            continue
        codes[moved, twin] += sign * codes[moved, atom]
        codes[moved, atom] = 0
        left[moved] = changed
        dictionary[atom] = data[worst] / length
        codes[worst] = 0
        codes[worst, atom] = length
        left[worst], after[worst] = 0, 0
        errors = after
    return dictionary, codes


@kernel
def _any_twins(dictionary):
    gram = dictionary @ dictionary.T
    for i in range(len(gram)):
        for j in range(i):
            if abs(gram[i, j]) > TWINS:
                return True
    return False


def _candidates(dictionary: Array, codes: Array) -> list[tuple[int, int]]:
    """Unused atoms, and the less used of every two that nearly coincide; each with the atom nearest to it."""
    use = counts(codes)
    if use.all() and not _any_twins(dictionary):
        return []
    near = np.abs(dictionary @ dictionary.T)
    np.fill_diagonal(near, 0)
    found, gone = [], use == 0
    for atom in np.flatnonzero(gone):
        found.append((int(atom), int(near[atom].argmax())))
    if (near > TWINS).any():
        for atom in np.argsort(use, kind="stable"):
            twins = (near[atom] > TWINS) & ~gone
            if not gone[atom] and twins.any():
                found.append((int(atom), int(np.where(twins, near[atom], 0).argmax())))
                gone[atom] = True
    return found


def renew_rare_atoms(data: Array, dictionary: Array, codes: Array) -> Array:
    """Point rarely used atoms to where the worst-represented samples are not represented yet.

    An atom that only a few samples use stands for one that was missed; without it those samples are coded a little
    worse. So the error may rise at first: this is for a run that still looks around, and needs new codes.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
    dictionary : array of shape (n_components, n_features), rows of unit norm
    codes : array of shape (n_samples, n_components)

    Returns
    -------
    array of shape (n_components, n_features), rows of unit norm
    """
    use = counts(codes)
    rare = np.flatnonzero(use < RARE * use.mean())
    if len(rare) == 0:
        return dictionary
    others = codes.copy()
    others[:, rare] = 0
    left = residual(data, dictionary, refit(data, dictionary, others, 0.0))
    errors = energies(left)
    worst = np.argsort(-errors, kind="stable")[: len(rare)]
    worst = worst[errors[worst] > NEGLIGIBLE * energies(data[worst])]
    renewed = dictionary.copy()
    renewed[rare[: len(worst)]] = unit_rows(left[worst])[0]
    return renewed
