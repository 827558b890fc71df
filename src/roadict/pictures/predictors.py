"""Predict the missing detail of an enlarged patch from its features: coupled dictionaries or anchored regressors."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from roadict.coders.registry import encode
from roadict.linalg import solve_ridge
from roadict.pictures.anchors import REGRESSORS, apply_regressors, fit_regressors, nearest_atoms
from roadict.pictures.dictionaries import LEARNING, learn_dictionary
from roadict.pictures.dtypes import Plane
from roadict.pictures.recipe import Recipe
from roadict.pictures.training import GATHERING, Samples, Sampling, gather
from roadict.precompile import prepare
from roadict.progress.stages import Progress
from roadict.runs.snapshot import Callback
from roadict.seeds import PREDICTOR, streams
from roadict.wording import plural

CODING = "coding patches"
"""Stage of the training."""
ANCHOR_SAMPLES = 1_200_000
"""Samples for the regressors, of the pictures and their mirror images: 0.4 dB above a tenth of them."""
N_NEIGHBOURS = 2048
"""Samples that each regressor is fitted to."""
CODE_SAMPLES = 50_000
"""Samples that the high-resolution dictionary is fitted to."""
BATCH = 5_000
"""Samples coded between two progress reports: about a second."""
MIN_NORM = 0.02
"""Patches with features below this norm (white is 1) are mostly noise to regressors that ignore the norm."""
RIDGE = 0.01
"""Ridge of the high-resolution dictionary, in units of the mean energy of an atom's codes."""
EPSILON = {"anchored": 0.3, "zeyde": 0.05, "yang": 0.05}


@dataclass(frozen=True)
class Coupled:
    """Two dictionaries with the same codes.

    Attributes
    ----------
    atoms : array of shape (n_components, n_features)
    high : array of shape (n_components, n_pixels)
    coder : {"lasso", "omp"}
    alpha : float
        Lasso weight in the units of the features.
    n_nonzero_coefs : int
        For "omp".
    """

    atoms: Plane
    high: Plane
    coder: str
    alpha: float
    n_nonzero_coefs: int

    def codes(self, low: Plane, n_jobs: int | None) -> Plane:
        """Codes of features, shape (n_samples, n_components)."""
        lasso = self.coder == "lasso"
        with warnings.catch_warnings():
            # A few roughly coded patches in ten thousand are invisible.
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes: Plane = encode(
                low,
                None,
                self.atoms,
                algorithm=self.coder,
                alpha=self.alpha if lasso else None,
                n_nonzero_coefs=None if lasso else self.n_nonzero_coefs,
                n_jobs=n_jobs,
            )
        return codes

    def detail(self, low: Plane, n_jobs: int | None) -> Plane:
        """Detail of shape (n_samples, n_pixels) for features of shape (n_samples, n_features)."""
        return self.codes(low, n_jobs) @ self.high

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file holds."""
        return {"atoms": self.atoms, "high": self.high, "weight": np.array(self.alpha)}


@dataclass(frozen=True)
class Anchored:
    """Atoms, and a linear map for each.

    Attributes
    ----------
    atoms : array of shape (n_components, n_features)
    regressors : array of shape (n_components, n_features, n_pixels)
    """

    atoms: Plane
    regressors: Plane

    def codes(self, low: Plane, n_jobs: int | None) -> Plane:
        """As for ``Coupled``: features use one atom, that whose regressor predicts their detail; zero uses none."""
        nearest = nearest_atoms(low, self.atoms)
        codes = np.zeros((len(low), len(self.atoms)), low.dtype)
        codes[np.arange(len(low)), nearest] = np.einsum("ij,ij->i", low, self.atoms[nearest])
        return codes

    def detail(self, low: Plane, n_jobs: int | None) -> Plane:
        """As for ``Coupled``; ``n_jobs`` is unused: all work is in matrix products."""
        return apply_regressors(low, self.atoms, self.regressors)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file holds."""
        return {"atoms": self.atoms, "regressors": self.regressors}


Predictor = Coupled | Anchored
Learn = Callable[[Plane], Plane]
"""From samples to atoms."""


