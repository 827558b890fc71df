"""Numbers read in the wrong byte order: one wrong bit makes ``>f8`` of ``<f8``, and noise of the numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = 4096
"""Entries that are looked at."""
FEW = 8
"""Values below which their spread says nothing."""
FAR_LARGER = 2.0**32
"""How much larger whole numbers must be as declared than in the other order: only those of eight bytes can be."""


def seems_swapped(values: NDArray[Any]) -> bool:
    """Whether the numbers of a matrix make sense only in the other byte order than its dtype says.

    Where both orders make sense, or neither does, the dtype is believed.

    Examples
    --------
    >>> numbers = np.linspace(0, 1, 12).reshape(3, 4)
    >>> seems_swapped(numbers), seems_swapped(numbers.astype(">f8")), seems_swapped(numbers.view(">f8"))
    (False, False, True)
    """
    if values.dtype.itemsize == 1 or values.dtype.kind not in "fiu":
        return False
    declared = _sample(values)
    other = declared.view(declared.dtype.newbyteorder())
    judge = _floats_seem_swapped if values.dtype.kind == "f" else _integers_seem_swapped
    return judge(declared, other)


def _sample(values: NDArray[Any]) -> NDArray[Any]:
    """Return the first entries of a matrix, in one row; little of a mapped file is read."""
    return np.ascontiguousarray(values[: max(1, SAMPLE // values.shape[1]), :SAMPLE]).reshape(-1)


def _floats_seem_swapped(declared: NDArray[Any], other: NDArray[Any]) -> bool:
    """Compare the binary exponents: in the wrong order they are anything, or the smallest if few digits are in use."""
    limits = np.finfo(declared.dtype.newbyteorder("="))
    span = int(limits.maxexp) - int(limits.minexp)
    smallest = limits.minexp + span / 64
    ours, theirs = _exponents(declared), _exponents(other)
    if not len(ours) or not len(theirs) or np.median(theirs) <= smallest or _spread(theirs) > span / 6:
        return False
    return bool(np.median(ours) <= smallest or (len(ours) >= FEW and _spread(ours) > span / 4))


def _exponents(values: NDArray[Any]) -> NDArray[Any]:
    """Return the exponents of the distinct values, but for zero, infinity and NaN."""
    usual = values[np.isfinite(values) & (values != 0)]
    exponents: NDArray[Any] = np.frexp(np.unique(usual.astype(usual.dtype.newbyteorder("="))))[1]
    return exponents


def _spread(exponents: NDArray[Any]) -> float:
    return float(np.quantile(np.abs(exponents - np.median(exponents)), 0.9))


def _integers_seem_swapped(declared: NDArray[Any], other: NDArray[Any]) -> bool:
    """Compare sizes. Numbers in the order of this machine are believed: sound often fills only the upper bytes."""
    if declared.dtype.isnative or len(np.unique(declared)) < FEW:
        return False
    ours, theirs = (float(np.quantile(np.abs(reading.astype(np.float64)), 0.9)) for reading in (declared, other))
    return ours > FAR_LARGER * theirs
