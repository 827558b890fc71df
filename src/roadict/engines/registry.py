"""Engines by name."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadict.engines.gpu.layout import MOST_FEATURES
from roadict.engines.protocol import Engine
from roadict.formulation import Problem
from roadict.ranks.comm import SERIAL, Comm

if TYPE_CHECKING:
    from roadict.engines.gpu.batch import Pool

Array = NDArray[np.floating]

ENGINES = ("auto", "reference", "numba", "cuda")
WORTH_A_GPU = 5_000_000
"""Numbers per state array from which "auto" takes a GPU: below it, loading torch takes longer than most fits."""
WIDE = 2
"""Features per sample beyond which "auto" takes the reference engine."""


def engine_name(name: str, n_samples: int, n_features: int, n_components: int) -> str:
    """Choose for "auto": the GPU where there is one and the problem is large, else Numba, but for data wider than long.

    Gram matrices, n_features² numbers per atom, would then be larger than the blocks, of which an SVD makes light work.

    Parameters
    ----------
    name : str
        One of ENGINES.
    n_samples : int
        Of all ranks.
    n_features, n_components : int
    """
    if name != "auto":
        return name
    if n_features > WIDE * n_samples:
        return "reference"
    suits_gpu = n_features <= MOST_FEATURES and n_samples * n_features * n_components >= WORTH_A_GPU
    return "cuda" if suits_gpu and _has_gpu() else "numba"


def _has_gpu() -> bool:
    """Whether a GPU and all that the engine needs are there; torch is imported only where it is installed."""
    if any(find_spec(name) is None for name in ("torch", "triton")):
        return False
    import torch

    return bool(torch.cuda.is_available())


def make_engine(
    name: str,
    problem: Problem,
    dictionary: Array,
    codes: Array,
    n_jobs: int | None,
    comm: Comm,
    pool: "Pool | None" = None,
) -> Engine:
    """Start a run; engines are imported when they are asked for.

    Parameters
    ----------
    name : str
        Of an engine, not "auto": see ``engine_name``.
    problem : Problem
        With this rank's samples.
    dictionary : array of shape (n_components, n_features)
    codes : array of shape (n_samples, n_components)
        Of this rank's samples.
    n_jobs : int or None
    comm : Comm
    pool : Pool or None
        Batch on a GPU that the run joins, if it fits in.
    """
    if name == "reference":
        from roadict.engines.reference import ReferenceEngine

        return ReferenceEngine(problem, dictionary, codes, comm)
    if name == "cuda":
        from roadict.engines.gpu.cuda import CudaEngine

        if pool is not None and comm is SERIAL and pool.takes(problem, len(dictionary)):
            return pool.join(problem, dictionary, codes)
        return CudaEngine(problem, dictionary, codes, comm)
    from roadict.engines.cpu.fused import FusedEngine

    return FusedEngine(problem, dictionary, codes, n_jobs, comm)
