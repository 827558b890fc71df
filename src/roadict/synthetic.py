"""Planted problems: data made from a known dictionary, to measure how well it is recovered."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.checks import whole_number
from roadict.linalg import unit_rows
from roadict.seeds import PLANTED, RandomStateLike, streams

__all__ = ["Planted", "planted"]

FloatArray = NDArray[np.float64]

_ROWS_PER_BLOCK = 4096


class Planted(NamedTuple):
    """A planted problem, ``data = codes @ dictionary + noise``.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features)
    dictionary : ndarray of shape (n_components, n_features)
        The true atoms, rows of unit norm.
    codes : ndarray of shape (n_samples, n_components)
        The true sparse codes.
    noise : ndarray of shape (n_samples, n_features)
        All zeros unless a signal-to-noise ratio was requested.

    Examples
    --------
    >>> data, dictionary, codes, noise = planted(50, 8, 12, sparsity=2, random_state=0)
    >>> bool((data == codes @ dictionary + noise).all())
    True
    """

    data: FloatArray
    dictionary: FloatArray
    codes: FloatArray
    noise: FloatArray


def planted(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    sparsity: int | None = None,
    probability: float | None = None,
    snr_db: float | None = None,
    random_state: RandomStateLike = None,
) -> Planted:
    """Draw a random dictionary and signals that are sparse in it, as the paper does for its synthetic tests.

    Dictionary, supports, coefficients and noise come from separate streams. So one seed gives one
    dictionary whatever `n_samples` is, more samples only append rows to `codes`, and noise does not
    change the signal.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Number of signals, length of a signal, number of atoms.
    sparsity : int, default=None
        Nonzero coefficients per sample, standard normal, on a uniformly random support.
    probability : float in (0, 1], default=None
        Bernoulli-Gaussian codes: each coefficient is standard normal with this probability, else zero.
        Give exactly one of `sparsity` and `probability`.
    snr_db : float, default=None
        None: no noise. A number adds white Gaussian noise scaled so that ``20 log10(‖signal‖_F / ‖noise‖_F)``
        is this number.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Source of randomness. A Generator or RandomState is advanced by each call; an integer or a
        SeedSequence gives the same problem every time; None gives a fresh one.

    Returns
    -------
    Planted
        Named tuple ``(data, dictionary, codes, noise)``.

    Examples
    --------
    >>> problem = planted(100, 16, 32, sparsity=3, snr_db=30, random_state=0)
    >>> problem.data.shape, problem.dictionary.shape, problem.codes.shape
    ((100, 16), (32, 16), (100, 32))
    >>> int((problem.codes != 0).sum(axis=1).max())
    3
    """
    n_samples = whole_number("n_samples", n_samples)
    n_features = whole_number("n_features", n_features)
    n_components = whole_number("n_components", n_components)
    _check_code_model(sparsity, probability, n_components)
    if snr_db is not None and not math.isfinite(snr_db):
        raise ValueError(f"snr_db={snr_db!r} must be a finite number of decibels; pass None for no noise")

    # With a key of their own: a start drawn from the same integer must not repeat the planted dictionary.
    atom_rng, support_rng, value_rng, noise_rng = streams(random_state, PLANTED, 4)
    dictionary, _ = unit_rows(atom_rng.standard_normal((n_components, n_features)))
    if sparsity is not None:
        codes = _fixed_sparsity_codes(n_samples, n_components, int(sparsity), support_rng, value_rng)
    else:
        assert probability is not None
        codes = _bernoulli_codes(n_samples, n_components, float(probability), support_rng, value_rng)
    signal = codes @ dictionary
    noise = np.zeros_like(signal) if snr_db is None else _noise_at(signal, float(snr_db), noise_rng)
    return Planted(signal + noise, dictionary, codes, noise)


def _check_code_model(sparsity: int | None, probability: float | None, n_components: int) -> None:
    """Refuse anything but one usable `sparsity` or one usable `probability`."""
    if (sparsity is None) == (probability is None):
        raise ValueError(
            f"sparsity={sparsity!r} and probability={probability!r}: exactly one of the two must be given; "
            f"pass sparsity (1 to {n_components} nonzeros per sample) or probability (in (0, 1])"
        )
    if sparsity is not None:
        number = whole_number("sparsity", sparsity)
        if number > n_components:
            raise ValueError(
                f"sparsity={number} must be at most n_components={n_components}; pass fewer nonzeros or more atoms"
            )
    elif probability is not None and not 0 < probability <= 1:
        raise ValueError(
            f"probability={probability!r} must be in (0, 1]; pass the expected share of nonzero coefficients"
        )


def _fixed_sparsity_codes(
    n_samples: int,
    n_components: int,
    sparsity: int,
    support_rng: np.random.Generator,
    value_rng: np.random.Generator,
) -> FloatArray:
    """Codes with `sparsity` standard normal entries per row on uniformly random supports."""
    codes = np.zeros((n_samples, n_components))
    # The `sparsity` smallest of n_components uniform keys are a uniformly random subset. Blocks of rows
    # limit the temporaries and draw the same numbers as one big call.
    for first in range(0, n_samples, _ROWS_PER_BLOCK):
        rows = codes[first : first + _ROWS_PER_BLOCK]
        keys = support_rng.random(rows.shape)
        support = np.argpartition(keys, sparsity - 1, axis=1)[:, :sparsity]
        # Sorted, because NumPy does not specify the order inside a partition.
        support.sort(axis=1)
        np.put_along_axis(rows, support, value_rng.standard_normal(support.shape), axis=1)
    return codes


def _bernoulli_codes(
    n_samples: int,
    n_components: int,
    probability: float,
    support_rng: np.random.Generator,
    value_rng: np.random.Generator,
) -> FloatArray:
    """Codes whose entries are standard normal with `probability`, else zero."""
    shape = (n_samples, n_components)
    present = support_rng.random(shape) < probability
    return np.where(present, value_rng.standard_normal(shape), 0.0)


def _noise_at(signal: FloatArray, snr_db: float, rng: np.random.Generator) -> FloatArray:
    """White Gaussian noise whose norm is ``‖signal‖_F · 10^(−snr_db / 20)``."""
    energy = float(np.linalg.norm(signal))
    if energy == 0:
        raise ValueError(
            f"snr_db={snr_db!r} needs a signal that is not all zero, and no coefficient was drawn; "
            f"raise probability or n_samples"
        )
    noise = rng.standard_normal(signal.shape)
    noise *= energy / float(np.linalg.norm(noise)) * 10 ** (-snr_db / 20)
    return noise
