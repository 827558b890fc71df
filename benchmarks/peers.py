"""ROAD compared with alternative packages, on the same planted problems in one run.

python benchmarks/peers.py [--trials 20]

The peers have their own environment, benchmarks/.peers, created on first use. ROAD runs with its defaults, with several
starts, and with one start. Every peer has two rows: one start, and as many starts as ROAD's defaults have CPU seconds
for, of which its own objective chooses. A start of theirs is made of distinct samples (dictlearn: its own). They are
told the true sparsity, or an l1 weight that is tuned for every problem on other seeds, by the error of their atoms.

It takes about an hour of CPU and keeps the problems that are measured: called again, it continues.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from environment import FOLDER, peer_python
from joblib import Parallel, delayed
from results import measured_code, table, write_section

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

FIRST_SEED = 50_000
TUNING_SEEDS = 90_000 + np.arange(4)
WEIGHTS = {
    "sporco": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "spams": (0.02, 0.03, 0.05, 0.07, 0.1, 0.2),
    "scikit-learn": (0.02, 0.03, 0.05, 0.07, 0.1, 0.2),
}
"""l1 weights that are tried; on a tuning seed SPAMS failed with smaller ones, and scikit-learn took minutes."""
# features, atoms, nonzeros, samples
PROBLEMS = [
    (16, 32, 3, 150),
    (16, 32, 3, 200),
    (16, 32, 3, 400),
    (24, 48, 3, 300),
    (32, 64, 6, 800),
]
NAMES = {
    "sporco": ("SPORCO, 1,000 iterations", 1000),
    "spams": ("SPAMS, l1, 300 passes", 300),
    "scikit-learn": ("scikit-learn, cd, up to 300 iterations", 300),
    "dictlearn": ("dictlearn, uaksvd, true S, 300 iterations", 300),
}
ONE_START, EQUAL_CPU = "one start", "equal CPU"
"""Ends of the names of rows; tables and charts of the pages look for them."""
KEPT = FOLDER / "kept"


def draw(problem, seeds, snr=None):
    """Planted problems."""
    n_features, n_components, sparsity, n_samples = problem
    size = {"n_features": n_features, "n_components": n_components, "sparsity": sparsity, "snr_db": snr}
    return [planted(n_samples, random_state=int(seed), **size) for seed in seeds]


def run_peer(name, truths, problem, seeds, iterations, weights, *, budgets=0.0, enough=np.inf):
    """Fits by pairs of iterations and weights and then by seeds: arrays as peers_worker.py tells."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problems.npz"), Path(folder, "results.npz")
        given = {f"data_{i}": truth.data for i, truth in enumerate(truths)}
        _, given["n_components"], given["sparsity"], _ = problem
        given["iterations"], given["weights"] = np.broadcast_arrays(iterations, weights)
        np.savez(source, seeds=seeds, budgets=np.broadcast_to(budgets, len(seeds)), enough=enough, **given)
        script = Path(__file__).with_name("peers_worker.py")
        one_thread = os.environ | {"NUMBA_NUM_THREADS": "1"}
        command = [peer_python(), script, name, source, target]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=one_thread)
        with np.load(target) as found:
            return dict(found)


def tuned_weight(name, problem, iterations, snr=None):
    """The weight with the smallest mean error of the atoms on the tuning seeds, from one start; None without one."""
    if name not in WEIGHTS:
        return None
    truths = draw(problem, TUNING_SEEDS, snr)
    found = run_peer(name, truths, problem, TUNING_SEEDS, iterations, WEIGHTS[name])
    return WEIGHTS[name][int(np.argmin([np.mean(errors(atoms, truths)) for atoms in found["atoms"]]))]


def run_road(truths, n_components, seeds, **settings):
    """Atoms and CPU seconds of fits, on one thread."""
    atoms, seconds = [], []
    for truth, seed in zip(truths, seeds, strict=True):
        before = time.process_time()
        model = ROAD(n_components, random_state=int(seed), n_jobs=1, **settings)
        atoms.append(model.fit(truth.data).components_)
        seconds.append(time.process_time() - before)
    return atoms, np.array(seconds)


def errors(atoms, truths):
    return [dictionary_error(found, truth.dictionary) for found, truth in zip(atoms, truths, strict=True)]


