"""Super-resolution: enlarge a picture with detail learned from pairs of low- and high-resolution patches."""

import math
import numbers
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.files import models
from roadict.pictures import dtypes, training
from roadict.pictures.anchors import REGRESSORS
from roadict.pictures.dictionaries import LEARNING, METHODS
from roadict.pictures.dtypes import Plane
from roadict.pictures.features import patch_features
from roadict.pictures.patches import Indices, PatchMean, bands, starts
from roadict.pictures.predictors import ANCHOR_SAMPLES, CODE_SAMPLES, CODING, fit_predictor, predictor_from
from roadict.pictures.recipe import Recipe
from roadict.pictures.resize import luma, rgb_to_ycbcr, ycbcr_to_rgb
from roadict.pictures.tiles import Tile, mirrored, tiles
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import silent
from roadict.runs.snapshot import Callback
from roadict.seeds import RandomStateLike, seed_sequence

APPROACHES = ("anchored", "zeyde", "yang")
SCALES = (2, 3, 4)
KIND = "SuperResolution"
UNSAVED = ("n_jobs", "engine")
"""Parameters that a model file does not hold: they do not change what a trained model predicts."""
NOT_FITTED = "this %(name)s is not fitted yet; call fit, or load a model"
ENLARGING = "enlarging"
"""Stage after the training."""
AXES_COST, GATHERING_COST, LEARNING_COST, REGRESSOR_COST = 0.4, 1.0, 4.0, 0.35
"""Nanoseconds of the stages per product of what they multiply, by `benchmarks/progress.py`..."""
CODING_COST, REGRESSION_COST = 130.0, 30.0
"""... and of coding a patch, or predicting it by regressors, per atom."""
N_AXES = 30
"""Features after projection on the principal axes, about."""
REACH = 5
"""Pixels of the small picture beyond the patches of a tile that these depend on: filters, bicubic and a margin."""
_BACK_PROJECTION_REACH = 4
"""The same per round of back-projection."""


