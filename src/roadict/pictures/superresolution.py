"""Super-resolution: enlarge a picture with detail learned from pairs of small and large patches."""

import numbers
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadict import checks
from roadict.engines.registry import ENGINES
from roadict.files import models
from roadict.pictures import ranges, training
from roadict.pictures.dictionaries import METHODS
from roadict.pictures.features import patch_features
from roadict.pictures.patches import PatchMean, bands, starts
from roadict.pictures.predictors import fit_predictor, predictor_from
from roadict.pictures.ranges import Plane
from roadict.pictures.resize import luma, rgb_to_ycbcr, ycbcr_to_rgb
from roadict.pictures.tiles import Tile, mirrored, tiles
from roadict.progress.terminal import Progress, silent
from roadict.runs.snapshot import Callback
from roadict.seeds import RandomStateLike, seed_sequence

APPROACHES = ("anchored", "zeyde", "yang")
FEATURES = ("derivatives", "pixels")
CODERS = ("lasso", "omp")
SCALES = (2, 3, 4)
KIND = "SuperResolution"
_REACH = 5
"""Pixels of the small picture beyond the patches on a tile that these depend on: filters and bicubic, and to spare."""
_BACK_PROJECTION_REACH = 4
"""The same for every round of back-projection."""


class SuperResolution:
    """Enlarge pictures by a dictionary learned from others.

    A picture is enlarged by bicubic, and patches of the detail that this lacks are predicted from what the enlarged
    patches look like, and averaged. Of colour pictures the luma is treated so, and the chroma is enlarged by bicubic.

    Parameters
    ----------
    scale : {2, 3, 4}, default=3
    approach : {"anchored", "zeyde", "yang"}, default="anchored"
        "anchored": every atom keeps a ridge regressor from features to detail, fitted to the samples nearest to it.
        "zeyde": sparse codes of the features, and a high-resolution dictionary fitted to them by least squares.
        "yang": one dictionary of stacked features and detail.
    method : str, default="road"
        How the dictionary is learned: "road", an update of ``AlternatingDictionaryLearning`` ("ksvd", "mod",
        "blotless", ...), or "random", which takes training patches.
    n_components : int, default=512
        Number of atoms.
    features : {"derivatives", "pixels"}, default="derivatives"
        What patches are compared by: first and second differences, reduced by PCA, or the pixels themselves.
    patch_size, stride : int, default=None
        In pixels of the large picture. None: three pixels of the small picture, and one.
    epsilon : float, default=None
        Bound on the relative error for ROAD. None: 0.3 for "anchored", whose atoms are directions only, else 0.05.
    rho : float or "auto", default="auto"
        Penalty of ROAD.
    max_iter : int, default=120
        Iterations of ROAD; two-stage methods take a sixth as many.
    max_samples : int, default=4000
        Samples that the dictionary is learned from. Codes and regressors are fitted to more.
    coder : {"lasso", "omp"}, default="lasso"
        For "zeyde" and "yang", where two-stage methods learn with it, too.
    alpha : float, default=0.03
        Weight of Σ|codes| for "lasso", relative to the root-mean-square norm of the training features.
    n_nonzero_coefs : int, default=3
        Coefficients per patch for "omp".
    back_projection : int, default=1
        Rounds of adding back what the shrunken result lacks of the input.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
    n_jobs : int, default=None
        Threads. None: all cores.
    engine : str, default="auto"
        Of ROAD.

    Attributes
    ----------
    predictor_ : Coupled or Anchored
        From features to detail, with the atoms as ``predictor_.atoms``.
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
        features: str = "derivatives",
        patch_size: int | None = None,
        stride: int | None = None,
        epsilon: float | None = None,
        rho: float | str = "auto",
        max_iter: int = 120,
        max_samples: int = 4000,
        coder: str = "lasso",
        alpha: float = 0.03,
        n_nonzero_coefs: int = 3,
        back_projection: int = 1,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        engine: str = "auto",
    ) -> None:
        self.scale = scale
        self.approach = approach
        self.method = method
        self.n_components = n_components
        self.features = features
        self.patch_size = patch_size
        self.stride = stride
        self.epsilon = epsilon
        self.rho = rho
        self.max_iter = max_iter
        self.max_samples = max_samples
        self.coder = coder
        self.alpha = alpha
        self.n_nonzero_coefs = n_nonzero_coefs
        self.back_projection = back_projection
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine

    def parameters(self) -> dict[str, Any]:
        """What the model was made with, but for what does not tell what it is: seed, threads and engine."""
        left_out = ("random_state", "n_jobs", "engine")
        return {name: value for name, value in vars(self).items() if not name.endswith("_") and name not in left_out}

    def fit(
        self, pictures: Sequence[ArrayLike], progress: Progress | None = None, callback: Callback | None = None
    ) -> Self:
        """Learn from pictures, which are shrunken to know what is lost.

        Parameters
        ----------
        pictures : sequence of arrays of shape (height, width) or (height, width, channels)
        progress : callable, default=None
            Called with steps done, steps in all, and a text.
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
        size, stride = self._grid()
        edges = "mirrored" if self.approach == "anchored" else "zero"
        report = progress or silent
        self.axes_ = None
        if self.features == "derivatives":
            self.axes_ = training.find_axes(planes, self.scale, size, stride, edges, report)
        self.predictor_ = fit_predictor(
            planes,
            self.parameters(),
            size=size,
            stride=stride,
            edges=edges,
            axes=self.axes_,
            seed=seed_sequence(self.random_state),
            n_jobs=self.n_jobs,
            engine=self.engine,
            report=report,
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
            Called with tiles done, tiles in all, and a text.

        Returns
        -------
        array of shape (scale * height, scale * width) or (scale * height, scale * width, channels)
            In the dtype and range of the picture.
        """
        self._check_fitted()
        patch = -(-self._grid()[0] // self.scale)  # in pixels of the small picture
        array = ranges.checked("picture", picture, patch)
        unit, limits = ranges.white(array), ranges.bounds(array)
        shape = (array.shape[0] * self.scale, array.shape[1] * self.scale)
        halo = patch + _REACH + _BACK_PROJECTION_REACH * self.back_projection
        result = np.empty((*shape, *array.shape[2:]), array.dtype)
        work = list(tiles(array.shape[:2], halo))
        for done, tile in enumerate(work):
            parts = ranges.split(mirrored(array, tile), unit)
            big = ranges.Parts(self._colour(parts.colour, tile, shape), self._bicubic(parts.alpha, tile))
            result[tile.inside(self.scale)] = ranges.join(big, array.dtype, unit, limits)
            if progress is not None:
                progress(done + 1, len(work), "tiles")
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a plain ``.npz`` file without pickles, which ``SuperResolution.load`` reads.

        Parameters
        ----------
        path : str or path-like
            Written under a temporary name first, then renamed.
        """
        self._check_fitted()
        arrays = self.predictor_.arrays() | ({} if self.axes_ is None else {"axes": self.axes_})
        models.write_model(path, KIND, self.parameters(), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that ``save`` wrote. Opening somebody's model never runs code.

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
            model = cls(**parameters)
            model.check()
            n_pixels = model._grid()[0] ** 2
            if model.features == "pixels":
                model.axes_, n_features = None, n_pixels
            else:
                model.axes_ = np.asarray(arrays["axes"], np.float32)
                n_raw, n_features = model.axes_.shape
                if n_raw != training.DERIVATIVES * n_pixels:
                    raise ValueError(f"axes of {n_raw} features, not {training.DERIVATIVES * n_pixels}")
            model.predictor_ = predictor_from(arrays, parameters, n_features, n_pixels)
        except (TypeError, KeyError, ValueError, IndexError) as broken:
            raise models.ModelFileError(
                f"{os.fspath(path)} is not a whole super-resolution model ({broken}); save it again"
            ) from broken
        return model

    def _colour(self, colour: Plane, tile: Tile, shape: tuple[int, int]) -> Plane:
        """Enlarge one tile."""
        if colour.ndim == 2:
            return self._luma(colour, tile, shape)
        ycbcr = rgb_to_ycbcr(colour)
        bright = self._luma(np.ascontiguousarray(ycbcr[..., 0]), tile, shape)
        chroma = training.enlarge(np.ascontiguousarray(ycbcr[..., 1:]), self.scale)[tile.kept(self.scale)]
        return ycbcr_to_rgb(np.concatenate([bright[..., None], chroma], axis=2))

    def _bicubic(self, plane: Plane | None, tile: Tile) -> Plane | None:
        return None if plane is None else training.enlarge(plane, self.scale)[tile.kept(self.scale)]

    def _luma(self, small: Plane, tile: Tile, shape: tuple[int, int]) -> Plane:
        """Enlarge the luma of a tile with its halo; return the tile."""
        size, stride = self._grid()
        big = training.enlarge(small, self.scale)
        maps = training.layers(big, self.scale, self.features)
        # The grid is that of the whole picture, so that tiles do not show.
        rows, columns = (
            tile.within(starts(length, size, stride), size, axis, self.scale) for axis, length in enumerate(shape)
        )
        mean = PatchMean(big.shape, size, np.float32)
        for band in bands(rows, len(columns), training.BAND):
            low = patch_features(maps, size, band, columns)
            projected = low if self.axes_ is None else low @ self.axes_
            mean.add(self.predictor_.detail(projected, self.n_jobs), band, columns)
        big = big + mean.mean
        for _ in range(self.back_projection):
            big += training.enlarge(small - training.shrink(big, self.scale), self.scale)
        return big[tile.kept(self.scale)]

    def _grid(self) -> tuple[int, int]:
        size = training.LOW_PIXELS * self.scale if self.patch_size is None else self.patch_size
        return size, self.scale if self.stride is None else self.stride

    def _training_plane(self, index: int, picture: ArrayLike) -> Plane:
        array = ranges.checked(f"training picture {index + 1}", picture, self.smallest_to_learn_from())
        return luma(ranges.split(array, ranges.white(array)).colour)

    def smallest_to_learn_from(self) -> int:
        """Pixels that each side of a training picture must have."""
        return self._grid()[0] + self.scale - 1

    def _check_fitted(self) -> None:
        if not hasattr(self, "predictor_"):
            raise ValueError("this SuperResolution has not learned yet; call fit, or load a model")

    def check(self) -> None:
        """Refuse parameters that cannot be, before any work."""
        checks.one_of("approach", self.approach, APPROACHES)
        checks.one_of("method", self.method, METHODS)
        checks.one_of("features", self.features, FEATURES)
        checks.one_of("coder", self.coder, CODERS)
        scale: Any = self.scale
        if not isinstance(scale, numbers.Integral) or scale not in SCALES:
            raise ValueError(f"scale={self.scale!r} must be 2, 3 or 4")
        for name in ("n_components", "max_iter", "max_samples", "n_nonzero_coefs"):
            checks.whole_number(name, getattr(self, name))
        checks.whole_number("back_projection", self.back_projection, 0)
        for name in ("patch_size", "stride"):
            if getattr(self, name) is not None:
                checks.whole_number(name, getattr(self, name))
        checks.real_number("alpha", self.alpha, zero=True)
        if self.epsilon is not None:
            checks.real_number("epsilon", self.epsilon, zero=True)
        if self.rho != "auto":
            checks.real_number("rho", self.rho)
        checks.one_of("engine", self.engine, ENGINES)
        checks.threads("n_jobs", self.n_jobs)
        size, stride = self._grid()
        starts(size, size, stride)
