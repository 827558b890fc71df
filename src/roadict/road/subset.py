"""Pseudorandom choices that depend on the content of a sample only: the same for copies, on any rank, in any order."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Mask = NDArray[np.bool_]

QUANTUM = 2.0**-20
"""Precision of a sample's direction as the key of a choice."""


def subset(data: Array, observed: Mask | None, share: float, rng: np.random.Generator) -> Mask:
    """Choose about this share of the samples; copies of a sample are chosen together."""
    return chosen(sample_digests(data, observed, rng), share)


def chosen(digests: NDArray[np.uint64], share: float) -> Mask:
    """Return which samples belong to this share."""
    return digests <= np.uint64(min(share * 2.0**64, 2.0**64 - 2048))


def sample_digests(data: Array, observed: Mask | None, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Pseudorandom number of every sample, a function of its direction and the generator only."""
    keys = rng.integers(0, 2**64, size=data.shape[1], dtype=np.uint64)
    exponents = np.frexp(np.abs(data).max(axis=1, keepdims=True, initial=0))[1]
    scaled = np.ldexp(data.astype(np.float64), -exponents)  # exact; squares neither vanish nor overflow
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    directions = np.rint(scaled / np.where(lengths > 0, lengths, 1) / QUANTUM).astype(np.int64).astype(np.uint64)
    numbers = mixed(directions + keys)
    if observed is not None:
        numbers = numbers * observed
    return mixed(numbers.sum(axis=1, dtype=np.uint64))


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
