"""Recovery of planted dictionaries, on seeds not used for tuning.

python benchmarks/recovery.py settings|sizes|scales|noise|truths|real|spread|stability|number [--trials 20]
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

# Defaults: features, atoms, samples, codes, SNR
SIZES = [
    (16, 32, 120, {"sparsity": 3}, None),
    (24, 48, 150, {"sparsity": 3}, None),
    (16, 32, 150, {"sparsity": 3}, None),
    (16, 32, 200, {"sparsity": 3}, None),
    (16, 32, 400, {"sparsity": 3}, None),
    (24, 48, 300, {"sparsity": 3}, None),
    (24, 48, 800, {"sparsity": 6}, None),
    (32, 64, 800, {"sparsity": 6}, None),
    (32, 64, 1200, {"sparsity": 6}, None),
    (16, 32, 300, {"probability": 3 / 32}, None),
    (24, 48, 1000, {"probability": 6 / 48}, None),
    (16, 32, 400, {"sparsity": 3}, 30),
    (16, 32, 400, {"sparsity": 3}, 20),
]
PAPER = {"rho": 10, "max_iter": 300, "tol": 0}
PAPER_INEXACT = {"formulation": "inexact", "beta": (200, 300, 250), "rho": (210, 310, 260), "tol": 0}
TRUE_NOISE = object()
# case: samples, SNR, share of missing entries, parameters
CASES = {
    "ρ = 10, 300 iterations": (400, None, 0, PAPER),
    "defaults": (400, None, 0, {}),
    "30 dB, defaults, epsilon = true noise": (400, 30, 0, {"epsilon": TRUE_NOISE}),
    "30 dB, defaults, epsilon = 0": (400, 30, 0, {"epsilon": 0}),
    "20 % missing, defaults": (400, None, 0.2, {}),
    "40 % missing, defaults": (800, None, 0.4, {}),
    "iADMM, 300 iterations": (300, None, 0, PAPER_INEXACT | {"max_iter": 300}),
    "iADMM, 3,000 iterations": (300, None, 0, PAPER_INEXACT | {"max_iter": 3000}),
    "iADMM, 10,000 iterations": (300, None, 0, PAPER_INEXACT | {"max_iter": 10_000}),
    "ρ = 10, 300 iterations ": (300, None, 0, PAPER),
}


def trial(seed, n_samples, snr_db, missing, parameters):
    truth = planted(n_samples, 16, 32, sparsity=3, snr_db=snr_db, random_state=seed)
    data, chosen = truth.data, dict(parameters)
    if missing:
        seen = np.random.default_rng([seed, 1]).random(data.shape) >= missing
        data, chosen["missing_values"] = np.where(seen, data, np.nan), np.nan
    if chosen.get("epsilon") is TRUE_NOISE:
        chosen["epsilon"] = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
    before = time.perf_counter()
    model = ROAD(32, random_state=seed + 1_000_000, **chosen).fit(data)
    seconds = time.perf_counter() - before
    optimal, greedy = (dictionary_error(model.components_, truth.dictionary, m) for m in ("optimal", "greedy"))
    return optimal, greedy, model.error_, (model.codes_ != 0).sum(axis=1).mean(), seconds


def size_trial(i, n_features, n_components, n_samples, codes, snr_db):
    warnings.simplefilter("ignore", ConvergenceWarning)
    seed = 60_000 + i
    truth = planted(n_samples, n_features, n_components, **codes, snr_db=snr_db, random_state=seed)
    noise = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
    settings = {} if snr_db is None else {"epsilon": noise}
    before = time.process_time()
    model = ROAD(n_components, random_state=seed, n_jobs=1, **settings).fit(truth.data)
    seconds = time.process_time() - before
    return dictionary_error(model.components_, truth.dictionary), model.stop_reason_ == "converged", seconds


def sizes(trials):
    rows = []
    for problem, results in zip(SIZES, in_parallel(size_trial, SIZES, trials), strict=True):
        n_features, n_components, n_samples, codes, snr_db = problem
        error, converged, seconds = np.array(results, float).T
        kind = f"S = {codes['sparsity']}" if "sparsity" in codes else f"Bernoulli {codes['probability']:.3f}"
        rows.append(
            [
                (n_features, n_components),
                kind + ("" if snr_db is None else f", {snr_db} dB, epsilon = true noise"),
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


def scale_trial(seed, factor):
    warnings.simplefilter("ignore", ConvergenceWarning)
    truth = planted(200, 16, 32, sparsity=3, random_state=seed)
    model = ROAD(32, random_state=seed, n_jobs=1).fit(truth.data * factor)
    return dictionary_error(model.components_, truth.dictionary), model.n_iter_


def scales(trials):
    rows, first = [], None
    for factor in (1.0, 2.0**-20, 2.0**20, 1e-6, 1e6):
        results = joblib.Parallel(-1)(joblib.delayed(scale_trial)(65_000 + i, factor) for i in range(trials))
        error, iterations = np.array(results, float).T
        first = iterations if first is None else first
        rows.append([f"{factor:g}", f"{(error < 1e-2).mean():.2f}", f"{error.mean():.5f}"])
        rows[-1] += [f"{iterations.mean():.0f}", f"{(iterations == first).mean():.2f}"]
        print(rows[-1], file=sys.stderr)
    header = ["data times", "share below 1e-2", "mean error", "iterations", "trials with as many iterations"]
    body = f"(M, K, S) = (16, 32, 3), N = 200, {trials} trials, defaults.\n\n" + table(header, rows)
    write_section("Recovery in any unit", f"python benchmarks/recovery.py scales --trials {trials}", body)


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


def settings(trials):
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for name, (n_samples, snr_db, missing, parameters) in CASES.items():
        results = np.array([trial(20_000 + i, n_samples, snr_db, missing, parameters) for i in range(trials)])
        optimal, greedy, error, nonzeros, seconds = results.T
        rows.append(
            [
                name.strip(),
                n_samples,
                f"{optimal.mean():.5f}",
                f"{np.median(optimal):.5f}",
                f"{greedy.mean():.5f}",
                f"{(optimal < 1e-2).mean():.2f}",
                f"{error.mean():.1e}",
                f"{nonzeros.mean():.2f}",
                f"{seconds.mean():.2f}",
            ]
        )
        print(rows[-1], file=sys.stderr)
    header = ["setting", "N", "mean error", "median error", "mean, greedy matching", "share below 1e-2"]
    header += ["data error", "nonzeros per sample", "seconds"]
    body = f"{trials} trials each; errors by optimal matching unless said otherwise.\n\n" + table(header, rows)
    command = f"python benchmarks/recovery.py settings --trials {trials}"
    write_section("Recovery at (M, K, S) = (16, 32, 3)", command, body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = (settings, sizes, scales, noise, truths, real, spread, stability, number)
    parser.add_argument("what", choices=[command.__name__ for command in commands])
    parser.add_argument("--trials", type=int, default=20)
    arguments = parser.parse_args()
    next(command for command in commands if command.__name__ == arguments.what)(arguments.trials)
