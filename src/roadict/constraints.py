"""Constraints on codes and atoms: signs, and atoms that are known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadict.linalg import leading_signs, unit_rows

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Constraints:
    """What codes and atoms must satisfy.

    Attributes
    ----------
    positive_code, positive_dict : bool
        Whether codes, or entries of atoms, must not be negative.
    n_fixed : int
        Number of first atoms that are known and stay.
    """

    positive_code: bool = False
    positive_dict: bool = False
    n_fixed: int = 0

    @property
    def signed(self) -> bool:
        """Whether codes or atoms are nonnegative."""
        return self.positive_code or self.positive_dict

    def nearest_atoms(self, directions: Array, before: Array) -> Array:
        """Return the unit atoms nearest to some directions; known ones, and those of no direction, as before.

        Examples
        --------
        >>> directions = np.array([[3.0, 4.0], [3.0, -4.0], [-1.0, 0.0]])
        >>> before = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
        >>> Constraints(positive_dict=True, n_fixed=1).nearest_atoms(directions, before)
        array([[1. , 0. ],
               [1. , 0. ],
               [0.6, 0.8]])
        """
        atoms, sizes = unit_rows(np.maximum(directions, 0) if self.positive_dict else directions)
        stay = sizes == 0
        stay[: self.n_fixed] = True
        nearest: Array = np.where(stay[:, None], before, atoms)
        return nearest

    def nearest_directions(self, samples: Array) -> Array:
        """Return the part of each sample that one atom can represent, with a code of either sign if that is allowed.

        Examples
        --------
        >>> samples = np.array([[1.0, -2.0], [2.0, 1.0]])
        >>> Constraints(positive_dict=True).nearest_directions(samples)
        array([[0., 2.],
               [2., 1.]])
        >>> Constraints(positive_dict=True, positive_code=True).nearest_directions(samples)
        array([[1., 0.],
               [2., 1.]])
        """
        if not self.positive_dict:
            return samples
        above: Array = np.maximum(samples, 0)
        if self.positive_code:
            return above
        below: Array = np.maximum(-samples, 0)
        longer = (above**2).sum(axis=1) >= (below**2).sum(axis=1)
        return np.where(longer[:, None], above, below)

    def likeness(self, cosines: Array) -> Array:
        """Return how alike atoms of these cosines are: opposite ones are alike unless codes are nonnegative."""
        return cosines if self.positive_code else np.abs(cosines)

    def signs(self, dictionary: Array) -> Array:
        """Return the factors that make the entry of largest magnitude of every atom positive, where signs are free.

        Examples
        --------
        >>> Constraints(n_fixed=1).signs(-np.eye(2)), Constraints(positive_code=True).signs(-np.eye(2))
        (array([ 1., -1.]), array([1., 1.]))
        """
        signs = leading_signs(dictionary)
        signs[: len(signs) if self.positive_code else self.n_fixed] = 1
        return signs


FREE = Constraints()
