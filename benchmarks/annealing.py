"""Warmth of annealed runs, and their results on real patches.

python benchmarks/annealing.py sweep [--trials 4]     on seeds for tuning; draws docs/images/annealing.png
python benchmarks/annealing.py real                   zebra features, compared with constant ρ

"real" reads pictures from ../shared/data.
"""

import argparse
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import joblib
import matplotlib.pyplot as plt
import numpy as np
from results import table, write_section

from roadict import ROAD
from roadict.engines.cpu.fused import FusedEngine
from roadict.metrics import dictionary_error
from roadict.pictures.files import read_picture
from roadict.pictures.resize import luma
from roadict.pictures.training import Sampling, find_axes, gather
from roadict.road.penalty import MIN_RHO, WARM, Annealing, auto_rho
from roadict.road.plan import Parameters, make_plan
from roadict.road.start import starting_point
from roadict.runs.driving import drive
from roadict.runs.loop import Rule, View, follow
from roadict.synthetic import planted

ROOT = Path(__file__).parents[1]
PICTURES = ROOT.parent / "shared" / "data"
TUNING_SEED = 93_000
WARMTHS = (0.02, 0.05, 0.1, 0.2)
HOLD, FALL = 900, 800
CONSTANTS = (100, 300)
"""Constant ρ that the defaults are compared with."""
ATOMS, EPSILON = 512, 0.05
# features, atoms, atoms per sample, samples, trials out of four
PROBLEMS = {
    "K/M = 1/2, truth of 64 atoms": (32, 16, 3, 400, 4),
    "K/M = 1": (16, 16, 3, 300, 4),
    "K/M = 2, N = 150": (16, 32, 3, 150, 4),
    "K/M = 2, N = 200": (16, 32, 3, 200, 4),
    "K/M = 4": (16, 64, 3, 700, 2),
    "K/M = 8": (16, 128, 2, 1500, 1),
    "K/M = 32": (8, 256, 2, 2000, 1),
}


def make_problem(name, seed):
    n_features, n_components, sparsity, n_samples, _ = PROBLEMS[name]
    n_true = 64 if "truth" in name else n_components
    truth = planted(n_samples, n_features, n_true, sparsity=sparsity, random_state=seed)
    return truth.data, n_components, None if "truth" in name else truth.dictionary


def sweep_run(name, warmth, trial):
    """Objective, recovery error, iterations and convergence of one run; warmth None: constant ρ on the same samples."""
    data, n_components, truth = make_problem(name, TUNING_SEED + trial)
    plan = make_plan(data, None, n_components, Parameters(n_init=1))  # samples of unit norm, whatever the warmth
    start = starting_point(plan.problem.data, n_components, None, None, np.random.default_rng([trial, 77]))
    norm = plan.norm / plan.unit
    rho = auto_rho(norm, n_components / data.shape[1], plan.bound or 0.0)
    annealing = None if warmth is None else Annealing(WARM[0] * rho, MIN_RHO * rho, warmth, HOLD, FALL)
    problem = plan.problem if annealing is None else replace(plan.problem, rhos=(annealing.first,) * 3)
    engine = FusedEngine(problem, *start, 1)
    outcome = drive(follow(engine, Rule(2000, 1e-4, plan.bound, annealing), View()))
    engine.close()
    error = np.nan if truth is None else dictionary_error(engine.dictionary(), truth)
    history = outcome.history
    return history["objective"][-1], error, len(history["objective"]), outcome.stop_reason == "converged"


