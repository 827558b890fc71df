"""The two-stage methods: recovery of planted dictionaries and speed, compared with dictlearn.

python benchmarks/updates.py recovery [--trials 10]
python benchmarks/updates.py speed

dictlearn and its Numba extra have their own environment, benchmarks/.peers, created on first use.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

# One BLAS thread for both: on a busy machine its spinning threads take ten times as long as one.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from environment import peer_python
from results import table, write_section
from sklearn.exceptions import ConvergenceWarning

from roadict import AlternatingDictionaryLearning
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

FIRST_SEED = 40_000  # settings were tuned on seeds of 90,000 and up
# roadict's update, the bound on its mean error, and dictlearn's method, if any
METHODS = [
    ("mod", 0.045, "mod"),
    ("ksvd", 0.045, "ksvd"),
    ("approximate-ksvd", None, "uaksvd"),
    ("simco", 0.05, None),
    ("blotless", 0.05, None),
    ("sequential", 0.06, None),
    ("consistent-sequential", 0.06, None),
]
SHAPE, ITERATIONS = (400, 16, 32, 3), 100


def dictlearn(problems, seeds, method, n_components, sparsity, iterations):
    """Atoms, relative errors of the codes, and seconds of every problem."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problems.npz"), Path(folder, "results.npz")
        np.savez(source, seeds=seeds, **{f"data_{i}": data for i, data in enumerate(problems)})
        script = Path(__file__).with_name("dictlearn_peer.py")
        numbers = map(str, (n_components, sparsity, iterations))
        subprocess.run([peer_python(), "-W", "ignore", script, source, target, method, *numbers], check=True)
        with np.load(target) as found:
            return [found[f"components_{i}"] for i in range(len(problems))], found["errors"], found["seconds"]


def roadict(problems, seeds, update, n_components, sparsity, iterations):
    """The same, by AlternatingDictionaryLearning."""
    greedy = {} if "sequential" in update else {"n_nonzero_coefs": sparsity}

    def fit(data, seed, max_iter):
        model = AlternatingDictionaryLearning(
            n_components, update=update, max_iter=max_iter, tol=0, random_state=int(seed), **greedy
        )
        before = time.perf_counter()
        model.fit(data)
        return model, time.perf_counter() - before

    fit(problems[0], seeds[0], 2)  # compiles
    fits = [fit(data, seed, iterations) for data, seed in zip(problems, seeds, strict=True)]
    errors = [-model.score(data) for (model, _), data in zip(fits, problems, strict=True)]
    return [model.components_ for model, _ in fits], np.array(errors), np.array([seconds for _, seconds in fits])


def describe(atoms, errors, seconds, truths):
    found = np.array([dictionary_error(a, truth.dictionary) for a, truth in zip(atoms, truths, strict=True)])
    return [
        f"{found.mean():.4f}",
        f"{np.median(found):.4f}",
        f"{(found < 1e-2).mean():.2f}",
        f"{errors.mean():.3f}",
        f"{np.median(seconds) * 1e3:.0f} ms",
    ]


def draw(trials):
    """Planted problems, and independent seeds for their starts."""
    n_samples, n_features, n_components, sparsity = SHAPE
    data_seeds = FIRST_SEED + np.arange(trials)
    truths = [planted(n_samples, n_features, n_components, sparsity=sparsity, random_state=int(s)) for s in data_seeds]
    return truths, [truth.data for truth in truths], data_seeds + 1_000_000


def recovery(trials):
    n_samples, _, n_components, sparsity = SHAPE
    truths, problems, seeds = draw(trials)
    rows = []
    for update, bound, peer in METHODS:
        row = describe(*roadict(problems, seeds, update, n_components, sparsity, ITERATIONS), truths)
        rows.append([f"roadict {update}", *row, "" if bound is None else bound])
        print(rows[-1], file=sys.stderr)
        if peer is not None:
            row = describe(*dictlearn(problems, seeds, peer, n_components, sparsity, ITERATIONS), truths)
            rows.append([f"dictlearn {peer}", *row, ""])
            print(rows[-1], file=sys.stderr)
    body = (
        f"(M, K, S) = (16, 32, 3), N = {n_samples}, {ITERATIONS} iterations, {trials} trials, optimal matching. OMP "
        "with the true S; the sequential methods have no coder and take the default weight of their penalty. dictlearn "
        "1.0 with its Numba extra, its own start. Data error: of the learned dictionary with its coder, on the same "
        "samples.\n\n"
        + table(
            ["method", "mean error", "median error", "share below 1e-2", "data error", "a fit (median)", "bound"], rows
        )
    )
    write_section("Two-stage methods: recovery", f"python benchmarks/updates.py recovery --trials {trials}", body)


def patches(number):
    from sklearn.datasets import load_sample_image
    from sklearn.feature_extraction.image import extract_patches_2d

    picture = load_sample_image("china.jpg").mean(axis=2) / 255
    drawn = extract_patches_2d(picture, (8, 8), max_patches=number, random_state=0).reshape(number, 64)
    return drawn - drawn.mean(axis=1, keepdims=True)


def speed():
    n_samples, n_features, n_components, sparsity = SHAPE
    small = [
        planted(n_samples, n_features, n_components, sparsity=sparsity, random_state=FIRST_SEED + i).data
        for i in range(10)
    ]
    cases = [
        ("planted (16, 32, 3), N = 400", small, n_components, sparsity, ITERATIONS),
        ("8 x 8 patches, K = 256, S = 8, N = 5000", [patches(5000)] * 3, 256, 8, 20),
    ]
    rows = []
    for name, problems, atoms, nonzeros, iterations in cases:
        seeds = np.arange(len(problems))
        for update, _, peer in METHODS[:3]:
            _, our_errors, ours = roadict(problems, seeds, update, atoms, nonzeros, iterations)
            _, their_errors, theirs = dictlearn(problems, seeds, peer, atoms, nonzeros, iterations)
            shown = [name, iterations, update, f"{ours.min():.3f} s", f"{our_errors.mean():.4f}"]
            shown += [peer, f"{theirs.min():.3f} s", f"{their_errors.mean():.4f}"]
            rows.append([*shown, f"{theirs.min() / ours.min():.1f}"])
            print(rows[-1], file=sys.stderr)
    header = ["problem", "iterations", "roadict", "a fit", "data error", "dictlearn 1.0 [numba]", "a fit", "data error"]
    body = (
        "Shortest time of a fit (ten of the first problem, three of the second), compiled before; the same number of "
        "iterations. BLAS on one thread for both; roadict codes large problems on all cores.\n\n"
    )
    body += table([*header, "times faster"], rows)
    write_section("Two-stage methods: speed", "python benchmarks/updates.py speed", body)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["recovery", "speed"])
    parser.add_argument("--trials", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.what == "speed":
        speed()
    else:
        recovery(arguments.trials)
