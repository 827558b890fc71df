"""ROAD compared with alternative packages, on the same planted problems in one run.

python benchmarks/peers.py [--trials 10]

The peers have their own environment, benchmarks/.peers, created on first use. ROAD runs with its defaults, with several
starts. The peers get one start of distinct samples (dictlearn: its own), and an l1 weight tuned on other seeds or the
true sparsity.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from environment import peer_python
from results import table, write_section

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

FIRST_SEED = 50_000  # settings were tuned on seeds of 90,000 and up
# features, atoms, nonzeros, samples
PROBLEMS = [
    (16, 32, 3, 150),
    (16, 32, 3, 200),
    (16, 32, 3, 400),
    (24, 48, 3, 300),
    (24, 48, 6, 800),
    (32, 64, 6, 800),
    (32, 64, 6, 1200),
]
NAMES = {
    "sporco": ("SPORCO, 1,000 iterations", 1000),
    "spams": ("SPAMS, l1, 300 passes", 300),
    "scikit-learn": ("scikit-learn, cd, up to 300 iterations", 300),
    "dictlearn": ("dictlearn, uaksvd, true S, 300 iterations", 300),
}


def run_peer(name, truths, problem, seeds, iterations, *, noisy=False):
    """Atoms and CPU seconds of fits, by numbers of iterations and then by seeds, and the version of the package."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problems.npz"), Path(folder, "results.npz")
        data = {f"data_{i}": truth.data for i, truth in enumerate(truths)}
        _, n_components, sparsity, _ = problem
        size = {"n_components": n_components, "sparsity": sparsity, "noisy": noisy}
        np.savez(source, seeds=seeds, iterations=iterations, **size, **data)
        script = Path(__file__).with_name("peers_worker.py")
        subprocess.run([peer_python(), script, name, source, target], check=True, stdout=subprocess.DEVNULL)
        with np.load(target) as found:
            return found["components"], found["seconds"], str(found["version"])


def run_road(truths, n_components, seeds):
    """The same, on one thread."""
    atoms, seconds = [], []
    for truth, seed in zip(truths, seeds, strict=True):
        before = time.process_time()
        atoms.append(ROAD(n_components, random_state=int(seed), n_jobs=1).fit(truth.data).components_)
        seconds.append(time.process_time() - before)
    return atoms, np.array(seconds)


def share_found(atoms, truth):
    """Share of the planted atoms that have a correlation above 0.99 with some atom."""
    return (np.abs(atoms @ truth.dictionary.T).max(axis=0) > 0.99).mean()


def compile_road():
    ROAD(32, n_jobs=1, random_state=0).fit(planted(300, 16, 32, sparsity=3, random_state=0).data)
    ROAD(32, n_jobs=1, max_iter=20, random_state=0).fit(np.random.default_rng(0).standard_normal((60, 16)))


def describe(problem, name, atoms, seconds, truths):
    errors = np.array([dictionary_error(found, truth.dictionary) for found, truth in zip(atoms, truths, strict=True)])
    recovered = [share_found(found, truth) for found, truth in zip(atoms, truths, strict=True)]
    n_features, n_components, sparsity, n_samples = problem
    row = [(n_features, n_components, sparsity), n_samples, name, f"{errors.mean():.5f}", f"{np.median(errors):.5f}"]
    return [*row, f"{(errors < 1e-2).mean():.2f}", f"{np.mean(recovered):.3f}", f"{seconds.mean():.2f}"]


def main(trials):
    warnings.simplefilter("ignore")
    compile_road()
    rows, versions = [], {}
    for problem in PROBLEMS:
        n_features, n_components, sparsity, n_samples = problem
        seeds = FIRST_SEED + np.arange(trials)
        truths = [planted(n_samples, n_features, n_components, sparsity=sparsity, random_state=int(s)) for s in seeds]
        rows.append(describe(problem, "**ROAD, defaults**", *run_road(truths, n_components, seeds), truths))
        print(rows[-1], file=sys.stderr)
        for name, (text, iterations) in NAMES.items():
            atoms, seconds, versions[name] = run_peer(name, truths, problem, seeds, [iterations])
            rows.append(describe(problem, text, atoms[0], seconds[0], truths))
            print(rows[-1], file=sys.stderr)
    header = ["(M, K, S)", "N", "method", "mean error", "median error", "share below 1e-2"]
    header += ["atoms recovered", "CPU seconds"]
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    body = (
        f"{trials} trials each, errors by optimal matching, an atom recovered above 0.99; one thread each ({used}).\n\n"
        + table(header, rows)
    )
    write_section("ROAD beside its peers", f"python benchmarks/peers.py --trials {trials}", body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    main(parser.parse_args().trials)
