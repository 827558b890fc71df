"""Stability of learned atoms: whether they recur when the model is fitted to halves of the samples."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.checks import warn_user
from roadict.estimators.alternating import AlternatingDictionaryLearning
from roadict.estimators.road import ROAD
from roadict.estimators.road_cv import ROADCV
from roadict.linalg import unit_rows
from roadict.progress.stages import STEPS, Progress
from roadict.progress.terminal import run_text
from roadict.ranks.comm import SERIAL
from roadict.road.floor import auto_epsilon, smallest_error
from roadict.road.plan import Parameters
from roadict.seeds import STABILITY, RandomStateLike, streams
from roadict.tensors import plain
from roadict.wording import agree, plural

Array = NDArray[np.floating]
FloatArray = NDArray[np.float64]
Learned = ROAD | AlternatingDictionaryLearning
Model = Learned | ROADCV

MIN_SAMPLES = 10
"""Samples that are not all zero; a half has at least five of them."""
UNSHARED: dict[str, Any] = {"callback": None, "checkpoint": None, "verbose": 0, "dict_init": None}
"""Parameters of the model that the fits of halves do not take over: a common start would feign agreement."""


def atom_stability(
    model: Model,
    X: ArrayLike,
    *,
    n_splits: int = 2,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Measure how well each atom recurs when the model is fitted to halves of the samples.

    The samples are split at random into two halves, and each half is fitted from independent starts, with the model's
    parameters, number of atoms and noise level (``epsilon_`` or alpha). Atoms are matched one to one, those that
    recur best first. The stability of an atom is its mean absolute correlation with its partners in all halves; with
    ``positive_code`` opposite atoms are different ones. Atoms that are known (``fixed_atoms``) have stability 1.

    Atoms of at least ``roadict.metrics.STABLE`` (0.95) recur in other samples of the same source; lower ones depend on
    the samples drawn, and should not be interpreted. Surplus atoms, which fit noise or split others, are low. Stability
    is no proof that an atom is physical: a systematic disturbance recurs too. Nor is an unstable atom proof of an
    artefact: a half has half of the samples, and real atoms that few samples use may be missed there.

    Parameters
    ----------
    model : ROAD, ROADCV or AlternatingDictionaryLearning
        Fitted. It is not changed.
    X : array of shape (n_samples, n_features)
        The samples that it was fitted to, at least 10 that are not all zero. With ``missing_values=np.nan`` of the
        model, NaN marks unobserved entries.
    n_splits : int, default=2
        Number of random splits; each takes two fits.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the splits and of the starts. The same integer gives the same result for any n_jobs.
    n_jobs : int, default=None
        Threads of the fits. None: as the model.
    progress : callable, default=None
        Called after every iteration with the steps of all fits that are done, their number (1000), and a text.

    Returns
    -------
    array of shape (n_components,)
        Between 0 and 1, in the order of ``components_``. As ``model.atom_stability_`` it is saved with the model, and
        ``roadict show`` draws it.

    Examples
    --------
    >>> from roadict import AlternatingDictionaryLearning, atom_stability
    >>> from roadict.metrics import STABLE
    >>> from roadict.synthetic import planted
    >>> X = planted(400, 8, 10, sparsity=2, snr_db=30, random_state=0).data
    >>> model = AlternatingDictionaryLearning(13, n_nonzero_coefs=2, tol=0, random_state=0).fit(X)
    >>> stability = atom_stability(model, X, random_state=0)
    >>> int((stability >= STABLE).sum()) in (9, 10)  # of 13; 10 were planted
    True
    """
    samples = _checked(model, X, n_splits, n_jobs)
    if isinstance(model, ROADCV):
        model = model.final_road()
    atoms = unit_rows(plain(model.components_))[0]
    n_fits, unsettled, strengths = 2 * n_splits, 0, []
    for index, (half, seed) in enumerate(_halves(samples, n_splits, random_state), start=1):
        fitted = _half_model(model, half, seed, n_jobs)
        _fit(fitted, half, progress, index, n_fits)
        unsettled += fitted.stop_reason_ != "converged" and fitted.tol > 0
        correlations = atoms @ unit_rows(fitted.components_)[0].T
        strengths.append(correlations if model.positive_code else np.abs(correlations))
    if unsettled:
        warn_user(
            f"{unsettled} of {n_fits} fits of halves {agree(unsettled, 'has', 'have')} not converged in "
            f"max_iter={model._n_iterations} iterations, and stabilities may be too low; fit the model with a "
            "larger max_iter or tol",
            ConvergenceWarning,
        )
    stability: FloatArray = _matched(np.clip(strengths, 0.0, 1.0)).mean(axis=0)
    return stability


