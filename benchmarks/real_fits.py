"""Fits of real and of large planted data compared with those of SPAMS and scikit-learn.

Run by ``python benchmarks/real.py fits``, or unseen, classic, planted, denoise and stream alone.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
from noise import flower_patches, found
from real_patches import (
    N_THREADS,
    START_SEED,
    Section,
    gray,
    lasso_road,
    learn_spams,
    load_patches,
    objective,
    optional_spams,
    seeds_text,
    warm_up,
)
from results import in_parallel, table
from skimage.transform import resize
from sklearn.datasets import load_digits
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d
from threadpoolctl import threadpool_limits

from roadict import ROAD
from roadict.coders.registry import encode
from roadict.metrics import psnr
from roadict.synthetic import planted

PLANTED_SEED, NOISE_SEED = 76_000, 84_000
"""First seeds of the reported trials, used for nothing else."""
UNSEEN = [(128, 0.15, 10_000), (256, 0.08, 20_000)]
"""Atoms, weight, patches."""
SPAMS_SECONDS = 20
N_FEATURES, N_ATOMS, SPARSITY, N_SAMPLES = 32, 64, 4, 20_000
STREAM = (256, 0.08, 100_000)
N_PARTS = 100
LONGEST = "scikit-learn, 1,000 iterations"
"""The classic learner that runs with one seed only."""
PHOTOS = ("astronaut", "camera")
SIDE, SIGMA, PATCH = 256, 0.1, (7, 7)


def timed(function, clock=time.perf_counter):
    """Result and seconds."""
    before = clock()
    result = function()
    return result, clock() - before


def range_text(values, digits):
    """Median, and range if there are several."""
    middle = f"{np.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def unseen(arguments):
    """Default fits: objective on unseen patches over that of SPAMS after some seconds."""
    rows, seconds = [], min(SPAMS_SECONDS, arguments.seconds or SPAMS_SECONDS)
    if optional_spams() is None:
        raise SystemExit("unseen compares with SPAMS, which is not installed: pip install spams-bin")
    for n_atoms, alpha, full in UNSEEN:
        n_samples, results = arguments.samples or full, []
        for seed in range(START_SEED, START_SEED + arguments.trials):
            data, others = load_patches(n_samples, seed - START_SEED)
            warm_up(data, n_atoms, formulation="lasso", alpha=alpha)
            model, taken = timed(partial(lasso_road(n_atoms, alpha, seed).fit, data))
            [atoms] = learn_spams(data, n_atoms, alpha, [seconds], seed).atoms
            values = [objective(each, others, alpha) for each in (model.components_, atoms)]
            results.append([*values, values[0] / values[1], taken, model.n_starts_])
            print(n_atoms, seed, results[-1], model.stop_reason_, file=sys.stderr)
        ours, theirs, ratios, taken, starts = np.transpose(results)
        rows.append([n_atoms, alpha, f"{n_samples:,}", f"{np.median(ours):.5f}", f"{np.median(theirs):.5f}"])
        rows[-1] += [range_text(ratios, 4), range_text(taken, 1), f"{np.median(starts):.0f}"]
    header = ["K", "α", "N", "objective, roadict", f"SPAMS after {seconds:g} s", "ratio", "seconds, roadict", "starts"]
    text = (
        '`ROAD(K, formulation="lasso", alpha=α).fit(X)` to its end. Patches and objective as in "Objective on unseen '
    )
    text += f'patches over time"; {seeds_text(arguments.trials)}, and ranges.'
    return Section("Default fits of real patches", f"{text}\n\n{table(header, rows)}")


def classic_learners(alpha):
    """How to make each learner from a seed, by name; scikit-learn's come last, with few iterations and its default."""
    coordinates = {"alpha": alpha, "fit_algorithm": "cd"}
    return {
        '`ROAD(100, formulation="lasso", alpha=a)`': lambda seed: lasso_road(100, alpha, seed, n_jobs=1),
        "`ROAD(100)`": lambda seed: ROAD(100, random_state=seed, n_jobs=1),
        "scikit-learn, 50 iterations": lambda seed: DictionaryLearning(
            100, max_iter=50, random_state=seed, **coordinates
        ),
        LONGEST: lambda seed: DictionaryLearning(100, random_state=seed, **coordinates),
    }


