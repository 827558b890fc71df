"""What a verdict is, and the rules that all of them share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from roadict.experiments.intervals import Interval, share_interval
from roadict.wording import plural

Outcome = Literal["reproduced", "partly", "not reproduced", "too few rows"]
OUTCOMES: tuple[Outcome, ...] = ("reproduced", "partly", "not reproduced", "too few rows")
TOO_FEW: Outcome = "too few rows"
OUR_WORDS: dict[Outcome, str] = {"reproduced": "holds", "partly": "holds in part", "not reproduced": "does not hold"}
"""Outcomes of claims of our own, of which there is nothing to reproduce."""
MIN_TRIALS = 5
"""With fewer trials a verdict is tentative."""
FOUND = 1e-2
"""Mean error below which a dictionary counts as recovered: its atoms correlate 0.99 with the true ones, on average."""
ALMOST_ZERO = 1e-3
"""Error below which a run counts as having found the dictionary exactly, in every claim of "almost 0" or "exactly"."""
MOST, MANY = 0.9, 0.5
"""Shares of runs that end almost at 0: for a claim to hold, and for a part of it."""
PAPER, DEFAULTS = "road-paper", "road-defaults"
NAMES = {
    PAPER: "ROAD (ρ = 10)",
    DEFAULTS: "ROAD with our defaults",
    "blotless": "BLOTLESS",
    "ksvd": "K-SVD",
    "mod": "MOD",
    "iadmm-three": "iADMM with three ρ",
    "iadmm-one": "iADMM with one ρ",
    "lasso": "the alternating Lasso",
}
GREEDY = "greedy matching (erratum 7)"
"""How ``error_greedy`` matches: as the paper does, but by absolute correlations (docs/paper-to-code.md)."""
Cells = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it holds, and why.

    Attributes
    ----------
    reason : str
        One sentence.
    trials : int
        Seeds that all compared methods have.
    table : tuple of tuples of str
        The numbers that it rests on; the first row is the header.
    rows, planned : int
        Rows of the experiment, and how many a complete run has.
    ours : bool
        Whether the claim is our own, and not the paper's.
    """

    experiment: str
    claim: str
    outcome: Outcome
    reason: str
    trials: int = 0
    table: Cells = ()
    rows: int = 0
    planned: int = 0
    ours: bool = False

    @property
    def tentative(self) -> bool:
        """Whether it rests on too few trials to count."""
        return self.outcome != TOO_FEW and self.trials < MIN_TRIALS

    @property
    def label(self) -> str:
        """The outcome in words, marked if tentative."""
        words = OUR_WORDS.get(self.outcome, self.outcome) if self.ours else self.outcome
        return f"tentative: {words}" if self.tentative else words

    @property
    def basis(self) -> str:
        """The number of trials, and of rows if some are missing."""
        parts = [f"{plural(self.trials, 'trial')} of every method compared"] if self.trials else []
        parts += [f"fewer than {MIN_TRIALS}, so it may change"] if self.tentative else []
        parts += [f"{self.rows} of {self.planned} rows"] if self.rows < self.planned else []
        return "; ".join(parts)


def zeros(errors: ArrayLike) -> Interval:
    """Share of the runs that end almost at 0, with its interval."""
    array = np.asarray(errors)
    return share_interval(int(np.sum(array < ALMOST_ZERO)), len(array))


def reaches_zero(errors: ArrayLike) -> Outcome:
    """Judge "the error is almost 0" by the share of runs that end there, as means hide that runs end at 1e-5 or 0.03.

    It holds if 90 % do, partly if half do, and not if fewer do, whatever the interval of the share.

    Examples
    --------
    >>> [reaches_zero([0.0] * count + [0.03] * (20 - count)) for count in (19, 12, 9)]
    ['reproduced', 'partly', 'not reproduced']
    """
    share = zeros(errors).value
    return "reproduced" if share >= MOST else "partly" if share >= MANY else "not reproduced"


def stays_away(errors: ArrayLike) -> bool:
    """Whether clearly fewer than half of the runs end almost at 0, by the interval of the share, or none.

    Examples
    --------
    >>> [stays_away([0.0] * count + [0.03] * (20 - count)) for count in (2, 9)]
    [True, False]
    """
    share = zeros(errors)
    return share.high < MANY or share.value == 0


def by_leads(signs: Sequence[int]) -> Outcome:
    """Judge "smaller than the others" by comparisons: 1 is a lead beyond chance, 0 a tie, -1 the opposite.

    Examples
    --------
    >>> by_leads([1, 1, 1]), by_leads([1, 1, 0, -1]), by_leads([1, 0, 0])
    ('reproduced', 'partly', 'not reproduced')
    """
    share = float(np.mean([sign > 0 for sign in signs]))
    return "reproduced" if share == 1 else "partly" if share >= MANY else "not reproduced"


def count_leads(signs: Sequence[int]) -> str:
    """Describe comparisons.

    Examples
    --------
    >>> count_leads([1, 1, 0, -1])
    'leads in 2 of 4 comparisons by more than two standard errors, ties in 1 and trails in 1'
    """
    number, (lead, tie, trail) = len(signs), ([*signs].count(sign) for sign in (1, 0, -1))
    others = [f"{verb} in {count}" for verb, count in (("ties", tie), ("trails", trail)) if count]
    share = "all" if lead == number else f"{lead or 'none'} of"
    text = f"leads in {share} {number} comparisons by more than two standard errors"
    return f"{text}, {' and '.join(others)}" if others else text


def listed(names: Iterable[str]) -> str:
    """Join names.

    Examples
    --------
    >>> listed(["A", "B", "C"]), listed(["A"])
    ('A, B and C', 'A')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def short(value: float | np.floating[Any]) -> str:
    """Format a number with two digits.

    Examples
    --------
    >>> short(0.0123), short(0.0000042)
    ('0.012', '4.2e-06')
    """
    return f"{float(value):.2g}"


def count_zeros(errors: ArrayLike) -> str:
    """Describe the runs that end almost at 0.

    Examples
    --------
    >>> count_zeros([0.0, 0.0, 0.03])
    '2 of 3'
    """
    array = np.asarray(errors)
    return f"{int(np.sum(array < ALMOST_ZERO))} of {len(array)}"
