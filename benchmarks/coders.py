"""Speed of the coders: Batch-OMP and Lasso compared with scikit-learn's, all with and without missing entries.

python benchmarks/coders.py
"""

import sys
import time
import warnings

import numpy as np
from results import table, write_section
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import orthogonal_mp_gram

from roadict.coders.registry import encode
from roadict.synthetic import planted

N, M, K, S = 20_000, 64, 256, 8
ALPHAS = (0.3, 0.1, 0.03)
REPEATS = 3
OTHERS = 2_000
CODERS = {
    "omp": {"n_nonzero_coefs": S},
    "mp": {"n_nonzero_coefs": S},
    "sp": {"n_nonzero_coefs": S},
    "cosamp": {"n_nonzero_coefs": S},
    "lasso": {"alpha": 0.1},
    "basis-pursuit": {"epsilon": 0.1},
    "half": {"n_nonzero_coefs": S},
    "threshold": {"alpha": 0.1},
}


def seconds(function, repeats=REPEATS):
    """Shortest time of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - before)
    return min(times), result


def objective(data, codes, dictionary, alpha):
    return ((data - codes @ dictionary) ** 2).sum() / 2 + alpha * np.abs(codes).sum()


def against_scikit_learn(data, dictionary):
    rows = []
    ours, codes = seconds(lambda: encode(data, None, dictionary, algorithm="omp", n_nonzero_coefs=S))
    gram = dictionary @ dictionary.T
    theirs, other = seconds(lambda: orthogonal_mp_gram(gram, dictionary @ data.T, n_nonzero_coefs=S).T, 1)
    same = f"largest difference of codes {np.abs(codes - other).max():.0e}"
    rows.append([f"Batch-OMP, {S} nonzeros", f"{ours:.3f} s", f"{theirs:.2f} s", f"{theirs / ours:.1f}", same])
    for alpha in ALPHAS:
        ours, codes = seconds(lambda: encode(data, None, dictionary, algorithm="lasso", alpha=alpha))  # noqa: B023
        theirs, (other, n_jobs) = min(
            (
                seconds(lambda: (sparse_encode(data, dictionary, algorithm="lasso_cd", alpha=alpha, n_jobs=j), j), 1)  # noqa: B023
                for j in (1, 2)
            ),
            key=lambda timed: timed[0],
        )
        mine, reference = (objective(data, c, dictionary, alpha) for c in (codes, other))
        same = f"objective {mine:.8g} and {reference:.8g} (n_jobs={n_jobs})"
        name = f"Lasso, alpha = {alpha:g}, {(codes != 0).sum(axis=1).mean():.1f} nonzeros"
        rows.append([name, f"{ours:.3f} s", f"{theirs:.2f} s", f"{theirs / ours:.1f}", same])
        print(rows[-1], file=sys.stderr)
    return table(["coder", "roadict", "scikit-learn", "times faster", "agreement"], rows)


def every_coder(data, dictionary):
    observed = np.random.default_rng(1).random(data.shape) < 0.5
    rows = []
    for algorithm, arguments in CODERS.items():
        times = []
        for mask in (None, observed):
            encode(data[:5], None if mask is None else mask[:5], dictionary, algorithm=algorithm, **arguments)
            times.append(seconds(lambda: encode(data, mask, dictionary, algorithm=algorithm, **arguments))[0])  # noqa: B023
        settings = ", ".join(f"{name} = {value:g}" for name, value in arguments.items())
        rows.append([algorithm, settings, *(f"{1e6 * t / len(data):.1f} µs" for t in times)])
    return table(["coder", "setting", "per sample", "with half of the entries missing"], rows)


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn on ill-conditioned columns
    truth = planted(N, M, K, sparsity=S, snr_db=30, random_state=50_000)
    data, dictionary = truth.data, truth.dictionary
    for algorithm, arguments in CODERS.items():
        encode(data[:5], None, dictionary, algorithm=algorithm, **arguments)  # compiles
    body = f"{N} samples of {M} features, {K} atoms, {S} of them in each sample, 30 dB; float64.\n\n"
    body += against_scikit_learn(data, dictionary)
    body += f"\n\nAll coders, {OTHERS} of the samples:\n\n" + every_coder(data[:OTHERS], dictionary)
    write_section("Coders", "python benchmarks/coders.py", body)


if __name__ == "__main__":
    main()
