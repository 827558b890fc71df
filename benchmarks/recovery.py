"""Recovery of planted dictionaries, on seeds not used for tuning.

python benchmarks/recovery.py sizes|noise|truths|real|spread|stability|number [--trials 20]
"""

import argparse
import os
import sys
import time
import warnings

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import joblib
import numpy as np
from noise import noise, real, spread, truths
from number import number
from results import in_parallel, table, write_section
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from roadict import ROAD, atom_stability
from roadict.metrics import STABLE, dictionary_error
from roadict.synthetic import planted

# features, atoms, samples, codes, SNR, share of missing entries
SIZES = [
    (16, 32, 120, {"sparsity": 3}, None, 0),
    (24, 48, 150, {"sparsity": 3}, None, 0),
    (16, 32, 150, {"sparsity": 3}, None, 0),
    (16, 32, 200, {"sparsity": 3}, None, 0),
    (16, 32, 400, {"sparsity": 3}, None, 0),
    (24, 48, 300, {"sparsity": 3}, None, 0),
    (24, 48, 800, {"sparsity": 6}, None, 0),
    (32, 64, 800, {"sparsity": 6}, None, 0),
    (32, 64, 1200, {"sparsity": 6}, None, 0),
    (16, 32, 300, {"probability": 3 / 32}, None, 0),
    (16, 32, 400, {"sparsity": 3}, 30, 0),
    (16, 32, 400, {"sparsity": 3}, 20, 0),
    (16, 32, 400, {"sparsity": 3}, None, 0.2),
    (16, 32, 800, {"sparsity": 3}, None, 0.4),
]


def size_trial(i, n_features, n_components, n_samples, codes, snr_db, missing):
    warnings.simplefilter("ignore", ConvergenceWarning)
    seed = 60_000 + i
    truth = planted(n_samples, n_features, n_components, **codes, snr_db=snr_db, random_state=seed)
    data, settings = truth.data, {}
    if snr_db is not None:
        settings["epsilon"] = float(np.linalg.norm(truth.noise) / np.linalg.norm(data))
    if missing:
        hidden = np.random.default_rng([seed, 1]).random(data.shape) < missing
        data, settings["missing_values"] = np.where(hidden, np.nan, data), np.nan
    before = time.process_time()
    model = ROAD(n_components, random_state=seed, n_jobs=1, **settings).fit(data)
    seconds = time.process_time() - before
    return dictionary_error(model.components_, truth.dictionary), model.stop_reason_ == "converged", seconds


def sizes(trials):
    rows = []
    for problem, results in zip(SIZES, in_parallel(size_trial, SIZES, trials), strict=True):
        n_features, n_components, n_samples, codes, snr_db, missing = problem
        error, converged, seconds = np.array(results, float).T
        kind = f"S = {codes['sparsity']}" if "sparsity" in codes else f"Bernoulli {codes['probability']:.3f}"
        rows.append(
            [
                (n_features, n_components),
                kind
                + ("" if snr_db is None else f", {snr_db} dB, epsilon = true noise")
                + (f", {missing:.0%} of the entries missing" if missing else ""),
                n_samples,
                f"{(error < 1e-2).mean():.2f}",
                f"{error.mean():.5f}",
                f"{np.median(error):.5f}",
                f"{converged.mean():.2f}",
                f"{seconds.mean():.2f}",
            ]
        )
        print(rows[-1], file=sys.stderr)
    header = ["(M, K)", "codes", "N", "share below 1e-2", "mean error", "median error", "converged", "CPU seconds"]
    body = f"`ROAD(n_components=K)`, {trials} trials each, optimal matching.\n\n" + table(header, rows)
    write_section("Recovery with defaults", f"python benchmarks/recovery.py sizes --trials {trials}", body)


def stability_trial(seed):
    warnings.simplefilter("ignore", ConvergenceWarning)
    truth = planted(800, 16, 32, sparsity=3, snr_db=20, random_state=seed)
    before = time.process_time()
    model = ROAD(40, random_state=seed, n_jobs=1).fit(truth.data)
    fitted = time.process_time()
    stability = atom_stability(model, truth.data, random_state=seed)
    cost = (time.process_time() - fitted) / (fitted - before)
    true = np.abs(model.components_ @ truth.dictionary.T).max(axis=1) > 0.98
    stable = stability >= STABLE
    return roc_auc_score(true, stability), true.sum(), stable.sum(), (stable & ~true).sum(), cost


def stability(trials):
    results = joblib.Parallel(-1)(joblib.delayed(stability_trial)(75_000 + i) for i in range(trials))
    area, true, stable, false, cost = np.array(results, float).T
    row = [f"{area.mean():.4f}", f"{area.min():.4f}", f"{true.mean():.2f}", f"{stable.mean():.2f}"]
    row += [f"{stable.min():.0f} to {stable.max():.0f}", f"{false.mean():.2f}", f"{cost.mean():.1f}"]
    header = ["area under the ROC curve", "smallest", "atoms that are true", f"atoms of at least {STABLE}", "range"]
    header += ["of them not true", "time over that of the fit"]
    body = (
        f"40 atoms learned, 32 planted; (M, S) = (16, 3), N = 800, 20 dB, nothing told, {trials} trials. "
        "Atoms are true if |correlation| with a planted one is above 0.98.\n\n" + table(header, [row])
    )
    write_section("Stability of atoms", f"python benchmarks/recovery.py stability --trials {trials}", body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = (sizes, noise, truths, real, spread, stability, number)
    parser.add_argument("what", choices=[command.__name__ for command in commands])
    parser.add_argument("--trials", type=int, default=20)
    arguments = parser.parse_args()
    next(command for command in commands if command.__name__ == arguments.what)(arguments.trials)
