"""Run dictlearn in its own environment: python dictlearn_peer.py PROBLEMS.npz RESULTS.npz METHOD K S ITERATIONS.

PROBLEMS holds data_0, data_1, ... (samples are rows) and seeds; RESULTS gets components_0, ..., errors and seconds.
A first run of two iterations keeps compilation out of the timing.
"""

import sys
import time

import numpy as np
from dictlearn import DictionaryLearning


def fit(data, seed, method, n_components, sparsity, iterations):
    model = DictionaryLearning(
        n_components, fit_algorithm=method, n_nonzero_coefs=sparsity, max_iter=iterations, random_state=int(seed)
    )
    before = time.perf_counter()
    model.fit(data)
    seconds = time.perf_counter() - before
    residual = data - model.transform(data) @ model.components_
    return model.components_, np.linalg.norm(residual) / np.linalg.norm(data), seconds


if __name__ == "__main__":
    source, target, method = sys.argv[1:4]
    n_components, sparsity, iterations = map(int, sys.argv[4:])
    results, errors, seconds = {}, [], []
    with np.load(source) as problems:
        seeds = problems["seeds"]
        fit(problems["data_0"], seeds[0], method, n_components, sparsity, 2)
        for i, seed in enumerate(seeds):
            found, error, time_taken = fit(problems[f"data_{i}"], seed, method, n_components, sparsity, iterations)
            results[f"components_{i}"] = found
            errors.append(error)
            seconds.append(time_taken)
    np.savez(target, errors=errors, seconds=seconds, **results)