class SuperResolution(BaseEstimator):
    """Enlarge pictures with a dictionary learned from others.

    A picture is enlarged by bicubic interpolation. Patches of the missing detail are predicted from features of the
    enlarged patches, and averaged. In colour pictures this is done for the luma; the chroma is enlarged by bicubic.

    Parameters
    ----------
    scale : {2, 3, 4}, default=3
    approach : {"anchored", "zeyde", "yang"}, default="anchored"
        "anchored": every atom has a ridge regressor from features to detail, fitted to the samples nearest to it.
        "zeyde": sparse codes of the features, and a high-resolution dictionary fitted to them by least squares.
        "yang": one dictionary of stacked features and detail.
    method : str, default="road"
        How the dictionary is learned: "road", an update of ``AlternatingDictionaryLearning`` ("ksvd", "mod",
        "blotless", ...), or "random": random training patches.
    n_components : int, default=512
        Number of atoms.
    max_iter : int, default=120
        Iterations of ROAD; two-stage methods run a sixth as many.
    recipe : Recipe, default=None
        Features, patches, coder and more, for experiments. None: ``Recipe()``.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
    n_jobs : int, default=None
        Threads. None: all cores.

    Attributes
    ----------
    predictor_ : Coupled or Anchored
        Maps features to detail; its atoms are ``predictor_.atoms``.
    axes_ : array of shape (n_raw_features, n_features), or None
        Principal axes that the features are projected on.

    Examples
    --------
    >>> from skimage.data import camera, page
    >>> model = SuperResolution(scale=2, n_components=16, max_iter=20, random_state=0).fit([page()])
    >>> model.predict(camera()[:20, :30]).shape
    (40, 60)
    """

    def __init__(
        self,
        scale: int = 3,
        *,
        approach: str = "anchored",
        method: str = "road",
        n_components: int = 512,
        max_iter: int = 120,
        recipe: Recipe | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.scale = scale
        self.approach = approach
        self.method = method
        self.n_components = n_components
        self.max_iter = max_iter
        self.recipe = recipe
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, pictures: Sequence[ArrayLike], progress: Progress | None = None, callback: Callback | None = None
    ) -> Self:
        """Learn from pictures, which are downscaled to know the lost detail.

        Parameters
        ----------
        pictures : sequence of arrays of shape (height, width) or (height, width, channels)
        progress : callable, default=None
            Called with steps of the whole training done, steps in all (1000), and the name of the stage.
        callback : callable, default=None
            As for ``ROAD``, while the dictionary is learned.

        Returns
        -------
        self
        """
        self.check()
        if len(pictures) == 0:
            raise ValueError("there are no training pictures; pass at least one")
        planes = [self._training_plane(i, picture) for i, picture in enumerate(pictures)]
        sampling, recipe = self._sampling(), self._recipe()
        stages, report = training_stages(self, planes), progress or silent
        self.axes_ = None
        if recipe.features == "derivatives":
            self.axes_ = training.find_axes(planes, sampling, stages.part(training.AXES, report))
        self.predictor_ = fit_predictor(
            planes,
            sampling,
            recipe,
            approach=self.approach,
            method=self.method,
            n_components=self.n_components,
            max_iter=self.max_iter,
            axes=self.axes_,
            seed=seed_sequence(self.random_state),
            n_jobs=self.n_jobs,
            part=lambda stage: stages.part(stage, report),
            callback=callback,
        )
        return self

    def predict(self, picture: ArrayLike, progress: Progress | None = None) -> NDArray[Any]:
        """Enlarge a picture.

        Parameters
        ----------
        picture : array of shape (height, width) or (height, width, channels)
            uint8, uint16, float32 or float64; grey or RGB, with or without alpha.
        progress : callable, default=None
            Called with tiles done, tiles in all, and the name of the stage.

        Returns
        -------
        array of shape (scale * height, scale * width) or (scale * height, scale * width, channels)
            In the dtype and range of the picture.
        """
        check_is_fitted(self, "predictor_", msg=NOT_FITTED)
        patch = -(-self._sampling().size // self.scale)  # in pixels of the small picture
        array = dtypes.check_picture("picture", picture, patch)
        unit, limits = dtypes.white(array), dtypes.bounds(array)
        shape = (array.shape[0] * self.scale, array.shape[1] * self.scale)
        halo = patch + REACH + _BACK_PROJECTION_REACH * self._recipe().back_projection
        result = np.empty((*shape, *array.shape[2:]), array.dtype)
        work = list(tiles(array.shape[:2], halo))
        for done, tile in enumerate(work):
            parts = dtypes.split(mirrored(array, tile), unit)
            big = dtypes.Parts(self._colour(parts.colour, tile, shape), self._bicubic(parts.alpha, tile))
            result[tile.inside(self.scale)] = dtypes.join(big, array.dtype, unit, limits)
            if progress is not None:
                progress(done + 1, len(work), ENLARGING)
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a plain ``.npz`` file without pickles, which ``SuperResolution.load`` reads.

        A ``random_state`` that is not an integer is not saved, nor are ``n_jobs`` and the engine.

        Parameters
        ----------
        path : str or path-like
            Written under a temporary name first, then renamed.
        """
        check_is_fitted(self, "predictor_", msg=NOT_FITTED)
        arrays = self.predictor_.arrays() | ({} if self.axes_ is None else {"axes": self.axes_})
        models.write_model(path, KIND, saved_parameters(self), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that ``save`` wrote. Loading a model never runs code.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        SuperResolution
        """
        kind, parameters, arrays = models.read_model(path)
        if kind != KIND:
            raise models.ModelFileError(
                f"{os.fspath(path)} holds a {kind!r} model; pass one that SuperResolution.save wrote"
            )
        try:
            if not all(np.isfinite(values).all() for values in arrays.values()):
                raise ValueError("NaN or infinite numbers")
            names = [field.name for field in fields(Recipe) if field.name in parameters]
            recipe = Recipe(**{name: parameters.pop(name) for name in names})
            model = cls(**parameters, recipe=recipe)
            model.check()
            n_pixels = model._sampling().size ** 2
            if recipe.features == "pixels":
                model.axes_, n_features = None, n_pixels
            else:
                model.axes_ = np.asarray(arrays["axes"], np.float32)
                n_raw, n_features = model.axes_.shape
                if n_raw != training.DERIVATIVES * n_pixels:
                    raise ValueError(f"axes of {n_raw} features, not {training.DERIVATIVES * n_pixels}")
            model.predictor_ = predictor_from(
                arrays,
                recipe,
                anchored=model.approach == "anchored",
                n_components=model.n_components,
                n_features=n_features,
                n_pixels=n_pixels,
            )
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise models.ModelFileError(
                f"{os.fspath(path)} is not a complete super-resolution model ({error}); save it again"
            ) from error
        return model

    def _colour(self, colour: Plane, tile: Tile, shape: tuple[int, int]) -> Plane:
        """Enlarge one tile."""
        if colour.ndim == 2:
            return self._luma(colour, tile, shape)
        ycbcr = rgb_to_ycbcr(colour)
        bright = self._luma(np.ascontiguousarray(ycbcr[..., 0]), tile, shape)
        chroma = training.enlarge(np.ascontiguousarray(ycbcr[..., 1:]), self.scale)[tile.without_halo(self.scale)]
        return ycbcr_to_rgb(np.concatenate([bright[..., None], chroma], axis=2))

    def _bicubic(self, plane: Plane | None, tile: Tile) -> Plane | None:
        return None if plane is None else training.enlarge(plane, self.scale)[tile.without_halo(self.scale)]

    def _luma(self, small: Plane, tile: Tile, shape: tuple[int, int]) -> Plane:
        """Enlarge the luma of a tile with its halo; return the tile."""
        sampling = self._sampling()
        size = sampling.size
        big = training.enlarge(small, self.scale)
        maps = training.layers(big, self.scale, sampling.features)
        # The grid is that of the full picture, so that tiles leave no seams.
        rows, columns = (
            tile.within(starts(length, size, sampling.stride), size, axis, self.scale)
            for axis, length in enumerate(shape)
        )
        mean = PatchMean(big.shape, size, np.float32)
        for band in bands(rows, len(columns), training.BAND):
            mean.add(self.predictor_.detail(self._features(maps, band, columns), self.n_jobs), band, columns)
        big = big + mean.mean
        for _ in range(self._recipe().back_projection):
            big += training.enlarge(small - training.shrink(big, self.scale), self.scale)
        return big[tile.without_halo(self.scale)]

    def _features(self, maps: Plane, rows: Indices, columns: Indices) -> Plane:
        """Features of the patches at these rows and columns, as the predictor takes them."""
        low = patch_features(maps, self._sampling().size, rows, columns)
        projected: Plane = low if self.axes_ is None else low @ self.axes_
        return projected

    def _recipe(self) -> Recipe:
        return self.recipe or Recipe()

    def _sampling(self) -> training.Sampling:
        recipe = self._recipe()
        return training.Sampling(
            self.scale,
            recipe.patch_size or training.LOW_PIXELS * self.scale,
            recipe.stride or self.scale,
            recipe.features,
            "mirrored" if self.approach == "anchored" else "zero",
        )

    def _training_plane(self, index: int, picture: ArrayLike) -> Plane:
        array = dtypes.check_picture(f"training picture {index + 1}", picture, self.smallest_to_learn_from())
        return luma(dtypes.split(array, dtypes.white(array)).colour)

    def smallest_to_learn_from(self) -> int:
        """Minimum side of a training picture, in pixels."""
        return self._sampling().size + self.scale - 1

    def check(self) -> None:
        """Raise a ValueError for parameters out of range; ``fit`` does so before any work."""
        checks.one_of("approach", self.approach, APPROACHES)
        checks.one_of("method", self.method, METHODS)
        scale: Any = self.scale
        if not isinstance(scale, numbers.Integral) or scale not in SCALES:
            raise ValueError(f"scale={self.scale!r} must be 2, 3 or 4")
        checks.whole_number("n_components", self.n_components)
        checks.whole_number("max_iter", self.max_iter)
        checks.threads("n_jobs", self.n_jobs)
        if not isinstance(self.recipe, Recipe | None):
            raise ValueError(f"recipe={self.recipe!r} must be a roadict.pictures.Recipe or None")
        sampling = self._sampling()
        starts(sampling.size, sampling.size, sampling.stride)


def training_stages(model: SuperResolution, pictures: Sequence[NDArray[Any]]) -> Stages:
    """Return the stages of a training on these pictures, with their costs in nanoseconds on one core."""
    sampling, recipe = model._sampling(), model._recipe()
    n_pixels, pixels = sampling.size**2, recipe.features == "pixels"
    n_patches = sum(math.prod(picture.shape[:2]) for picture in pictures) / sampling.stride**2
    n_features, n_maps = (n_pixels, 1) if pixels else (N_AXES, training.DERIVATIVES)
    n_raw, n_views = n_maps * n_pixels, 8 if model.approach == "anchored" else 1
    n_samples = min(n_views * n_patches, ANCHOR_SAMPLES if n_views > 1 else CODE_SAMPLES)
    rounds = 0 if model.method == "random" else model.max_iter
    learned = rounds * min(recipe.max_samples, n_samples) * model.n_components * n_features
    costs = {
        training.AXES: 0 if pixels else AXES_COST * n_patches * n_raw**2,
        training.GATHERING: GATHERING_COST * n_views * n_patches * n_raw * n_features,
        LEARNING: LEARNING_COST * learned,
    }
    if model.approach == "anchored":
        costs[REGRESSORS] = REGRESSOR_COST * n_samples * model.n_components * n_features
    elif model.approach == "zeyde":
        costs[CODING] = CODING_COST * n_samples * model.n_components
    return Stages(costs)


def enlarging_cost(model: SuperResolution, picture: NDArray[Any]) -> float:
    """Return the cost of enlarging a picture, in the units of ``training_stages``."""
    n_patches = math.prod(picture.shape[:2]) * (model.scale / model._sampling().stride) ** 2
    each = REGRESSION_COST if model.approach == "anchored" else CODING_COST
    return n_patches * model.n_components * each


def saved_parameters(model: SuperResolution) -> dict[str, Any]:
    """Parameters and recipe as a model file holds them: in one dictionary, as in versions without recipes."""
    settings = model.get_params(deep=False)
    seed = settings.pop("random_state")
    if isinstance(seed, numbers.Integral):
        settings["random_state"] = int(seed)
    recipe = settings.pop("recipe") or Recipe()
    return {name: value for name, value in (settings | asdict(recipe)).items() if name not in UNSAVED}
