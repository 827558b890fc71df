"""The paper's digits, literally: dictionaries of pixels, the learner's own codes, and a pseudo-inverse.

Elsewhere dictionaries hold the detail that bicubic lacks, codes are computed anew by one coder for all learners, and
the second dictionary has a slight ridge (``pictures.predictors``).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadict.coders.registry import encode
from roadict.experiments.plan import PictureProblem
from roadict.pictures.dictionaries import learn_model, random_atoms
from roadict.pictures.patches import PatchMean, extract, starts
from roadict.pictures.recipe import Recipe
from roadict.pictures.training import enlarge, shrink

Plane = NDArray[np.floating]
SUFFIX = "-literal"
"""Of the names of the approaches."""
EPSILON = 0.05
"""ROAD's bound on the relative error where the method has none, as elsewhere."""


def enlarge_literally(
    small: Plane, training: Sequence[Plane], problem: PictureProblem, method: str, recipe: Recipe, seed: int
) -> tuple[Plane, Plane]:
    """Learn from pictures and enlarge another; return the large picture and the atoms of large patches.

    Parameters
    ----------
    small : array of shape (height, width)
    training : arrays of shape (height, width)
    problem : PictureProblem
        Of the approach "yang-literal": one dictionary of stacked patches; or "zeyde-literal": the second one by least
        squares from the codes of the first.
    method : str
        A learner of ``pictures.dictionaries``.
    recipe : Recipe
        With the side and the stride of patches.
    seed : int
    """
    size, stride = recipe.patch_size or 0, recipe.stride or 1
    pairs = [(enlarge(shrink(picture, problem.scale), problem.scale), picture) for picture in training]
    low, high = (np.concatenate([_patches(pair[i], size, stride) for pair in pairs]) for i in range(2))
    stacked = problem.approach.startswith("yang")
    atoms, codes = _learned(np.hstack([low, high]) if stacked else low, problem, method, recipe, seed)
    of_low, of_high = (atoms[:, : size**2], atoms[:, size**2 :]) if stacked else (atoms, np.linalg.pinv(codes) @ high)
    enlarged = enlarge(small, problem.scale)
    rows, columns = (starts(length, size, stride) for length in enlarged.shape)
    picture = PatchMean((enlarged.shape[0], enlarged.shape[1]), size)
    weight = recipe.alpha * float(np.sqrt(np.square(low).sum(axis=1).mean()))
    picture.add(_codes(extract(enlarged, size, rows, columns), of_low, recipe, weight) @ of_high, rows, columns)
    return picture.mean, of_high


def _patches(picture: Plane, size: int, stride: int) -> Plane:
    rows, columns = (starts(length, size, stride) for length in picture.shape)
    return extract(picture, size, rows, columns).astype(np.float64)


def _learned(data: Plane, problem: PictureProblem, method: str, recipe: Recipe, seed: int) -> tuple[Plane, Plane]:
    """Atoms and the learner's own codes; of random patches, which have none, those of the coder."""
    sequence = np.random.SeedSequence(seed)
    weight = recipe.alpha * float(np.sqrt(np.square(data).sum(axis=1).mean()))
    if method == "random":
        atoms = random_atoms(data, problem.n_components, sequence)
        return atoms, _codes(data, atoms, recipe, weight)
    model = learn_model(
        data,
        problem.n_components,
        method=method,
        epsilon=EPSILON if recipe.epsilon is None else recipe.epsilon,
        rho=recipe.rho,
        lasso_share=recipe.alpha if recipe.coder == "lasso" else None,
        n_nonzero_coefs=recipe.n_nonzero_coefs,
        max_iter=problem.max_iter,
        seed=sequence,
        n_jobs=1,
        engine=recipe.engine,
    )
    return model.components_, model.codes_


def _codes(data: Plane, atoms: Plane, recipe: Recipe, weight: float) -> Plane:
    """Codes of patches by the recipe's coder."""
    lasso = recipe.coder == "lasso"
    codes: Plane = encode(
        data.astype(np.float64),
        None,
        atoms,
        algorithm=recipe.coder,
        alpha=weight if lasso else None,
        n_nonzero_coefs=None if lasso else recipe.n_nonzero_coefs,
        n_jobs=1,
        warn=False,
    )
    return codes
