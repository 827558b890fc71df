"""The number of atoms that ROADCV chooses, on planted problems; run by recovery.py."""

import sys
import time
import warnings
from functools import cache

import numpy as np
from results import in_parallel, table, write_section
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD, ROADCV
from roadict.synthetic import planted

TRUE = 32
NUMBERS = (16, 24, 28, 32, 36, 40, 48)
PROBLEMS = [(400, 20), (400, 30), (800, 20), (800, 30)]  # samples, SNR
FIRST_SEED = 50_000


@cache
def compile_kernels():
    """Once per process, so that no trial's time includes it."""
    data = planted(200, 16, TRUE, sparsity=3, snr_db=20, random_state=90_999).data
    ROADCV([TRUE], random_state=0, n_jobs=1, max_iter=100).fit(data)


def trial(i, n_samples, snr_db):
    """Numbers chosen from the list and by the search, and CPU seconds of ROAD and of both."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    compile_kernels()
    seed = FIRST_SEED + i
    data = planted(n_samples, 16, TRUE, sparsity=3, snr_db=snr_db, random_state=seed).data
    seconds, chosen = [], []
    for model in (ROAD(TRUE), ROADCV(NUMBERS), ROADCV()):
        before = time.process_time()
        model.set_params(random_state=seed, n_jobs=1).fit(data)
        seconds.append(time.process_time() - before)
        chosen.append(len(model.components_))
    return *chosen[1:], *seconds


def number(trials):
    rows, pooled = [], []
    for (n_samples, snr_db), results in zip(PROBLEMS, in_parallel(trial, PROBLEMS, trials), strict=True):
        pooled += results
        rows.append([n_samples, f"{snr_db} dB", *_row(results)])
        print(rows[-1], file=sys.stderr)
    rows.append(["all", "", *_row(pooled)])
    header = ["N", "SNR", "trials", f"list: {TRUE} chosen", f"search: within 2 of {TRUE}", f"search: {TRUE} chosen"]
    header += [f"CPU seconds of ROAD({TRUE})", "list: times as many", "search: times as many"]
    body = f"(M, K, S) = (16, {TRUE}, 3); `ROADCV({NUMBERS})` and `ROADCV()`, times include the final fit.\n\n"
    command = f"python benchmarks/recovery.py number --trials {trials}"
    write_section("Number of atoms chosen by hidden entries", command, body + table(header, rows))


def _row(results):
    listed, searched, road, list_seconds, search_seconds = np.array(results, float).T
    counts = [(listed == TRUE).sum(), (np.abs(searched - TRUE) <= 2).sum(), (searched == TRUE).sum()]
    ratios = [list_seconds.sum() / road.sum(), search_seconds.sum() / road.sum()]
    return [len(results), *counts, f"{road.mean():.2f}", *(f"{ratio:.1f}" for ratio in ratios)]
