"""Nonnegative codes, and atoms of any sign or nonnegative: recovery and speed, compared with scikit-learn.

python benchmarks/signs.py [recovery|noise|speed] [--trials 20]

recovery: exact data, beside scikit-learn's DictionaryLearning and NMF; noise: 20 dB, the noise level from the data;
speed: time of an iteration with signs over that without. Nothing: all three.
"""

import argparse
import sys
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from results import in_parallel, table, write_section
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, DictionaryLearning
from threadpoolctl import threadpool_limits

from roadict import ROAD
from roadict.engines.cpu.fused import FusedEngine
from roadict.formulation import Problem, RankOne, constrained
from roadict.linalg import unit_rows
from roadict.road.start import starting_point
from roadict.synthetic import planted

SEED = 78_000
"""First seed of the reported trials, used for nothing else."""
N_FEATURES, N_ATOMS, SPARSITY = 16, 32, 3
NONZERO = 0.4
"""Share of entries that are not zero in nonnegative atoms."""
CASES = [(200, False), (200, True), (400, False), (400, True)]
"""Samples, and whether atoms are nonnegative."""
NOISY = [(200, False, 20.0), (200, True, 20.0)]
EXACT = (0.005, 0.01, 0.02, 0.05), 150
IN_NOISE = (0.02, 0.035, 0.05, 0.08), 1000
"""Lasso weights of scikit-learn, about the best on other seeds, and its iterations: more would take an hour."""
NMF_STARTS = 10
SPEED_SIZE, BLOCK, N_BLOCKS = (34, 64, 11775), 20, 15
"""(features, atoms, samples); iterations in a block, and blocks of every form, which take turns."""
KINDS = {False: "any sign", True: "nonnegative"}