def sweep(trials):
    rows, drawn = [], {}
    for name, problem in PROBLEMS.items():
        count = max(1, trials * problem[-1] // 4)
        jobs = [(name, warmth, trial) for warmth in (None, *WARMTHS) for trial in range(count)]
        results = np.array(joblib.Parallel(-1)(joblib.delayed(sweep_run)(*job) for job in jobs), float)
        by_setting = results.reshape(1 + len(WARMTHS), count, 4)
        least = np.min(np.where(by_setting[..., 3] > 0, by_setting[..., 0], np.inf), axis=0)
        for warmth, runs in zip((None, *WARMTHS), by_setting, strict=True):
            above = 100 * (runs[:, 0] / np.where(np.isfinite(least), least, np.nan) - 1).mean()
            drawn[name, warmth] = (above, runs[:, 3].mean())
            error = "–" if np.isnan(runs[0, 1]) else f"{runs[:, 1].mean():.4f}"
            what = "constant ρ" if warmth is None else f"warmth {warmth}"
            row = [name, what, f"{runs[:, 3].mean():.2f}", f"{runs[:, 2].mean():.0f}", f"{above:.2f} %", error]
            rows.append(row)
            print(row, file=sys.stderr)
    draw(drawn)
    header = ["problem", "setting", "converged", "iterations", "objective above the best converged", "recovery error"]
    body = f"Single runs, {trials} trials or fewer, held for {HOLD} iterations, {FALL} to fall; seeds for tuning.\n\n"
    write_section(
        "Warmth of annealed runs", f"python benchmarks/annealing.py sweep --trials {trials}", body + table(header, rows)
    )


def draw(drawn):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name in PROBLEMS:
        axes.plot(WARMTHS, [max(drawn[name, warmth][0], 1e-3) for warmth in WARMTHS], "o-", label=name)
    axes.set(xscale="log", yscale="log", xlabel="relative primal residual that runs are held at")
    axes.set_ylabel("objective above the best (%)")
    axes.legend(fontsize=8)
    figure.savefig(ROOT / "docs" / "images" / "annealing.png", dpi=120)


def zebra():
    pictures = [luma(read_picture(PICTURES / "zebra_train" / f"{name}.bmp") / 255.0) for name in ("t36", "t64", "t65")]
    pictures = [picture.astype(np.float32) for picture in pictures]
    sampling = Sampling(scale=3, size=9, stride=3, features="derivatives", edges="zero")
    axes, rng = find_axes(pictures, sampling), np.random.default_rng(0)
    samples = gather(pictures, sampling, axes=axes, augment=False, max_samples=10**6, min_norm=0.0, rng=rng)
    return samples.low[rng.permutation(len(samples.low))[:3000]]


def real():
    warnings.simplefilter("ignore")
    rows, data = [], zebra()
    unit = np.sqrt(3 / np.mean(np.sum(data.astype(float) ** 2, axis=1)))  # ρ refers to rms norm √3
    default = ROAD(ATOMS, epsilon=EPSILON, random_state=0).fit(data)
    runs = {"defaults": default}
    for rho in CONSTANTS:
        settings = {"rho": rho * unit, "max_iter": default.n_iter_}
        runs[f"ρ = {rho}"] = ROAD(ATOMS, epsilon=EPSILON, random_state=0, **settings).fit(data)
    for setting, model in runs.items():
        history = model.history_
        row = [setting, model.stop_reason_, model.n_iter_, f"{model.objective_ * unit:.1f}"]
        residuals = [f"{history[name][-1]:.0e}".replace("nan", "–") for name in ("primal", "dual")]
        row += [f"{history['objective'][-1] * unit:.1f}", f"{model.error_:.4f}", *residuals]
        rows.append([*row, f"{history['seconds'][-1]:.0f} s"])
        print(rows[-1], file=sys.stderr)
    header = ["setting", "ended", "iterations", "objective of the codes", "minimised", "error", "primal", "dual"]
    body = (
        f"Zebra features {data.shape}, K = {ATOMS}, ε = {EPSILON}. Constant ρ for as many iterations as the defaults "
        "took; these end with a descent, which has no residuals. Objectives for data of rms norm √3.\n\n"
        f"{table([*header, 'time'], rows)}"
    )
    write_section("Real patches: defaults and constant ρ", "python benchmarks/annealing.py real", body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sweep", "real"])
    parser.add_argument("--trials", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.what == "real":
        real()
    else:
        sweep(arguments.trials)
