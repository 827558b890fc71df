"""Dictionaries for patches, by name."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadict.estimators import ROAD, AlternatingDictionaryLearning
from roadict.linalg import unit_rows
from roadict.progress.terminal import Progress, silent
from roadict.ranks.comm import alone
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.runs.snapshot import Callback, Snapshot
from roadict.seeds import DICTIONARY, streams
from roadict.updates.registry import UPDATES

Array = NDArray[np.floating]
METHODS = ("road", "random", *UPDATES)
ATOMS_PER_PATCH = 3
"""For OMP in the two-stage methods, as in the literature on super-resolution."""
ROAD_PER_STAGE = 6
"""Iterations of ROAD at about the cost of one of a two-stage method."""
LEARNING = "learning the dictionary"
"""Progress text."""


class _Search(ROAD):
    """ROAD without descents: after some dozens of iterations, the joint atoms of a search enlarge pictures better.

    With descents Yang's approach gained 0.8 instead of 1.1 dB on a small example.
    """

    _descends = False


def learn_dictionary(
    data: Array, n_components: int, *, method: str, seed: np.random.SeedSequence, **settings: Any
) -> Array:
    """Learn unit atoms from samples: those of ``learn_model``, or for "random" some of the samples.

    ``settings``: the other parameters of ``learn_model``.

    Returns
    -------
    array of shape (n_components, n_features)
    """
    if method == "random":
        return random_atoms(data, n_components, seed)
    atoms: Array = learn_model(data, n_components, method=method, seed=seed, **settings).components_
    return atoms


def random_atoms(data: Array, n_components: int, seed: np.random.SeedSequence) -> Array:
    """Return some of the samples, of unit norm: the baseline for all learners."""
    (rng,) = streams(seed, DICTIONARY, 1)
    chosen = rng.choice(len(data), n_components, replace=len(data) < n_components)
    return unit_rows(np.nan_to_num(data[chosen]))[0]


def learn_model(
    data: Array,
    n_components: int,
    *,
    method: str,
    epsilon: float,
    max_iter: int,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    progress: Progress = silent,
    rho: float | str = "auto",
    lasso_share: float | None = None,
    n_nonzero_coefs: int = ATOMS_PER_PATCH,
    engine: str = "auto",
    callback: Callback | None = None,
) -> ROAD | AlternatingDictionaryLearning:
    """Fit a learner to samples.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        NaN marks missing entries.
    n_components : int
    method : str
        "road", or an update of ``AlternatingDictionaryLearning``.
    epsilon : float
        ROAD's bound on the relative error; relaxed to a little above the smallest error
        of so few atoms where that is larger.
    max_iter : int
        Iterations of ROAD; two-stage methods run a sixth as many.
    seed : SeedSequence
    n_jobs : int or None
    progress : callable
        Called with steps done, steps in all, and a text.
    rho : float or "auto"
        ROAD's penalty.
    lasso_share : float or None
        Where an update needs a coder: the weight of a Lasso over the root-mean-square norm of the samples. None: OMP.
    n_nonzero_coefs : int
        Atoms per sample for OMP.
    engine : str
        ROAD's.
    callback : callable or None
        Called after every iteration with a ``Snapshot`` of the run, which ends where it returns a true value.

    Returns
    -------
    ROAD or AlternatingDictionaryLearning
        Fitted.
    """

    def after_iteration(snapshot: Snapshot) -> Any:
        progress(snapshot.iteration, snapshot.max_iter, LEARNING)
        return None if callback is None else callback(snapshot)

    shared: dict[str, Any] = {"callback": after_iteration, "random_state": seed, "n_jobs": n_jobs}
    model: ROAD | AlternatingDictionaryLearning
    if method == "road":
        model = _Search(
            n_components,
            epsilon=_reachable(data, n_components, epsilon),
            rho=rho,
            max_iter=max_iter,
            n_init=1,
            missing_values=np.nan,
            engine=engine,
            **shared,
        )
    else:
        coder = {} if UPDATES[method].penalty else _coder(data, lasso_share, n_nonzero_coefs)
        rounds = max(1, max_iter // ROAD_PER_STAGE)
        model = AlternatingDictionaryLearning(n_components, update=method, max_iter=rounds, **coder, **shared)
    progress(0, model.max_iter, LEARNING)  # the first iteration may take long: imports, compilation
    with warnings.catch_warnings():
        # Only the picture counts: an unreachable bound or an early end of the iterations is harmless here.
        warnings.simplefilter("ignore", UserWarning)
        with alone():  # each process works on its own picture
            model.fit(data)
    return model


def _coder(data: Array, lasso_share: float | None, n_nonzero_coefs: int) -> dict[str, Any]:
    if lasso_share is None:
        return {"n_nonzero_coefs": n_nonzero_coefs}
    return {"coder": "lasso", "alpha": lasso_share * float(np.sqrt(np.mean(np.sum(np.square(data), axis=1))))}


def _reachable(data: Array, n_components: int, epsilon: float) -> float:
    """Relax a bound that no dictionary of so few atoms can meet: small pictures have patches for few atoms."""
    if np.isnan(data).any() or not data.any():  # ROAD accepts any bound for missing entries, and refuses zeros
        return epsilon
    floor = smallest_error(data, None, n_components)
    return epsilon if epsilon >= floor else auto_epsilon(floor)
