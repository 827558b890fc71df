"""Model of the time and memory of an iteration on many GPUs: python benchmarks/scale.py [--bandwidth 4.27 ...].

Prints the table of docs/scale.md, from the formulas there.
"""

import argparse

from results import table

SHAPE = (64, 512)
"""Features and atoms: patches of 8 x 8 pixels."""
SAMPLES = (10**6, 10**7, 10**8)
GPUS = (1, 8, 64)
SINGLE, DOUBLE = 4, 8
ARRAYS = 2
"""State arrays of n_samples x n_features x n_components numbers, of every form but the inexact one."""
PER_PAIR = 3
"""Arrays of n_samples x n_components numbers: codes, factors of the rank-one blocks and of the shrinkage."""
PER_FEATURE = 9
"""Arrays of n_samples x n_features numbers: data, misfit, level, shift, means, reconstruction."""
NODE = 8
"""GPUs connected by NVLink."""


def state_bytes(n_samples, ranks, shape=SHAPE):
    """Bytes of state per rank."""
    n_features, n_components = shape
    return ARRAYS * SINGLE * n_samples * n_features * n_components / ranks


def memory(n_samples, ranks, shape=SHAPE):
    """Bytes per rank: state, codes, arrays of the size of the data, Gram matrices and their sum."""
    n_features, n_components = shape
    local = SINGLE * n_samples / ranks * (PER_PAIR * n_components + PER_FEATURE * n_features)
    return state_bytes(n_samples, ranks, shape) + local + (SINGLE + DOUBLE) * n_components * n_features**2


def summed_bytes(shape=SHAPE):
    """Bytes summed over ranks per iteration: the Gram matrices."""
    n_features, n_components = shape
    return DOUBLE * n_components * n_features**2


def exchange(ranks, link, latency, shape=SHAPE):
    """Seconds of a ring all-reduce: every rank sends and receives 2(p-1)/p of the bytes, in 2(p-1) messages."""
    return 2 * (ranks - 1) / ranks * summed_bytes(shape) / link + 2 * (ranks - 1) * latency


def iteration(n_samples, ranks, arguments):
    """Seconds of the pass, which reads and writes the state once, and of the all-reduce."""
    passing = arguments.over_floor * 2 * state_bytes(n_samples, ranks) / (arguments.bandwidth * 1e12)
    link = (arguments.nvlink if ranks <= NODE else arguments.network) * 1e9
    return passing, exchange(ranks, link, arguments.latency * 1e-6)


def time_text(seconds):
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def size_text(size):
    return f"{size / 1e9:.3g} GB" if size < 1e12 else f"{size / 1e12:.3g} TB"


def main(arguments):
    rows = []
    for n_samples in SAMPLES:
        for ranks in GPUS:
            passing, summing = iteration(n_samples, ranks, arguments)
            needed = memory(n_samples, ranks)
            fits = (
                "yes"
                if needed <= arguments.capacity * 1e9
                else f"no, {needed / arguments.capacity / 1e9:.3g} times too large"
            )
            total = passing + summing
            share = f"{100 * summing / total:.2g} %"
            rows.append([f"{n_samples:,}", ranks, time_text(total), share, size_text(needed), fits])
    header = ["samples", "GPUs", "one iteration", "of it the sum", "memory per GPU", "fits"]
    print(table(header, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandwidth", type=float, default=4.27, help="of the GPU's memory when copying, in TB/s")
    parser.add_argument("--over-floor", type=float, default=2.1, help="time of a pass over reading and writing once")
    parser.add_argument("--nvlink", type=float, default=350.0, help="between GPUs of a machine, GB/s each way")
    parser.add_argument("--network", type=float, default=40.0, help="between machines, GB/s per GPU each way")
    parser.add_argument("--latency", type=float, default=5.0, help="of a message, in microseconds")
    parser.add_argument("--capacity", type=float, default=139 * 2**30 / 1e9, help="memory of a GPU, in GB")
    main(parser.parse_args())