def informative(samples: NDArray[Any]) -> NDArray[Any]:
    """Return the samples that are not all zero; refuse too few of them, and equal ones. NaN: not observed."""
    used: NDArray[Any] = samples[np.any(np.nan_to_num(samples) != 0, axis=1)]
    if len(used) < MIN_SAMPLES:
        raise ValueError(
            f"X has nonzero entries in {plural(len(used), 'sample')}; the stability of atoms needs at least "
            f"{MIN_SAMPLES} such samples, to fit both halves: pass more samples"
        )
    if not np.any(np.fmax.reduce(used) > np.fmin.reduce(used)):
        raise ValueError(
            f"all {len(used)} samples of X are equal, and any two halves agree; the stability of atoms needs samples "
            "that differ: pass other data"
        )
    return used


def _checked(model: Any, X: ArrayLike, n_splits: int, n_jobs: int | None) -> Array:
    """Check the arguments; return the samples that are not all zero, NaN where unobserved."""
    if not isinstance(model, Model):
        raise ValueError(
            f"model={model!r} must be a fitted ROAD, ROADCV or AlternatingDictionaryLearning; pass one of these"
        )
    check_is_fitted(model)
    checks.whole_number("n_splits", n_splits)
    checks.threads("n_jobs", n_jobs)
    if (size := model._comm().size) > 1:
        raise ValueError(
            f"atom_stability runs in one process, not on {size} ranks; call it within roadict.ranks.alone(), with all "
            "samples"
        )
    data, observed = model._validate(X, reset=False)
    samples: Array = informative(data if observed is None else np.where(observed, data, np.nan).astype(data.dtype))
    return samples


def _halves(samples: Array, n_splits: int, random_state: RandomStateLike) -> Iterator[tuple[Array, int]]:
    """Both halves of every split, in the order of the samples, each with the seed of its fit."""
    for rng in streams(random_state, STABILITY, n_splits):
        order = rng.permutation(len(samples))
        for part in np.array_split(order, 2):
            yield samples[np.sort(part)], int(rng.integers(2**32))


def _half_model(model: Learned, half: Array, seed: int, n_jobs: int | None) -> Learned:
    """Return an unfitted model for a half: the parameters of the given one, with what its fit has chosen."""
    chosen: dict[str, Any] = UNSHARED | {"n_components": len(model.components_), "random_state": seed}
    if isinstance(model, ROAD):
        chosen["code_init"] = None
        if model.formulation == "constrained":
            limits = model._parameters()
            chosen["epsilon"] = _attainable(float(model.epsilon_ or 0.0), half, len(model.components_), limits)
        elif model.formulation == "lasso":
            chosen["alpha"] = model.transform_alpha_
    elif model.alpha_ is not None:
        chosen["alpha"] = model.alpha_
    if n_jobs is not None:
        chosen["n_jobs"] = n_jobs
    # Not a clone, which would copy the lock of a checkpoint directory.
    return type(model)(**(model.get_params(deep=False) | chosen))


def _attainable(epsilon: float, half: Array, n_components: int, limits: Parameters) -> float:
    """The bound, or the automatic one of this half where so few atoms, or signs, cannot reach it."""
    observed = ~np.isnan(half)
    mask = None if observed.all() else observed
    given = limits.constraints, limits.fixed_atoms
    floor = smallest_error(np.where(observed, half, 0), mask, n_components, SERIAL, *given)
    return epsilon if epsilon >= floor else auto_epsilon(floor)


def _fit(model: Learned, half: Array, progress: Progress | None, index: int, n_fits: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one warning for all halves follows
        if progress is None:
            model.fit(half)
            return
        for snapshot in model.iter_fit(half):
            done = round(STEPS * (index - 1 + snapshot.share) / n_fits)
            progress(done, STEPS, f"half {index} of {n_fits}  {run_text(snapshot)}")


def _matched(strengths: FloatArray) -> FloatArray:
    """Match the atoms one to one with those of each half; return their correlations, shape (n_halves, n_components).

    Atoms choose in the order of their mean best correlation, the same in all halves: of several similar atoms one is
    always first. The assignment with the largest total would take partners from stable atoms to improve poor ones.

    Parameters
    ----------
    strengths : array of shape (n_halves, n_components, n_components)
        Absolute correlations of the atoms (second axis) with those of each half (last axis).

    Examples
    --------
    >>> _matched(np.array([[[0.9, 0.3], [1.0, 0.5]]]))  # the largest total is 0.9 + 0.5
    array([[0.3, 1. ]])
    """
    matched, free = np.empty(strengths.shape[:2]), strengths.copy()
    halves = np.arange(len(strengths))
    for atom in np.argsort(-strengths.max(axis=2).mean(axis=0), kind="stable"):
        partner = free[:, atom].argmax(axis=1)
        matched[:, atom] = free[halves, atom, partner]
        free[halves, :, partner] = -1.0
    return matched