def problem(seed, n_samples, positive_dict, snr_db=None):
    """Samples of SPARSITY atoms each with exponential codes, the atoms, and the relative norm of the noise."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((N_ATOMS, N_FEATURES))
    if positive_dict:
        atoms = np.abs(atoms) * (rng.random(atoms.shape) < NONZERO)
        empty = ~atoms.any(axis=1)
        atoms[empty, rng.integers(N_FEATURES, size=empty.sum())] = 1
    atoms = unit_rows(atoms)[0]
    codes = np.zeros((n_samples, N_ATOMS))
    for row in codes:
        row[rng.choice(N_ATOMS, SPARSITY, replace=False)] = rng.exponential(size=SPARSITY)
    data = codes @ atoms
    if snr_db is None:
        return data, atoms, 0.0
    noise = rng.standard_normal(data.shape)
    noise *= np.linalg.norm(data) / np.linalg.norm(noise) * 10 ** (-snr_db / 20)
    return data + noise, atoms, float(np.linalg.norm(noise) / np.linalg.norm(data + noise))


def compared(found, truth):
    """Error by matching with sign, and the number of true atoms without one of correlation above 0.98."""
    correlations = truth @ unit_rows(found)[0].T
    return 1 - correlations[linear_sum_assignment(-correlations)].mean(), int((correlations.max(axis=1) < 0.98).sum())


def learners(seed, positive_dict, weights, max_iter):
    """How to learn the atoms, by name, each from starts of its own seed."""
    signs = {"positive_code": True, "positive_dict": positive_dict}

    def road(data):
        return ROAD(N_ATOMS, random_state=seed + 1_000_000, n_jobs=1, **signs).fit(data)

    def sklearn(weight, data):
        return DictionaryLearning(
            N_ATOMS, alpha=weight, fit_algorithm="cd", max_iter=max_iter, random_state=seed + 1_000_000, **signs
        ).fit(data)

    def nmf(data):
        models = [
            NMF(N_ATOMS, init="random", max_iter=2000, random_state=seed + 1_000_000 + start).fit(np.maximum(data, 0))
            for start in range(NMF_STARTS)
        ]
        return min(models, key=lambda model: model.reconstruction_err_)

    made = {"ROAD": road} | {f"scikit-learn, alpha={weight}": partial(sklearn, weight) for weight in weights}
    return made | ({f"NMF, best of {NMF_STARTS} starts": nmf} if positive_dict else {})


def trial(i, n_samples, positive_dict, snr_db=None):
    """Results of all learners on one problem, by name: error, missed atoms, CPU seconds, epsilon over the true one."""
    warnings.simplefilter("ignore")
    seed, results = SEED + i, {}
    data, truth, level = problem(seed, n_samples, positive_dict, snr_db)
    for name, learn in learners(seed, positive_dict, *(IN_NOISE if level else EXACT)).items():
        with threadpool_limits(1):
            before = time.process_time()
            model = learn(data)
            seconds = time.process_time() - before
        ratio = model.epsilon_ / level if level and name == "ROAD" else np.nan
        results[name] = *compared(model.components_, truth), seconds, ratio
    return results


def kept(means, column):
    """Names of the learners to show: of scikit-learn the weight that is best on average in this column."""
    weights = [name for name in means if name.startswith("scikit-learn")]
    return [name for name in means if name not in weights or name == min(weights, key=lambda name: means[name][column])]


def recovery(trials):
    rows = []
    for (n_samples, positive_dict), results in zip(CASES, in_parallel(trial, CASES, trials), strict=True):
        columns = {name: np.array([result[name] for result in results]).T for name in results[0]}
        for name in kept({name: of_name.mean(axis=1) for name, of_name in columns.items()}, 0):
            errors, _, seconds, _ = columns[name]
            rows.append([n_samples, KINDS[positive_dict], name, f"{(errors < 0.01).mean():.2f}"])
            rows[-1] += [f"{np.median(errors):.4f}", f"{errors.mean():.4f}", f"{seconds.mean():.1f}"]
            print(rows[-1], file=sys.stderr)
    header = ["N", "atoms", "learner", "error below 0.01", "median error", "mean error", "CPU seconds"]
    text = (
        f"Exact data, (M, K, S) = {N_FEATURES, N_ATOMS, SPARSITY}, exponential codes; nonnegative atoms have "
        f"{NONZERO:.0%} nonzero entries; {trials} trials, error by matching with sign. `ROAD(32, positive_code=True)` "
        "with `positive_dict=True` for nonnegative atoms, nothing else set. scikit-learn: `DictionaryLearning`, the "
        f"same signs, {EXACT[1]} iterations, and the best of alpha {', '.join(map(str, EXACT[0]))}, by mean error."
    )
    return "Signs: exact data", f"{text}\n\n{table(header, rows)}"


def noise(trials):
    rows = []
    for (n_samples, positive_dict, snr_db), results in zip(NOISY, in_parallel(trial, NOISY, trials), strict=True):
        columns = {name: np.array([result[name] for result in results]).T for name in results[0]}
        means = {name: of_name.mean(axis=1) for name, of_name in columns.items()}
        best = min(mean[1] for name, mean in means.items() if name.startswith("scikit-learn"))
        for name, (error, missed, seconds, ratio) in means.items():
            shown = "" if np.isnan(ratio) else f"{ratio:.2f}"
            rows.append([n_samples, f"{snr_db:g} dB", KINDS[positive_dict], name, f"{missed:.2f}"])
            rows[-1] += [f"{missed / best:.2f}", f"{error:.4f}", shown, f"{seconds:.1f}"]
            print(rows[-1], file=sys.stderr)
    header = ["N", "noise", "atoms", "learner", "atoms missed", "over scikit-learn's best", "mean error"]
    header += ["epsilon_ over the true one", "CPU seconds"]
    text = (
        f'Data and learners as in "Signs: exact data", scikit-learn with {IN_NOISE[1]} iterations; nothing is told of '
        "the noise; "
        f"{trials} trials; missed: no atom of correlation above 0.98, with sign."
    )
    return "Signs: noise", f"{text}\n\n{table(header, rows)}"


def engine(signs, dtype):
    n_features, n_atoms, n_samples = SPEED_SIZE
    data = np.abs(planted(n_samples, n_features, n_atoms, sparsity=4, random_state=0).data).astype(dtype)
    form = replace(constrained(0.0), rank_one=signs)
    task = Problem(data, None, form, (10.0, 10.0, 10.0))
    start = starting_point(data, n_atoms, None, None, np.random.default_rng(1), constraints=task.constraints)
    return FusedEngine(task, *start, 2)


def speed(_):
    rows = []
    for dtype in (np.float32, np.float64):
        engines = {signs: engine(signs, dtype) for signs in RankOne}
        seconds = {signs: [] for signs in RankOne}
        for _ in range(N_BLOCKS):
            for signs, run in engines.items():
                before = time.perf_counter()
                for _ in range(BLOCK):
                    run.step()
                seconds[signs].append((time.perf_counter() - before) / BLOCK)
        for signs, run in engines.items():
            ratios = np.array(seconds[signs]) / np.array(seconds[RankOne.NEAREST])
            rows.append(
                [np.dtype(dtype).name, signs, f"{1e3 * np.median(seconds[signs]):.1f}", f"{np.median(ratios):.2f}"]
            )
            print(rows[-1], file=sys.stderr)
            run.close()
    header = ["dtype", "rank-one blocks", "ms per iteration", "over the unsigned one"]
    text = (
        f"(M, K, N) = {SPEED_SIZE}, two threads; medians over {N_BLOCKS} blocks of {BLOCK} iterations that take turns."
    )
    return "Signs: time of an iteration", f"{text}\n\n{table(header, rows)}"


SECTIONS = {"recovery": recovery, "noise": noise, "speed": speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="?", choices=SECTIONS)
    parser.add_argument("--trials", type=int, default=20)
    arguments = parser.parse_args()
    for name in [arguments.section] if arguments.section else SECTIONS:
        title, text = SECTIONS[name](arguments.trials)
        write_section(title, f"python benchmarks/signs.py {name} --trials {arguments.trials}", text)


if __name__ == "__main__":
    main()
