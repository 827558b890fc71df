"""Which atoms of a model the patches of a picture use when it is enlarged."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.pictures import dtypes, training
from roadict.pictures.dtypes import Plane
from roadict.pictures.patches import Indices
from roadict.pictures.resize import luma
from roadict.pictures.superresolution import REACH, SuperResolution
from roadict.pictures.tiles import Tile, mirrored


class PatchCodes(NamedTuple):
    """Codes of patches on a regular grid, row by row.

    Attributes
    ----------
    codes : array of shape (n_rows * n_columns, n_components)
    n_columns : int
    size, step : int
        Of patches, and from one to the next, in pixels of the large picture.
    """

    codes: Plane
    n_columns: int
    size: int
    step: int


def patch_codes(model: SuperResolution, picture: NDArray[Any], max_patches: int) -> PatchCodes:
    """Code patches of a picture as the model does that enlarges it.

    Parameters
    ----------
    model : SuperResolution
        Fitted.
    picture : array of shape (height, width) or (height, width, channels)
        The small one; as ``predict`` takes it.
    max_patches : int
        Of more, about so many are coded, evenly spaced.

    Returns
    -------
    PatchCodes
    """
    sampling = model._sampling()
    plane = luma(dtypes.split(picture, dtypes.white(picture)).colour)
    spans = [model.scale * length - sampling.size + 1 for length in plane.shape]
    spacing = math.sqrt(math.prod(spans) / max_patches)
    step = sampling.stride * max(1, math.ceil(spacing / sampling.stride))
    rows, columns = (np.arange(0, span, step) for span in spans)
    low = np.concatenate([_features_of_row(model, plane, int(row), columns) for row in rows])
    return PatchCodes(model.predictor_.codes(low, model.n_jobs), len(columns), sampling.size, step)


def _features_of_row(model: SuperResolution, plane: Plane, row: int, columns: Indices) -> Plane:
    """Features of the patches in one row of the grid; only what they depend on is enlarged, to be quick."""
    sampling, scale = model._sampling(), model.scale
    strip = Tile(row // scale, 0, -(-(row + sampling.size) // scale), plane.shape[1], REACH)
    big = training.enlarge(mirrored(plane, strip), scale)
    maps, margin = training.layers(big, scale, sampling.features), REACH * scale
    return model._features(maps, np.array([margin + row % scale]), margin + columns)
