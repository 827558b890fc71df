"""Settings of super-resolution for experiments; users can leave them at their defaults."""

from dataclasses import dataclass

from roadict import checks
from roadict.engines.registry import ENGINES

FEATURES = ("derivatives", "pixels")
CODERS = ("lasso", "omp")


@dataclass(frozen=True)
class Recipe:
    """Settings of ``SuperResolution`` beyond its own parameters. Values out of range raise a ValueError.

    Parameters
    ----------
    features : {"derivatives", "pixels"}, default="derivatives"
        Features of patches: first and second differences, reduced by PCA, or the pixels themselves.
    patch_size, stride : int, default=None
        In pixels of the large picture. None: three pixels of the small picture, and one pixel.
    max_samples : int, default=4000
        Samples that the dictionary is learned from. Codes and regressors are fitted to more.
    epsilon : float, default=None
        ROAD's bound on the relative error. None: 0.3 for "anchored", where only the directions of atoms matter, else
        0.05.
    rho : float or "auto", default="auto"
        ROAD's penalty.
    engine : str, default="auto"
        ROAD's engine. Not saved with the model.
    coder : {"lasso", "omp"}, default="lasso"
        For "zeyde" and "yang", where two-stage methods also learn with it.
    alpha : float, default=0.03
        Weight of Σ|codes| for "lasso", relative to the root-mean-square norm of the training features.
    n_nonzero_coefs : int, default=3
        Coefficients per patch for "omp".
    back_projection : int, default=1
        Rounds of back-projection: the difference between the input and the downscaled result is added.

    Examples
    --------
    >>> from roadict.pictures import Recipe, SuperResolution
    >>> SuperResolution(2, approach="zeyde", recipe=Recipe(coder="omp")).recipe.n_nonzero_coefs
    3
    """

    features: str = "derivatives"
    patch_size: int | None = None
    stride: int | None = None
    max_samples: int = 4000
    epsilon: float | None = None
    rho: float | str = "auto"
    engine: str = "auto"
    coder: str = "lasso"
    alpha: float = 0.03
    n_nonzero_coefs: int = 3
    back_projection: int = 1

    def __post_init__(self) -> None:
        checks.one_of("features", self.features, FEATURES)
        checks.one_of("coder", self.coder, CODERS)
        checks.one_of("engine", self.engine, ENGINES)
        checks.whole_number("max_samples", self.max_samples)
        checks.whole_number("n_nonzero_coefs", self.n_nonzero_coefs)
        checks.whole_number("back_projection", self.back_projection, 0)
        checks.real_number("alpha", self.alpha, zero=True)
        if self.patch_size is not None:
            checks.whole_number("patch_size", self.patch_size)
        if self.stride is not None:
            checks.whole_number("stride", self.stride)
        if self.epsilon is not None:
            checks.real_number("epsilon", self.epsilon, zero=True)
        if self.rho != "auto":
            checks.real_number("rho", self.rho)