def classic(arguments):
    """Digits and patches of a flower: objective and CPU seconds compared with scikit-learn's DictionaryLearning."""
    rows = []
    for name, samples in (("digits", load_digits().data), ("patches of flower.jpg", flower_patches())):
        data, medians = samples[: arguments.samples], {}
        alpha = 0.1 * np.sqrt((data**2).sum(axis=1).mean())
        warm_up(data, 100, formulation="lasso", alpha=alpha)
        warm_up(data, 100)
        for learner, make in classic_learners(alpha).items():
            results, trials = [], 1 if learner == LONGEST else arguments.trials
            for seed in range(START_SEED, START_SEED + trials):
                with threadpool_limits(1):
                    model, seconds = timed(partial(make(seed).fit, data), time.process_time)
                results.append((objective(model.components_, data, alpha) * len(data), seconds, model.n_iter_))
                print(name, learner, results[-1], file=sys.stderr)
            medians[learner] = trials, np.median(results, axis=0)
        (_, few), (_, many) = list(medians.values())[-2:]
        for learner, (trials, (value, seconds, iterations)) in medians.items():
            rows.append([name, learner, trials, f"{value:.6g}", f"{value / few[0]:.4f}", f"{value / many[0]:.4f}"])
            rows[-1] += [f"{seconds:.1f}", f"{seconds / few[1]:.2f}", f"{seconds / many[1]:.3f}", f"{iterations:.0f}"]
    header = ["data", "learner", "seeds", "objective", "over that of 50 iterations", "of 1,000", "CPU seconds"]
    header += ["times those of 50 iterations", "of 1,000", "iterations"]
    text = (
        "½‖Y - XD‖² + a Σ|X| over the data, for the minimal codes X of one coder; a is 0.1 times the root-mean-square "
    )
    text += 'norm of the samples. scikit-learn: `DictionaryLearning(100, alpha=a, fit_algorithm="cd")`, as its default '
    text += '"lars" takes ten times as long per iteration; with 50 iterations, and with its default of 1,000. '
    text += "`ROAD(100)` finds the noise itself, so its objective is another one. One thread; medians over the seeds."
    return Section("Digits and a flower beside scikit-learn", f"{text}\n\n{table(header, rows)}")


def planted_trial(i, n_samples):
    warnings.simplefilter("ignore")
    seed = PLANTED_SEED + i
    truth = planted(n_samples, N_FEATURES, N_ATOMS, sparsity=SPARSITY, snr_db=20, random_state=seed)
    true_epsilon = float(np.linalg.norm(truth.noise) / np.linalg.norm(truth.data))
    with threadpool_limits(1):
        fit = partial(ROAD(N_ATOMS, random_state=seed + 1_000_000, n_jobs=1).fit, truth.data)
        model, seconds = timed(fit, time.process_time)
    return found(model.components_, truth.dictionary), model.epsilon_ / true_epsilon, seconds


def planted_atoms(arguments):
    """Many samples of a planted dictionary in noise: are all atoms found?"""
    n_samples = arguments.samples or N_SAMPLES
    [results] = in_parallel(planted_trial, [(n_samples,)], arguments.trials)
    print(results, file=sys.stderr)
    shares, ratios, seconds = np.array(results, float).T
    row = [f"{(shares == 1).sum()} of {arguments.trials}", f"{shares.mean():.4f}"]
    row += [f"{ratios.min():.2f} to {ratios.max():.2f}", f"{np.median(seconds):.1f}"]
    header = ["trials with all atoms found", "atoms found", "epsilon_ over the true one", "CPU seconds, median"]
    text = (
        f"`ROAD({N_ATOMS})`, (M, K, S) = {N_FEATURES, N_ATOMS, SPARSITY}, N = {n_samples:,}, 20 dB; found: correlation "
    )
    return Section("Many samples in noise", f"{text}above 0.98.\n\n{table(header, [row])}")


