"""Compile the kernels of an iteration without a GPU; run by test_cuda without the interpreter."""

import dataclasses

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from roadict.engines.gpu import blocks as gpu_blocks
from roadict.engines.gpu import exact as gpu_exact
from roadict.engines.gpu.exact import ExactBatch
from roadict.formulation import Problem, RankOne, constrained, lasso

TYPES = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int8: "*i8", int: "i32", float: "fp32"}
HOPPER = GPUTarget("cuda", 90, 32)


class Compiled:
    """Stands in for a kernel: a launch compiles it for the given arguments without running it."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self.launch

    def launch(self, *arguments, num_warps=4, **constants):
        kinds = [TYPES[value.dtype if torch.is_tensor(value) else type(value)] for value in arguments]
        signature = dict(zip(self.kernel.arg_names, kinds, strict=False)) | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=self.kernel, signature=signature, constexprs=constants)
        triton.compile(source, target=HOPPER, options={"num_warps": num_warps})
        print(self.kernel.__name__)


class Passes:
    def __getattr__(self, name):
        found = getattr(PASSES, name)
        return Compiled(found) if isinstance(found, triton.JITFunction) else found


class Ranks:
    """A communicator with a single rank."""

    rank, size = 0, 1

    def sum(self, array):
        return array


PASSES = gpu_exact.passes


def main():
    gpu_exact.passes = gpu_blocks.passes = Passes()
    for name in ("top_eigenvectors", "power_steps", "add_images", "step_by_images"):
        setattr(gpu_blocks, name, Compiled(getattr(gpu_blocks, name)))
    rhos, cpu = (1.0,) * 3, torch.device("cpu")
    ExactBatch(Problem(np.ones((40, 34), np.float32), None, constrained(0.0), rhos), 5, 2, cpu)._launch()
    ranked = ExactBatch(Problem(np.ones((40, 12)), np.ones((40, 12), bool), lasso(1.0), rhos), 5, 1, cpu, Ranks())
    ranked._prepare()
    ranked._launch()
    for signs in (RankOne.POSITIVE_ATOMS, RankOne.POSITIVE):
        form = dataclasses.replace(constrained(0.0), rank_one=signs)
        ExactBatch(Problem(np.ones((40, 34), np.float32), None, form, rhos), 5, 2, cpu)._launch()


if __name__ == "__main__":
    main()
