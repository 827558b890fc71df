"""Tensors of torch in and out: computed with as arrays, given back as they came."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def plain(value: Any) -> Any:
    """Return an array with a tensor's numbers; anything else as it is."""
    return value.detach().cpu().numpy() if is_tensor(value) else value


def like(given: Any, array: NDArray[np.floating]) -> Any:
    """Return the array as what was given: a tensor on its device, or an array."""
    if not is_tensor(given):
        return array
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(given.device)
