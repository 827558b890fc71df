"""Engines by name."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadict.engines.gpu.layout import MAX_FEATURES
from roadict.engines.protocol import Engine
from roadict.extras import installed
from roadict.formulation import Problem
from roadict.ranks.comm import SERIAL, Comm

if TYPE_CHECKING:
    from roadict.engines.gpu.batch import Pool

Array = NDArray[np.floating]

ENGINES = ("auto", "reference", "numba", "cuda")
MIN_GPU_SIZE = 5_000_000
"""Minimum size of a state array for "auto" to choose a GPU: below, loading torch takes longer than most fits."""
MAX_FEATURE_RATIO = 2
"""Maximum n_features / n_samples for the fast engines; beyond, "auto" chooses the reference engine."""


def engine_name(name: str, n_samples: int, n_features: int, n_components: int) -> str:
    """Resolve "auto": "reference" for wide data, else "cuda" for large problems if there is a GPU, else "numba".

    For wide data the Gram matrices, n_features² numbers per atom, would be larger than the blocks, whose SVD is cheap.

    Parameters
    ----------
    name : str
        One of ENGINES.
    n_samples : int
        On all ranks.
    n_features, n_components : int
    """
    if name != "auto":
        return name
    if n_features > MAX_FEATURE_RATIO * n_samples:
        return "reference"
    suits_gpu = n_features <= MAX_FEATURES and n_samples * n_features * n_components >= MIN_GPU_SIZE
    return "cuda" if suits_gpu and _has_gpu() else "numba"


def _has_gpu() -> bool:
    """Whether a GPU and the packages for it are available; imports torch only if it is installed."""
    if not (installed("torch") and installed("triton")):
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
    """Create the engine of a run; engines are imported on demand.

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
        GPU batch that the run joins, if it is of the same kind and has a free slot.
    """
    if name == "reference":
        from roadict.engines.reference import ReferenceEngine

        return ReferenceEngine(problem, dictionary, codes, comm)
    if name == "cuda":
        from roadict.engines.gpu.cuda import CudaEngine

        if pool is not None and comm is SERIAL and pool.accepts(problem, len(dictionary)):
            return pool.join(problem, dictionary, codes)
        return CudaEngine(problem, dictionary, codes, comm)
    from roadict.engines.cpu.fused import FusedEngine

    return FusedEngine(problem, dictionary, codes, n_jobs, comm)
