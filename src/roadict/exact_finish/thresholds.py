"""Every constant of the exact finish, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Constants of the exact finish, each with what was measured when it alone was changed.

    Lengths are relative to a sample of unit norm, changes of atoms are root mean squares over atoms of unit norm.
    """

    # ---- refinement: rounds of Lasso codes and least squares ----
    max_rounds: int = 100
    """Rounds."""
    max_change: float = 1e-10
    """Change of the atoms below which rounds end."""
    min_first_alpha: float = 1e-3
    """Smallest Lasso weight of the first round, which is the error of the codes given."""
    max_alpha: float = 0.03
    """Largest Lasso weight."""
    min_alpha: float = 1e-8
    """Smallest Lasso weight; of float32 data their rounding."""
    alpha_per_change: float = 30.0
    """Lasso weight of the next round over the change of the atoms in this one."""
    alpha_decay: float = 0.5
    """Smallest factor by which the Lasso weight falls in a round."""
    alpha_per_coefficient: float = 3.0
    """Lasso weight over the coefficient that is dropped from a support."""
    clean_error: float = 3.0
    """Error of a clean sample, at most, over the Lasso weight."""
    clean_support: float = 0.75
    """Atoms of a clean sample, at most, over the rank of the data."""
    min_clean_samples: float = 0.15
    """Share of clean samples below which the search is given up."""
    min_clean_use: float = 0.7
    """Share of the use of each atom that must be in clean samples after some rounds, or the search is given up."""
    clean_use_from: int = 8
    """Number of those rounds."""
    accelerate_below: float = 1e-3
    """Change of the atoms below which rounds are accelerated."""
    memory: int = 3
    """Earlier rounds that Anderson acceleration combines with the last one."""
    rcond: float = 1e-6
    """Relative singular value below which its least squares ignore a direction."""
    ridge: float = 1e-6
    """Weight of the old atoms in the least squares, over the mean square of a code."""
    # ---- acceptance: codes by basis pursuit ----
    min_sparse_samples: float = 0.95
    """Share of samples that need fewer atoms than the rank of the data."""
    min_sparse_use: float = 0.85
    """Share of the use of each atom that must be in such samples."""
    min_equations: float = 2.0
    """Equations that such samples give, over the degrees of freedom of the atoms."""
    rounding_float32: float = 1e-5
    """Of float32 data: size below which codes are zero, and errors rounding."""
    rounding_float64: float = 1e-9
    """The same of float64 data."""
    # ---- unmixing: atoms that a multiple of another was added to ----
    min_common_use: float = 0.5
    """Share of an atom's samples that use the same other atom, in a mixed atom."""
    min_same_ratio: float = 0.3
    """Share of an atom's samples that use the two in the same ratio, in a mixed atom."""
    ratio_tolerance: float = 1e-3
    """Relative difference up to which ratios are the same."""
    max_searches: int = 5
    """Refinements, each but the first after an unmixing."""

    def rounding(self, itemsize: int) -> float:
        """Return the rounding of data with numbers of this many bytes."""
        return self.rounding_float32 if itemsize == 4 else self.rounding_float64


DEFAULTS = Thresholds()
