"""Recovery of planted dictionaries, on seeds that no setting was tuned on.

python benchmarks/recovery.py [--trials 20]
"""

import argparse
import sys
import time
import warnings

import numpy as np
from results import table, write_section
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

PAPER = {"rho": 10, "max_iter": 300, "tol": 0}
PAPER_INEXACT = {"formulation": "inexact", "beta": (200, 300, 250), "rho": (210, 310, 260), "tol": 0}
TRUE_NOISE = object()
# what: samples, SNR, share of missing entries, parameters
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
    data, settings = truth.data, dict(parameters)
    if missing:
        seen = np.random.default_rng([seed, 1]).random(data.shape) >= missing
        data, settings["missing_values"] = np.where(seen, data, np.nan), np.nan
    if settings.get("epsilon") is TRUE_NOISE:
        settings["epsilon"] = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
    before = time.perf_counter()
    model = ROAD(32, random_state=seed + 1_000_000, **settings).fit(data)
    seconds = time.perf_counter() - before
    optimal, greedy = (dictionary_error(model.components_, truth.dictionary, m) for m in ("optimal", "greedy"))
    return optimal, greedy, model.error_, (model.codes_ != 0).sum(axis=1).mean(), seconds


def main(trials):
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
    command = f"python benchmarks/recovery.py --trials {trials}"
    write_section("Recovery at (M, K, S) = (16, 32, 3)", command, body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
