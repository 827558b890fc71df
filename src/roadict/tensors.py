"""Torch tensors, NumPy arrays, sparse arrays: which it is, and conversion."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor; torch need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse array or matrix of SciPy, which is not imported for it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


def plain(value: Any) -> Any:
    """Return a tensor as an array, and anything else unchanged."""
    if not is_tensor(value):
        return value
    import torch

    if value.layout is not torch.strided or value.is_complex() or value.is_meta:
        raise ValueError(
            f"a tensor of {value.dtype} and {value.layout} on {value.device} cannot be used; pass a dense one of real "
            "numbers (.to_dense(), .real)"
        )
    values = value.detach().resolve_neg().cpu()
    return (values.float() if values.dtype is torch.bfloat16 else values).numpy()


def like(given: Any, array: NDArray[np.floating]) -> Any:
    """Return the array in the type of ``given``: a tensor on its device, or an array."""
    if not is_tensor(given):
        return array
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(given.device)