def fit_predictor(
    planes: Sequence[Plane],
    sampling: Sampling,
    recipe: Recipe,
    *,
    approach: str,
    method: str,
    n_components: int,
    max_iter: int,
    axes: Plane | None,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    part: Callable[[str], Progress],
    callback: Callback | None,
) -> Predictor:
    """Learn a predictor from pictures, with the parameters of ``SuperResolution``; ``part``: progress of a stage."""
    if method == "road":
        prepare(("engine", "lasso"), np.float32)
    anchored = approach == "anchored"
    (rng,) = streams(seed, PREDICTOR, 1)
    samples = gather(
        planes,
        sampling,
        axes=axes,
        augment=anchored,
        max_samples=ANCHOR_SAMPLES if anchored else CODE_SAMPLES,
        min_norm=MIN_NORM if anchored else 0.0,
        rng=rng,
        report=part(GATHERING),
    )
    if len(samples.low) < n_components:
        raise ValueError(
            f"the training pictures give {plural(len(samples.low), 'patch')} for n_components={n_components}; "
            "use more, larger or more detailed pictures, or fewer atoms"
        )

    def learn(data: Plane) -> Plane:
        if len(data) > recipe.max_samples:
            data = data[rng.choice(len(data), recipe.max_samples, replace=False)]
        atoms = learn_dictionary(
            data,
            n_components,
            method=method,
            epsilon=EPSILON[approach] if recipe.epsilon is None else recipe.epsilon,
            rho=recipe.rho,
            # Only the directions of anchors matter, and OMP is the cheaper coder.
            lasso_share=recipe.alpha if recipe.coder == "lasso" and not anchored else None,
            n_nonzero_coefs=recipe.n_nonzero_coefs,
            max_iter=max_iter,
            seed=seed,
            n_jobs=n_jobs,
            engine=recipe.engine,
            progress=part(LEARNING),
            callback=callback,
        )
        return atoms.astype(np.float32)

    if anchored:
        return _anchored(samples, learn, n_jobs, part(REGRESSORS))
    return _coupled(samples, learn, recipe, approach == "yang", n_jobs, part(CODING))


def _anchored(samples: Samples, learn: Learn, n_jobs: int | None, report: Progress) -> Anchored:
    """Learn atoms from normalised features, and a regressor for each atom."""
    norms = np.linalg.norm(samples.low, axis=1, keepdims=True)
    low, high = samples.low / norms, samples.high / norms
    atoms = learn(low)
    return Anchored(atoms, fit_regressors(low, high, atoms, N_NEIGHBOURS, n_jobs, report))


def _coupled(
    samples: Samples, learn: Learn, recipe: Recipe, stacked: bool, n_jobs: int | None, report: Progress
) -> Coupled:
    """Split one dictionary ("yang"), or fit the second one to the codes in the first ("zeyde")."""
    weight = recipe.alpha * float(np.sqrt(np.square(samples.low).sum(axis=1).mean()))
    settings = (recipe.coder, weight, recipe.n_nonzero_coefs)
    if stacked:
        atoms, high = _stacked(samples, learn)
        return Coupled(atoms, high, *settings)
    atoms = learn(samples.low)
    coder, n_samples, parts = Coupled(atoms, atoms, *settings), len(samples.low), []
    for start in range(0, n_samples, BATCH):
        parts.append(coder.codes(samples.low[start : start + BATCH], n_jobs))
        report(min(start + BATCH, n_samples), n_samples, CODING)
    return Coupled(atoms, _least_squares(np.concatenate(parts), samples.high), *settings)


def _stacked(samples: Samples, learn: Learn) -> tuple[Plane, Plane]:
    """Learn one dictionary of stacked features and detail, weighted by their numbers of entries, and split it."""
    n_low, n_high = samples.low.shape[1], samples.high.shape[1]
    weights = np.repeat(np.array([n_low**-0.5, n_high**-0.5], np.float32), [n_low, n_high])
    both = learn(np.hstack(samples) * weights) / weights
    norms = np.linalg.norm(both[:, :n_low], axis=1, keepdims=True)
    norms[norms == 0] = 1
    return both[:, :n_low] / norms, both[:, n_low:] / norms


def _least_squares(codes: Plane, high: Plane) -> Plane:
    """Dictionary with the smallest error for these codes and a ridge; unused atoms get zero."""
    gram = codes.T.astype(np.float64) @ codes
    # Without a ridge rarely used atoms get detail of any size: the paper's digits are then 3 dB worse.
    return solve_ridge(gram, codes.T @ high, RIDGE).astype(np.float32)


def predictor_from(
    arrays: Mapping[str, NDArray[Any]],
    recipe: Recipe,
    *,
    anchored: bool,
    n_components: int,
    n_features: int,
    n_pixels: int,
) -> Predictor:
    """Make a predictor from the arrays of a model file, after checking their shapes."""
    atoms = np.asarray(arrays["atoms"], np.float32)
    if atoms.shape != (n_components, n_features):
        raise ValueError(f"atoms of shape {atoms.shape}, not {(n_components, n_features)}")
    values = np.asarray(arrays["regressors" if anchored else "high"], np.float32)
    shape = (n_components, n_features, n_pixels) if anchored else (n_components, n_pixels)
    if values.shape != shape:
        raise ValueError(f"detail of shape {values.shape}, not {shape}")
    if anchored:
        return Anchored(atoms, values)
    return Coupled(atoms, values, recipe.coder, float(arrays["weight"]), recipe.n_nonzero_coefs)
