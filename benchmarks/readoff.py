"""Codes as a run leaves them, in its last snapshot, and as a fit returns them: python benchmarks/readoff.py

The difference is what minimal codes and the merging of duplicate atoms change; atoms are the same.
"""

import warnings

import numpy as np
from results import in_parallel, table, write_section
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD
from roadict.synthetic import planted

FIRST_SEED, TRIALS, LAST = 77_000, 20, 300
# samples, features, atoms, atoms per sample
PROBLEMS = [(300, 16, 32, 3), (400, 24, 48, 6)]


def trial(i, n_samples, n_features, n_components, sparsity):
    """Relative error, nonzeros per sample and mean of Σ|codes| per sample, of the snapshot and of the fit."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = planted(n_samples, n_features, n_components, sparsity=sparsity, random_state=FIRST_SEED + i).data
    model = ROAD(
        n_components, rho=10.0, n_init=1, epsilon=0.0, max_iter=LAST, tol=0.0, random_state=FIRST_SEED + i, n_jobs=1
    )
    for snapshot in model.iter_fit(data):
        if snapshot.iteration == LAST:
            atoms, codes = np.array(snapshot.dictionary), np.array(snapshot.codes)
    return [describe(data, atoms, codes), describe(data, model.components_, model.codes_)]


def describe(data, atoms, codes):
    error = np.linalg.norm(data - codes @ atoms) / np.linalg.norm(data)
    return error, (codes != 0).sum(axis=1).mean(), np.abs(codes).sum(axis=1).mean()


def main():
    """Write the section."""
    rows = []
    for problem, results in zip(PROBLEMS, in_parallel(trial, PROBLEMS, TRIALS), strict=True):
        for what, (error, nonzeros, size) in zip(("last snapshot", "returned"), np.mean(results, axis=0), strict=True):
            rows.append([problem[1:], problem[0], what, f"{error:.1e}", f"{nonzeros:.2f}", f"{size:.3f}"])
    header = ["(M, K, S)", "N", "codes", "relative error", "nonzeros per sample", "mean Σ of absolute codes"]
    body = f"ROAD with ρ = 10 and {LAST} iterations on exact data, means of {TRIALS} trials.\n\n{table(header, rows)}"
    write_section("Codes before and after they are made minimal", "python benchmarks/readoff.py", body)


if __name__ == "__main__":
    main()
