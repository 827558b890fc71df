"""Fits of every kind on the ranks of torchrun: python -m torch.distributed.run ... rank_fits.py FOLDER.

All ranks fit, then all but the last, and so on: starting them takes longer than their fits. Writes the fits that
test_torchrun.py compares with those in one process.
"""

import os
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from torch import distributed

import gpu_kernels
from rank_data import CUTS, FORMS, HOLES, TRUTH
from roadict import ROAD
from roadict.ranks.collectives import gathered
from roadict.ranks.comm import alone, current
from roadict.synthetic import planted

DATA = TRUTH.data
FITS = FORMS | {
    "exact, missing": {"rho": 10.0, "missing_values": np.nan},
    "ball, missing": {"rho": 10.0, "missing_values": np.nan, "epsilon": 0.1},
    "lasso, missing": {"rho": 10.0, "missing_values": np.nan, "formulation": "lasso"},
    "reference": {"rho": 10.0, "engine": "reference", "max_iter": 20},
    "auto": {"max_iter": 1000},
}
if not gpu_kernels.unusable():
    FITS["cuda"] = {"rho": 10.0, "engine": "cuda", "max_iter": 2, "n_components": 3, "epsilon": 0.8}


def model(name):
    return ROAD(**{"n_components": 12, "max_iter": 100, "random_state": 0} | FITS[name])


def data_of(name):
    if name == "cuda":
        return DATA[:130:4, :5]  # Triton's interpreter is slow
    if name == "auto":
        return planted(200, 8, 12, sparsity=2, random_state=3).data  # found by the first, short run
    return HOLES if name.endswith("missing") else DATA


def sums(comm):
    """Check the contract of Comm, on arrays and tensors, small and large."""
    for count in (1, 5, 4097, 50_000):
        for dtype in (np.float64, np.float32, np.int64, np.uint8):
            own = np.random.default_rng([comm.rank, count]).random(count) * 9
            parts = [np.random.default_rng([rank, count]).random(count) * 9 for rank in range(comm.size)]
            own, parts = own.astype(dtype), [part.astype(dtype) for part in parts]
            expected = parts[0].copy()
            for part in parts[1:]:
                expected += part  # in rank order, bitwise
            total = comm.sum(own.reshape(1, -1))
            assert total.dtype == dtype
            np.testing.assert_array_equal(total, expected.reshape(1, -1))
            tensor = comm.sum(torch.from_numpy(own))
            assert isinstance(tensor, torch.Tensor)
            np.testing.assert_array_equal(tensor.numpy(), expected)
            np.testing.assert_array_equal(own, parts[comm.rank])  # the argument is not changed
    assert comm.sum(np.zeros((0, 3))).shape == (0, 3)


def fits(comm, folder):
    for name in FITS:
        part = np.split(data_of(name), CUTS[comm.size])[comm.rank]
        fit = model(name).fit(part)
        codes = gathered(comm, fit.codes_)
        if name == "ball":  # the same ranks repeat bitwise
            np.testing.assert_array_equal(model(name).fit(part).components_, fit.components_)
        np.testing.assert_array_equal(gathered(comm, fit.components_[None]), [fit.components_] * comm.size)
        if comm.rank == 0:
            numbers = [fit.objective_, fit.error_, fit.n_iter_]
            np.savez(folder / f"{name}.npz", components=fit.components_, codes=codes, numbers=numbers)
    with alone():
        own = model("ball").fit(DATA[: 60 + comm.rank])
    assert own.codes_.shape == (60 + comm.rank, 12)


def main():
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    rank, ranks = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    for size in range(ranks, rank, -1):
        rendezvous = {} if size == ranks else {"init_method": f"file://{folder}/{size}.store"}
        distributed.init_process_group("gloo", rank=rank, world_size=size, timeout=timedelta(seconds=120), **rendezvous)
        comm = current()
        assert (comm.rank, comm.size) == (rank, size)
        sums(comm)
        (folder / str(size)).mkdir(exist_ok=True)
        fits(comm, folder / str(size))
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
