"""Every constant of the exact finish, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Constants of the exact finish, each with what was measured when it alone was changed.

    Of 282 searches with the defaults 93 succeed and none is false (``benchmarks/exact.py``, "Thresholds of the exact
    finish" in RESULTS.md); 2 to 3 of them may come or go by chance.

    Lengths are relative to a sample of unit norm, changes of atoms are root mean squares over atoms of unit norm.
    """

    # ---- refinement: rounds of Lasso codes and least squares ----
    max_rounds: int = 100
    """Rounds.

    50: 70 searches succeed in place of 93. 200: 97, in 1.5 times the time.
    """
    max_change: float = 1e-10
    """Change of the atoms below which rounds end.

    1e-12: 92 in place of 93. 1e-8: 89, fewer of the replaced pairs.
    """
    min_first_alpha: float = 1e-3
    """Smallest Lasso weight of the first round, which is the error of the codes given.

    1e-4: 95 in place of 93. 1e-2: 97, but fewer of the replaced pairs.
    """
    max_alpha: float = 0.03
    """Largest Lasso weight.

    0.005: 79 in place of 93. 0.1: 92.
    """
    min_alpha: float = 1e-8
    """Smallest Lasso weight; of float32 data their rounding.

    1e-10 and 1e-6: the same.
    """
    alpha_per_change: float = 30.0
    """Lasso weight of the next round over the change of the atoms in this one.

    10: 78 in place of 93. 100: 88.
    """
    alpha_decay: float = 0.5
    """Smallest factor by which the Lasso weight falls in a round.

    0.25: the same. 0.7: 95 in place of 93.
    """
    alpha_per_coefficient: float = 3.0
    """Lasso weight over the coefficient that is dropped from a support.

    1: 99 in place of 93. 10: 92.
    """
    clean_error: float = 3.0
    """Error of a clean sample, at most, over the Lasso weight.

    1: 94 in place of 93, in half of the time. 10: the same.
    """
    clean_support: float = 0.75
    """Atoms of a clean sample, at most, over the rank of the data.

    0.5: 90 in place of 93. 1: 96, in 1.5 times the time.
    """
    min_clean_samples: float = 0.15
    """Share of clean samples below which the search is given up.

    0 and 0.4: the same; it ends hopeless searches early.
    """
    min_clean_use: float = 0.7
    """Share of the use of each atom that must be in clean samples after some rounds, or the search is given up.

    0: the same, in 1.4 times the time. 0.85: 87 in place of 93.
    """
    clean_use_from: int = 8
    """Number of those rounds.

    4 and 16: the same.
    """
    accelerate_below: float = 1e-3
    """Change of the atoms below which rounds are accelerated.

    0 (never): 73 in place of 93. 0.01: 92.
    """
    memory: int = 3
    """Earlier rounds that Anderson acceleration combines with the last one.

    1: 89 in place of 93. 6: the same.
    """
    rcond: float = 1e-6
    """Relative singular value below which its least squares ignore a direction.

    1e-10 and 1e-3: the same.
    """
    ridge: float = 1e-6
    """Weight of the old atoms in the least squares, over the mean square of a code.

    1e-9: the same. 1e-3: 91 in place of 93.
    """
    # ---- acceptance: codes by basis pursuit ----
    min_sparse_samples: float = 0.95
    """Share of samples that need fewer atoms than the rank of the data.

    0.8: the same; together with a smaller min_sparse_use 3 false fits. 0.99: 87 in place of 93.
    """
    min_sparse_use: float = 0.85
    """Share of the use of each atom that must be in such samples.

    0.6: 97 in place of 93, but false fits if min_sparse_samples is smaller too. 0.95: 64.
    """
    min_equations: float = 2.0
    """Equations that such samples give, over the degrees of freedom of the atoms.

    0: 31 false fits. 4: 90 in place of 93.
    """
    rounding_float32: float = 1e-5
    """Of float32 data: size below which codes are zero, and errors rounding.

    1e-6: the same. 1e-4: 91 in place of 93.
    """
    rounding_float64: float = 1e-9
    """The same of float64 data.

    1e-11: 45 in place of 93. 1e-7: the same.
    """
    # ---- unmixing: atoms that a multiple of another was added to ----
    min_common_use: float = 0.5
    """Share of an atom's samples that use the same other atom, in a mixed atom.

    0.25: 75 in place of 93. 0.75: 104, a change to be tried on whole fits.
    """
    min_same_ratio: float = 0.3
    """Share of an atom's samples that use the two in the same ratio, in a mixed atom.

    0.15: the same. 0.6: 104 in place of 93, with 3 false fits.
    """
    ratio_tolerance: float = 1e-3
    """Relative difference up to which ratios are the same.

    1e-5 and 0.01: the same.
    """
    max_searches: int = 5
    """Refinements, each but the first after an unmixing.

    1 (no unmixing): 61 in place of 93. 2: 92.
    """

    def rounding(self, itemsize: int) -> float:
        """Return the rounding of data with numbers of this many bytes."""
        return self.rounding_float32 if itemsize == 4 else self.rounding_float64


DEFAULTS = Thresholds()
