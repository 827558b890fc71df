"""The thresholds of the exact finish, changed one at a time, on states recorded from runs of ROAD.

python benchmarks/exact.py [--trials 8] [--states FILE]

Seeds are those for tuning. FILE, if given, is read where it exists, else written: to change VALUES and run again.
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import joblib
import numpy as np
from results import table, write_section
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD
from roadict.exact_finish.search import find_exact_fit
from roadict.exact_finish.thresholds import DEFAULTS
from roadict.linalg import unit_rows
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

TUNING_SEED = 94_000
LAST_LEVEL = 1e-3
FALSE = 1e-3
"""Distance from the true atoms above which an exact fit is false; of noisy data all are."""
# samples, features, atoms, atoms per sample, SNR, runs, trials of eight
PROBLEMS = {
    "N = 150": (150, 16, 32, 3, None, 3, 8),
    "N = 200": (200, 16, 32, 3, None, 2, 8),
    "(24, 48), N = 300": (300, 24, 48, 3, None, 2, 8),
    "pair replaced": (200, 16, 32, 3, None, 0, 8),
    "40 dB": (200, 16, 32, 3, 40, 2, 3),
    "N = 100": (100, 16, 32, 3, None, 2, 4),
    "N = 32": (32, 16, 32, 3, None, 2, 8),
    "S = 10": (200, 16, 32, 10, None, 2, 4),
}
SOLVABLE = list(PROBLEMS)[:4]
VALUES = {
    "max_rounds": (50, 200),
    "max_change": (1e-12, 1e-8),
    "min_first_alpha": (1e-4, 1e-2),
    "max_alpha": (0.005, 0.1),
    "min_alpha": (1e-10, 1e-6),
    "alpha_per_change": (10.0, 100.0),
    "alpha_decay": (0.25, 0.7),
    "alpha_per_coefficient": (1.0, 10.0),
    "clean_error": (1.0, 10.0),
    "clean_support": (0.5, 1.0),
    "min_clean_samples": (0.0, 0.4),
    "min_clean_use": (0.0, 0.85),
    "clean_use_from": (4, 16),
    "accelerate_below": (0.0, 1e-2),
    "memory": (1, 6),
    "rcond": (1e-10, 1e-3),
    "ridge": (1e-9, 1e-3),
    "min_sparse_samples": (0.8, 0.99),
    "min_sparse_use": (0.6, 0.95),
    "min_equations": (0.0, 4.0),
    "rounding_float32": (1e-6, 1e-4),
    "rounding_float64": (1e-11, 1e-7),
    "min_common_use": (0.25, 0.75),
    "min_same_ratio": (0.15, 0.6),
    "ratio_tolerance": (1e-5, 1e-2),
    "max_searches": (1, 2),
}
assert list(VALUES) == list(asdict(DEFAULTS))


def record(name, seed):
    """Data, true atoms, and the atoms and codes at each attempt of the exact finish, as if all failed."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_samples, n_features, n_components, sparsity, snr_db, runs, _ = PROBLEMS[name]
    truth = planted(n_samples, n_features, n_components, sparsity=sparsity, snr_db=snr_db, random_state=seed)
    if not runs:
        return name, truth.data, truth.dictionary, [replaced_pair(truth, seed)]
    attempts = []
    with mock.patch("roadict.road.multistart.find_exact_fit", lambda *call, **_: attempts.append(call)):
        ROAD(n_components, epsilon=0.0, n_init=runs, tol=LAST_LEVEL, random_state=seed, n_jobs=1).fit(truth.data)
    return name, attempts[0][0], truth.dictionary, [attempt[1:3] for attempt in attempts]


def replaced_pair(truth, seed):
    """Atoms and codes: two true atoms replaced by others of their plane, and all slightly off."""
    rng = np.random.default_rng([seed, 3])
    pair = rng.choice(len(truth.dictionary), 2, replace=False)
    mixing = np.eye(2) + np.diag(rng.uniform(-0.5, 0.5, 2))[::-1]
    atoms, codes = truth.dictionary.copy(), truth.codes.copy()
    atoms[pair] = mixing @ atoms[pair]
    codes[:, pair] = codes[:, pair] @ np.linalg.inv(mixing)
    atoms, norms = unit_rows(atoms + 0.004 * rng.standard_normal(atoms.shape))
    return atoms, codes * norms


def finish(state, thresholds, dtype):
    """Whether the true atoms were found, and whether an exact fit was false, at each attempt; CPU seconds."""
    name, data, truth, attempts = state
    before, errors = time.process_time(), []
    for atoms, codes in attempts:
        fit = find_exact_fit(data.astype(dtype), atoms, codes, 1, thresholds=thresholds)
        errors.append(np.inf if fit is None else dictionary_error(fit.dictionary, truth))
    found = (np.array(errors) < FALSE) & (name != "40 dB")
    return found, np.isfinite(errors) & ~found, time.process_time() - before


def measure(states, what, value, dtype=np.float64, **changes):
    """One row of the table."""
    thresholds = replace(DEFAULTS, **changes)
    results = joblib.Parallel(-1)(joblib.delayed(finish)(state, thresholds, dtype) for state in states)
    found, false, seconds = zip(*results, strict=True)
    names = np.array([state[0] for state in states])
    solved = np.array([each.any() for each in found])
    shares = [f"{solved[names == name].mean():.2f}" for name in SOLVABLE]
    numbers = [int(np.concatenate(each).sum()) for each in (found, false)]
    row = [what, value, *shares, *numbers, f"{sum(seconds):.1f}"]
    print(row, file=sys.stderr)
    return row


def main(trials, file):
    if file is not None and file.exists():
        states = joblib.load(file)
    else:
        jobs = [(name, i) for name, problem in PROBLEMS.items() for i in range(max(1, trials * problem[-1] // 8))]
        states = joblib.Parallel(-1)(joblib.delayed(record)(name, TUNING_SEED + i) for name, i in jobs)
        if file is not None:
            joblib.dump(states, file)
    rows = [measure(states, "defaults", "")]
    rows.append(measure(states, "defaults, data in float32", "", np.float32))
    for name, default in asdict(DEFAULTS).items():
        dtype = np.float32 if name == "rounding_float32" else np.float64
        rows += [measure(states, f"{name} ({default:g})", f"{v:g}", dtype, **{name: v}) for v in VALUES[name]]
    both = {"min_sparse_samples": 0.8, "min_sparse_use": 0.6}
    rows.append(measure(states, " and ".join(both), ", ".join(map(str, both.values())), **both))
    n_attempts = sum(len(state[-1]) for state in states)
    header = ["threshold (default)", "changed to", *SOLVABLE, "successful attempts", "false fits", "CPU seconds"]
    body = (
        f"Share of {trials} problems in which an attempt finds the true atoms, (M, K, S) = (16, 32, 3) unless said "
        'otherwise; "pair replaced": true atoms, but two of them for others of their plane, all slightly off. '
        f"Then of all {n_attempts} attempts those that found the true atoms, and those that accepted others (or any, "
        "with noise); among them are attempts at problems without a solution: "
        f"{', '.join(name for name in PROBLEMS if name not in SOLVABLE)}. "
        f"The finish is tried when the residual of a run has come down to 4e-3 and to {LAST_LEVEL:g}, "
        "2 runs of a problem, 3 at N = 150. Seeds for tuning."
    )
    command = f"python benchmarks/exact.py --trials {trials}"
    write_section("Thresholds of the exact finish", command, f"{body}\n\n{table(header, rows)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--states", type=Path)
    arguments = parser.parse_args()
    main(arguments.trials, arguments.states)
