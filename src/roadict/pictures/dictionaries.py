"""Dictionaries for patches, by name."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.estimators import ROAD, AlternatingDictionaryLearning
from roadict.linalg import unit_rows
from roadict.road.solve import Snapshot
from roadict.seeds import streams
from roadict.updates.pick import UPDATES

Array = NDArray[np.floating]
Progress = Callable[[int, int, str], None]
METHODS = ("road", "random", *UPDATES)
ATOMS_PER_PATCH = 3
"""For OMP in the two-stage methods, as in the literature on super-resolution."""
ROAD_PER_STAGE = 6
"""Iterations of ROAD in the place of one of a two-stage method."""
_KEY = 11


def learn_dictionary(
    data: Array,
    n_components: int,
    *,
    method: str,
    epsilon: float,
    max_iter: int,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    progress: Progress | None,
    rho: float | str = "auto",
) -> Array:
    """Learn unit atoms from samples.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        NaN marks what was not observed.
    n_components : int
    method : str
        "road"; an update of ``AlternatingDictionaryLearning``, by OMP with three atoms per sample where it needs a
        coder; or "random": some of the samples, the yardstick for all others.
    epsilon : float
        ROAD's bound on the relative error.
    max_iter : int
        Of ROAD; two-stage methods take a sixth as many.
    seed : SeedSequence
    n_jobs : int or None
    progress : callable or None
        Called with steps done, steps in all, and a text.
    rho : float or "auto"
        ROAD's penalty.

    Returns
    -------
    array of shape (n_components, n_features)
    """
    if method == "random":
        (rng,) = streams(seed, _KEY, 1)
        chosen = rng.choice(len(data), n_components, replace=len(data) < n_components)
        return unit_rows(np.nan_to_num(data[chosen]))[0]

    def callback(snapshot: Snapshot) -> None:
        if progress is not None:
            progress(snapshot.iteration, snapshot.max_iter, "learning the dictionary")

    shared: dict[str, Any] = {"callback": callback, "random_state": seed, "n_jobs": n_jobs}
    model: ROAD | AlternatingDictionaryLearning
    if method == "road":
        model = ROAD(
            n_components, epsilon=epsilon, rho=rho, max_iter=max_iter, n_init=1, missing_values=np.nan, **shared
        )
    else:
        model = _two_stage(n_components, method, max_iter, shared)
    with warnings.catch_warnings():
        # What counts here is the picture: neither a bound out of reach nor iterations that end early need worry anyone.
        warnings.simplefilter("ignore", UserWarning)
        model.fit(data)
    atoms: Array = model.components_
    return atoms


def _two_stage(n_components: int, method: str, max_iter: int, shared: dict[str, Any]) -> AlternatingDictionaryLearning:
    """Make a two-stage learner of about the cost of ``max_iter`` iterations of ROAD."""
    sparsity = None if UPDATES[method].penalty else ATOMS_PER_PATCH
    rounds = max(1, max_iter // ROAD_PER_STAGE)
    return AlternatingDictionaryLearning(
        n_components, update=method, n_nonzero_coefs=sparsity, max_iter=rounds, **shared
    )
