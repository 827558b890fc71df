"""A kernel with a loop of a length that it is given, to see whether Triton's interpreter works at all."""

import numpy as np
import torch
import triton
import triton.language as tl

VERSIONS = f"Triton {triton.__version__} with NumPy {np.__version__}"


@triton.jit
def _count(numbers, length):
    for i in range(length):
        tl.store(numbers + i, i)


def counted(length):
    numbers = torch.zeros(length, dtype=torch.int32)
    _count[(1,)](numbers, length)
    return numbers.tolist()