def stream(arguments):
    """Parts of a stream by partial_fit, compared with one fit of all."""
    if not hasattr(ROAD, "partial_fit"):
        raise SystemExit("stream needs ROAD.partial_fit, which this version does not have")
    (n_atoms, alpha, full), results = STREAM, []
    n_samples = arguments.samples or full
    for seed in range(START_SEED, START_SEED + arguments.trials):
        data, others = load_patches(n_samples, seed - START_SEED)
        warm_up(data, n_atoms, formulation="lasso", alpha=alpha)
        model = lasso_road(n_atoms, alpha, seed)
        streamed = sum(timed(partial(model.partial_fit, part))[1] for part in np.array_split(data, N_PARTS))
        whole, taken = timed(partial(lasso_road(n_atoms, alpha, seed).fit, data))
        values = [objective(each.components_, others, alpha) for each in (model, whole)]
        results.append([*values, values[0] / values[1], streamed, taken])
        print(seed, results[-1], file=sys.stderr)
    parts, whole, ratios, streamed, taken = np.transpose(results)
    row = [f"{np.median(parts):.5f}", f"{np.median(whole):.5f}", range_text(ratios, 4)]
    row += [range_text(streamed, 1), range_text(taken, 1)]
    header = ["objective, parts", "objective, one fit", "ratio", "seconds, parts", "seconds, one fit"]
    text = f"{n_samples:,} patches in {N_PARTS} parts, each passed once to `partial_fit`, and one `fit` of all; K = "
    text += f'{n_atoms}, α = {alpha}. Patches and objective as in "Objective on unseen patches over time"; '
    text += f"{seeds_text(arguments.trials)}, and ranges."
    return Section("A stream of patches", f"{text}\n\n{table(header, [row])}")


def denoised(atoms, noisy):
    """Picture from its patches, each two atoms plus the mean patch."""
    patches = extract_patches_2d(noisy, PATCH).reshape(-1, np.prod(PATCH))
    mean = patches.mean(axis=0)
    codes = encode(patches - mean, None, atoms, algorithm="omp", n_nonzero_coefs=2, n_jobs=N_THREADS)
    return reconstruct_from_patches_2d((codes @ atoms + mean).reshape(-1, *PATCH), noisy.shape)


def denoise_learners():
    """How to make each learner from a seed, by name."""
    batches = {"batch_size": 200, "alpha": 1, "max_iter": 10}
    return {
        "`MiniBatchDictionaryLearning(50, batch_size=200, alpha=1, max_iter=10)`": lambda seed: (
            MiniBatchDictionaryLearning(50, random_state=seed, **batches)
        ),
        "`ROAD(50)`": lambda seed: ROAD(50, random_state=seed, n_jobs=N_THREADS),
        "`ROAD(50, epsilon=0.1)`": lambda seed: ROAD(50, epsilon=0.1, random_state=seed, n_jobs=N_THREADS),
        '`ROAD(50, formulation="lasso", alpha=1)`': lambda seed: lasso_road(50, 1, seed),
    }


def denoise(arguments):
    """Half of a photo with noise, denoised by atoms of the other half, as in an example of scikit-learn."""
    rows = []
    for photo in PHOTOS:
        clean = resize(gray(photo), (SIDE, SIDE), anti_aliasing=True)
        left, right = clean[:, : SIDE // 2], clean[:, SIDE // 2 :]
        data = extract_patches_2d(left, PATCH).reshape(-1, np.prod(PATCH))
        data = ((data - data.mean(axis=0)) / data.std(axis=0))[: arguments.samples]
        warm_up(data, 50, formulation="lasso", alpha=1)
        warm_up(data, 50)
        for name, make in denoise_learners().items():
            results = []
            for trial in range(arguments.trials):
                noise = np.random.default_rng(NOISE_SEED + trial).standard_normal(right.shape)
                noisy = right + SIGMA * noise
                model, seconds = timed(partial(make(START_SEED + trial).fit, data))
                results.append((psnr(noisy, right), psnr(denoised(model.components_, noisy), right), seconds))
                print(photo, name, results[-1], file=sys.stderr)
            before, after, seconds = np.median(results, axis=0)
            rows.append([photo, name, f"{before:.2f} dB", f"{after:.2f} dB", f"{seconds:.2f}"])
    header = ["photo", "learner", "noisy half", "denoised", "seconds of the fit"]
    text = f"Photos of {SIDE}x{SIDE} pixels with noise of σ = {SIGMA} in the right half; {len(data):,} patches of 7x7 "
    text += (
        "pixels of the left half, standardised, to learn from; every patch of the right half from two atoms by OMP; "
    )
    text += f"{seeds_text(arguments.trials)}."
    return Section("Denoising half a photo", f"{text}\n\n{table(header, rows)}")


COMMANDS = {"unseen": unseen, "classic": classic, "planted": planted_atoms, "denoise": denoise, "stream": stream}
FITS = ("unseen", "classic", "planted", "denoise")
"""Those run by ``fits``."""
TRIALS = {"planted": 10}
"""Trials by default, where not 3."""
