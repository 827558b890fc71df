"""Where the tests run the kernels for GPUs: on a GPU if there is one, else in Triton's interpreter."""

import functools
import os
import shutil
import warnings
from pathlib import Path


def has_gpu():
    """Whether torch sees a GPU. Importing torch takes seconds: it is asked only where there is a driver."""
    if not (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi")):
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@functools.cache
def unusable():
    """Why no kernel can run here, if so: Triton 3.6's interpreter, for one, fails with NumPy 2.4 and newer."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return None  # on a GPU a kernel that fails is a failure
    try:
        import trivial_kernel
    except ImportError as missing:
        return f"needs {missing.name}: pip install 'roadict[gpu]'"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # as in every test
            counted = trivial_kernel.counted(3)
    except Exception as failure:
        return f"{trivial_kernel.VERSIONS}: the interpreter fails on a trivial kernel ({failure})"
    assert counted == [0, 1, 2]
    return None
