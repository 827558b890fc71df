"""Noise that nobody told: ROAD's defaults beside the true noise level, on other truths, and on real data.

Run by ``python benchmarks/recovery.py noise|truths|real``.
"""

import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from results import in_parallel, table, write_section
from sklearn.datasets import load_digits, load_sample_image
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d

from roadict import ROAD
from roadict.linalg import unit_rows
from roadict.metrics import dictionary_error
from roadict.plotting import save_figure
from roadict.synthetic import planted

PATHS = Path(__file__).parents[1] / "docs" / "images" / "epsilon-paths.png"
SEED, TRUTH_SEED = 73_000, 74_000
"""First seeds of the reported trials, used for nothing else."""
NOISE = [(800, 30), (800, 20), (800, 10), (300, 30), (300, 20), (300, 10)]
N_FEATURES, N_ATOMS, SPARSITY, N_SAMPLES = 16, 32, 3, 800


def found(atoms, truth):
    """Share of the true atoms with a correlation above 0.98."""
    return float(np.mean(np.abs(unit_rows(truth)[0] @ unit_rows(atoms)[0].T).max(axis=1) > 0.98))


def timed_fit(data, **parameters):
    warnings.simplefilter("ignore", ConvergenceWarning)
    before = time.process_time()
    model = ROAD(N_ATOMS, n_jobs=1, **parameters).fit(data)
    return model, time.process_time() - before


def noise_trial(i, n_samples, snr_db):
    seed = SEED + i
    truth = planted(n_samples, N_FEATURES, N_ATOMS, sparsity=SPARSITY, snr_db=snr_db, random_state=seed)
    true_epsilon = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
    own, own_seconds = timed_fit(truth.data, random_state=seed + 1_000_000)
    told, told_seconds = timed_fit(truth.data, epsilon=true_epsilon, random_state=seed + 1_000_000)
    return [
        own.epsilon_ / true_epsilon,
        *(found(model.components_, truth.dictionary) for model in (own, told)),
        *((model.codes_ != 0).sum(axis=1).mean() for model in (own, told)),
        (own.codes_ != 0).sum(axis=1).max(),
        own.stop_reason_ == "converged",
        own_seconds,
        own_seconds / told_seconds,
    ]


def noise(trials):
    rows = []
    for (n_samples, snr_db), results in zip(NOISE, in_parallel(noise_trial, NOISE, trials), strict=True):
        columns = np.array(results, float).T
        ratio, own, told, nonzeros, nonzeros_told, most, converged, seconds, cost = columns
        rows.append([n_samples, f"{snr_db} dB", f"{ratio.min():.2f} to {ratio.max():.2f}"])
        rows[-1] += [f"{own.mean():.3f}", f"{told.mean():.3f}", f"{nonzeros.mean():.1f}", f"{nonzeros_told.mean():.1f}"]
        rows[-1] += [f"{most.max():.0f}", f"{converged.mean():.2f}", f"{seconds.mean():.1f}", f"{cost.mean():.2f}"]
        print(rows[-1], file=sys.stderr)
    header = ["N", "noise", "epsilon_ over the true one", "atoms found", "... with the true one", "nonzeros per sample"]
    header += ["... with the true one", "largest number", "converged", "CPU seconds", "times the fit with the true one"]
    intro = f"`ROAD(32)` with nothing told, (M, K, S) = (16, 32, 3), {trials} trials; found: correlation above 0.98."
    command = f"python benchmarks/recovery.py noise --trials {trials}"
    write_section("Noise that nobody told", command, f"{intro}\n\n{table(header, rows)}")


def codes_like(kind, rng, shape):
    """Sparse codes: support of SPARSITY atoms or Bernoulli, values Gaussian, Laplace or Student-t."""
    values = {
        "Laplace": lambda: rng.laplace(size=shape),
        "Student-t, 3 degrees of freedom": lambda: rng.standard_t(3, size=shape),
    }.get(kind, lambda: rng.standard_normal(shape))()
    if kind == "Bernoulli support":
        return values * (rng.random(shape) < SPARSITY / shape[1])
    return values * (np.argsort(rng.random(shape), axis=1) < SPARSITY)


