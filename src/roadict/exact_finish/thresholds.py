"""Every constant of the exact finish, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Constants of the exact finish, each with what was measured when it alone was changed.

    Of 196 searches with the defaults 28 succeed and none is false (``benchmarks/exact.py``, "Thresholds of the exact
    finish" in RESULTS.md); 2 to 3 of them may come or go by chance.

    Lengths are relative to a sample of unit norm, changes of atoms are root mean squares over atoms of unit norm.
    """

    # ---- refinement: rounds of Lasso codes and least squares ----
    max_rounds: int = 100
    """Rounds.

    50: 20 searches succeed in place of 28. 200: the same 28.
    """
    max_change: float = 1e-10
    """Change of the atoms below which rounds end.

    1e-12: the same. 1e-8: 31 in place of 28, but fewer of the replaced pairs.
    """
    min_first_alpha: float = 1e-3
    """Smallest Lasso weight of the first round, which is the error of the codes given.

    1e-4: the same. 1e-2: 21 in place of 28.
    """
    max_alpha: float = 0.03
    """Largest Lasso weight.

    0.005: 26 in place of 28. 0.1: the same.
    """
    min_alpha: float = 1e-8
    """Smallest Lasso weight; of float32 data their rounding.

    1e-10 and 1e-6: the same.
    """
    alpha_per_change: float = 30.0
    """Lasso weight of the next round over the change of the atoms in this one.

    10: 24 in place of 28. 100: the same number.
    """
    alpha_decay: float = 0.5
    """Smallest factor by which the Lasso weight falls in a round.

    0.25: 27 in place of 28. 0.7: the same, 10 % slower.
    """
    alpha_per_coefficient: float = 3.0
    """Lasso weight over the coefficient that is dropped from a support.

    1: 31 in place of 28. 10: 26.
    """
    clean_error: float = 3.0
    """Error of a clean sample, at most, over the Lasso weight.

    1: 31 in place of 28, but fewer at N = 150. 10: the same.
    """
    clean_support: float = 0.75
    """Atoms of a clean sample, at most, over the rank of the data.

    0.5: the same number, fewer at N = 200. 1: 27, in twice the time.
    """
    min_clean_samples: float = 0.15
    """Share of clean samples below which the search is given up.

    0 and 0.4: the same; it ends hopeless searches early.
    """
    min_clean_use: float = 0.7
    """Share of the use of each atom that must be in clean samples after some rounds, or the search is given up.

    0: the same, in 1.6 times the time. 0.85: 26 in place of 28.
    """
    clean_use_from: int = 8
    """Number of those rounds.

    4 and 16: the same.
    """
    accelerate_below: float = 1e-3
    """Change of the atoms below which rounds are accelerated.

    0 (never): 21 in place of 28. 0.01: the same number.
    """
    memory: int = 3
    """Earlier rounds that Anderson acceleration combines with the last one.

    1 and 6: 27 in place of 28.
    """
    rcond: float = 1e-6
    """Relative singular value below which its least squares ignore a direction.

    1e-10 and 1e-3: the same.
    """
    ridge: float = 1e-6
    """Weight of the old atoms in the least squares, over the mean square of a code.

    1e-9 and 1e-3: the same.
    """
    # ---- acceptance: codes by basis pursuit ----
    min_sparse_samples: float = 0.95
    """Share of samples that need fewer atoms than the rank of the data.

    0.8: the same; together with a smaller min_sparse_use 4 false fits. 0.99: 27 in place of 28.
    """
    min_sparse_use: float = 0.85
    """Share of the use of each atom that must be in such samples.

    0.6: 2 false fits. 0.95: 21 in place of 28.
    """
    min_equations: float = 2.0
    """Equations that such samples give, over the degrees of freedom of the atoms.

    0: 15 false fits. 4: 27 in place of 28.
    """
    rounding_float32: float = 1e-5
    """Of float32 data: size below which codes are zero, and errors rounding.

    1e-6: 28 in place of 27. 1e-4: 25.
    """
    rounding_float64: float = 1e-9
    """The same of float64 data.

    1e-11: 2 in place of 28. 1e-7: the same.
    """
    # ---- unmixing: atoms that a multiple of another was added to ----
    min_common_use: float = 0.5
    """Share of an atom's samples that use the same other atom, in a mixed atom.

    0.25: 20 in place of 28. 0.75: 44, a change to be tried on whole fits.
    """
    min_same_ratio: float = 0.3
    """Share of an atom's samples that use the two in the same ratio, in a mixed atom.

    0.15: the same. 0.6: 43 in place of 28, with 3 false fits.
    """
    ratio_tolerance: float = 1e-3
    """Relative difference up to which ratios are the same.

    1e-5 and 0.01: the same.
    """
    max_searches: int = 5
    """Refinements, each but the first after an unmixing.

    1 (no unmixing): 6 in place of 28. 2: the same.
    """

    def rounding(self, itemsize: int) -> float:
        """Return the rounding of data with numbers of this many bytes."""
        return self.rounding_float32 if itemsize == 4 else self.rounding_float64


DEFAULTS = Thresholds()