def share_found(atoms, truth):
    """Share of the planted atoms that have a correlation above 0.99 with some atom."""
    return (np.abs(atoms @ truth.dictionary.T).max(axis=0) > 0.99).mean()


def compile_road():
    ROAD(32, n_jobs=1, random_state=0).fit(planted(300, 16, 32, sparsity=3, random_state=0).data)
    ROAD(32, n_jobs=1, max_iter=20, random_state=0).fit(np.random.default_rng(0).standard_normal((60, 16)))


def describe(problem, name, told, starts, atoms, seconds, truths):
    found = np.array(errors(atoms, truths))
    recovered = [share_found(each, truth) for each, truth in zip(atoms, truths, strict=True)]
    n_features, n_components, sparsity, n_samples = problem
    row = [str((n_features, n_components, sparsity)), n_samples, name, told, starts]
    row += [f"{found.mean():.5f}", f"{np.median(found):.5f}", f"{(found < 1e-2).mean():.2f}"]
    row += [f"{np.mean(recovered):.3f}", f"{seconds.mean():.2f}"]
    print(row, file=sys.stderr)
    return row


def measure(problem, trials):
    """Rows of a problem, and the versions of the packages."""
    warnings.simplefilter("ignore")
    compile_road()
    seeds = FIRST_SEED + np.arange(trials)
    truths, n_components = draw(problem, seeds), problem[1]
    atoms, budgets = run_road(truths, n_components, seeds)
    rows = [describe(problem, "**ROAD, defaults**", "", "", atoms, budgets, truths)]
    rows.append(
        describe(problem, f"ROAD, {ONE_START}", "", "1", *run_road(truths, n_components, seeds, n_init=1), truths)
    )
    versions = {}
    for name, (text, iterations) in NAMES.items():
        weight = tuned_weight(name, problem, iterations)
        told = "" if weight is None else f"{weight:g}"
        found = run_peer(name, truths, problem, seeds, [iterations], weight or 0.0, budgets=budgets)
        starts = f"{found['starts'].mean():.1f}"
        first, chosen = (found["first"][0], found["first_seconds"][0]), (found["atoms"][0], found["seconds"][0])
        rows.append(describe(problem, f"{text}, {ONE_START}", told, "1", *first, truths))
        rows.append(describe(problem, f"{text}, {EQUAL_CPU}", told, starts, *chosen, truths))
        versions[name] = str(found["version"])
    return rows, versions


def measured(problem, trials, code):
    """The same, from a file if this code has measured it before."""
    path = KEPT / f"{'-'.join(map(str, problem))}, {trials} trials, {code}.json"
    if not path.exists():
        KEPT.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(measure(problem, trials)))
        part.rename(path)
    return json.loads(path.read_text())


def main(trials):
    command = f"python benchmarks/peers.py --trials {trials}"
    peer_python()
    jobs = [delayed(measured)(problem, trials, measured_code(command)) for problem in reversed(PROBLEMS)]
    rows, versions = zip(*reversed(Parallel(2, batch_size=1)(jobs)), strict=True)
    header = ["(M, K, S)", "N", "method", "l1 weight", "starts", "mean error", "median error", "share below 1e-2"]
    header += ["atoms recovered", "CPU seconds"]
    used = ", ".join(f"{name} {version}" for name, version in versions[0].items())
    tried = "; ".join(f"{name} {', '.join(map(str, weights))}" for name, weights in WEIGHTS.items())
    body = (
        f"{trials} trials each, errors by optimal matching, an atom recovered above 0.99; one thread each, two "
        f"problems at a time ({used}). ROAD's defaults run several starts and are told nothing but K. The others: one "
        "start, and as many as the CPU seconds of ROAD's defaults on the same samples allow (at least one, and the "
        "last ends after them), of which the lowest objective chooses: l1, or the data error of dictlearn. The l1 "
        "weight of a problem is, of six, the one with the smallest mean error on "
        f"{len(TUNING_SEEDS)} other seeds ({tried}).\n\n"
    )
    write_section("ROAD beside its peers", command, body + table(header, [row for part in rows for row in part]))
    shutil.rmtree(KEPT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