def other_truth(kind, seed, snr_db):
    """Data, dictionary and true epsilon of a truth unlike ours."""
    rng = np.random.default_rng(seed)
    atoms = unit_rows(rng.standard_normal((N_ATOMS, N_FEATURES)))[0]
    if kind == "pairs of atoms with correlation 0.8":
        other = atoms[1::2] - np.sum(atoms[1::2] * atoms[::2], axis=1, keepdims=True) * atoms[::2]
        atoms[1::2] = 0.8 * atoms[::2] + 0.6 * unit_rows(other)[0]
    data = codes_like(kind, rng, (N_SAMPLES, N_ATOMS)) @ atoms
    if kind == "outliers in 2 % of the samples":
        rows = rng.permutation(N_SAMPLES)[: N_SAMPLES // 50]
        data[rows] = 5 * rng.standard_normal((len(rows), N_FEATURES))
    noise = rng.standard_normal(data.shape) * np.sqrt(np.mean(data**2)) * 10 ** (-snr_db / 20)
    return data + noise, atoms, float(np.linalg.norm(noise) / np.linalg.norm(data + noise))


TRUTHS = (
    "as ours",
    "Bernoulli support",
    "Laplace",
    "Student-t, 3 degrees of freedom",
    "pairs of atoms with correlation 0.8",
    "outliers in 2 % of the samples",
)


def truth_trial(i, kind):
    seed = TRUTH_SEED + i
    data, atoms, true_epsilon = other_truth(kind, seed, snr_db=20)
    own, _ = timed_fit(data, random_state=seed + 1_000_000)
    told, _ = timed_fit(data, epsilon=true_epsilon, random_state=seed + 1_000_000)
    shares = [found(model.components_, atoms) for model in (own, told)]
    return [own.epsilon_ / true_epsilon, *shares, (own.codes_ != 0).sum(axis=1).mean()]


def truths(trials):
    rows = []
    for kind, results in zip(TRUTHS, in_parallel(truth_trial, [(kind,) for kind in TRUTHS], trials), strict=True):
        ratio, own, told, nonzeros = np.array(results, float).T
        rows.append([kind, f"{ratio.min():.2f} to {ratio.max():.2f}", f"{own.mean():.3f}", f"{told.mean():.3f}"])
        rows[-1] += [f"{nonzeros.mean():.1f}"]
        print(rows[-1], file=sys.stderr)
    header = ["truth", "epsilon_ over the true one", "atoms found", "... with the true one", "nonzeros per sample"]
    intro = f"`ROAD(32)` with nothing told, (16, 32, 3), N = 800, 20 dB, {trials} trials; other codes and atoms."
    write_section(
        "Other truths", f"python benchmarks/recovery.py truths --trials {trials}", f"{intro}\n\n{table(header, rows)}"
    )


def flower_patches(count=5000):
    patches = extract_patches_2d(
        load_sample_image("flower.jpg").mean(axis=2), (8, 8), max_patches=count, random_state=0
    )
    patches = patches.reshape(count, -1)
    return patches - patches.mean(axis=1, keepdims=True)


def real(trials):
    """Fit real data with nothing told, for some seeds, and draw their paths."""
    rows, paths = [], {}
    for name, data in (("digits", load_digits().data), ("patches of flower.jpg", flower_patches())):
        for seed in range(trials):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                before = time.process_time(), time.perf_counter()
                model = ROAD(100, random_state=seed).fit(data)
                seconds = time.process_time() - before[0], time.perf_counter() - before[1]
            paths.setdefault(name, []).append(model.epsilon_path_)
            nonzeros = (model.codes_ != 0).sum(axis=1)
            rows.append([name, data.shape, seed, f"{model.epsilon_:.3f}", f"{nonzeros.mean():.1f}", nonzeros.max()])
            rows[-1] += [model.stop_reason_, len(caught), f"{seconds[0]:.0f}", f"{seconds[1]:.0f}"]
            print(rows[-1], file=sys.stderr)
    header = ["data", "shape", "seed", "epsilon_", "nonzeros per sample", "largest number", "end", "warnings"]
    header += ["CPU seconds", "seconds"]
    command = f"python benchmarks/recovery.py real --trials {trials}"
    draw_paths(paths)
    write_section("Real data, nothing told", command, f"`ROAD(100)`.\n\n{table(header, rows)}")


def draw_paths(paths):
    """Draw the error of hidden entries over the bound, one curve per seed, into the documents."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axes, (name, of_seeds) in zip(np.atleast_1d(figure.subplots(1, len(paths))), paths.items(), strict=True):
        for seed, path in enumerate(of_seeds):
            (line,) = axes.plot(path.epsilon, path.hidden_error, label=f"seed {seed}")
            axes.plot(path.epsilon[path.chosen], path.hidden_error[path.chosen], "o", color=line.get_color())
        axes.set(xscale="log", xlabel="error bound ε", ylabel="error of hidden entries", title=name)
        axes.set_xticks([0.01, 0.03, 0.1, 0.3], labels=["0.01", "0.03", "0.1", "0.3"])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend()
    save_figure(figure, PATHS, dpi=110)


def spread_trial(seed):
    """Samples whose norms spread over three orders of magnitude: are all atoms found?"""
    truth = planted(400, N_FEATURES, N_ATOMS, sparsity=SPARSITY, random_state=seed)
    norms = 10 ** np.random.default_rng([seed, 9]).uniform(-1.5, 1.5, size=(400, 1))
    model, seconds = timed_fit(unit_rows(truth.data)[0] * norms, random_state=seed + 1_000_000)
    return found(model.components_, truth.dictionary), dictionary_error(model.components_, truth.dictionary), seconds


def spread(trials):
    """Report on norms of 10^U(-1.5, 1.5)."""
    results = joblib.Parallel(-1)(joblib.delayed(spread_trial)(SEED + i) for i in range(trials))
    shares, errors, seconds = np.array(results).T
    rows = [
        [f"{(shares == 1).sum()} of {trials}", f"{shares.mean():.3f}", f"{errors.mean():.5f}", f"{seconds.mean():.2f}"]
    ]
    print(rows[0], file=sys.stderr)
    header = ["trials with all atoms found", "atoms found", "mean error", "CPU seconds"]
    intro = f"`ROAD(32)`, (16, 32, 3), N = 400, norms of 10^U(-1.5, 1.5), {trials} trials."
    command = f"python benchmarks/recovery.py spread --trials {trials}"
    write_section("Norms over three orders of magnitude", command, f"{intro}\n\n{table(header, rows)}")
