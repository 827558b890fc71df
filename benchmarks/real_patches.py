"""Patches of real pictures, split into those to learn from and unseen ones, and learners whose atoms are recorded.

Used by ``python benchmarks/real.py``.
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import skimage.data
from joblib.externals.loky import get_reusable_executor
from skimage.color import rgb2gray
from skimage.util import img_as_float
from sklearn.base import clone
from sklearn.decomposition import MiniBatchDictionaryLearning

from roadict import ROAD
from roadict.coders.registry import encode
from roadict.linalg import unit_rows

PICTURES = ("astronaut", "camera", "chelsea", "coffee", "coins", "immunohistochemistry", "moon", "rocket")
"""Pictures inside scikit-image's package: nothing is downloaded."""
SIZE = 8
N_UNSEEN = 8_000
N_JUDGED = 4_000
"""Training patches by which the starts of a fit are compared."""
DATA_SEED, START_SEED, UNSEEN_SEED = 86_000, 87_000, 88_000
"""First seeds of the reported trials, and the seed of the unseen patches; used for nothing else."""
N_THREADS = 2
BATCH = 512
"""Patches per batch of SPAMS and scikit-learn."""


def gray(name):
    picture = img_as_float(getattr(skimage.data, name)())
    return rgb2gray(picture) if picture.ndim == 3 else picture


def draw(n, seed, *, unseen):
    """Distinct patches of the right thirds of the pictures (``unseen``) or of the rest, without their means."""
    parts = []
    for name in PICTURES:
        picture = gray(name)
        border = 2 * picture.shape[1] // 3
        part = picture[:, border:] if unseen else picture[:, :border]
        parts.append(np.lib.stride_tricks.sliding_window_view(part, (SIZE, SIZE)))
    edges = np.cumsum([0, *(part.shape[0] * part.shape[1] for part in parts)])
    chosen = np.random.default_rng(seed).choice(edges[-1], n, replace=False)
    patches = np.empty((n, SIZE**2))
    for part, first, end in zip(parts, edges[:-1], edges[1:], strict=True):
        rows = np.flatnonzero((first <= chosen) & (chosen < end))
        patches[rows] = part[np.unravel_index(chosen[rows] - first, part.shape[:2])].reshape(len(rows), -1)
    return patches - patches.mean(axis=1, keepdims=True)


def load_patches(n, trial=0):
    """Training and unseen patches in float32, scaled so that the former have norm one in the root mean square."""
    train, unseen = draw(n, DATA_SEED + trial, unseen=False), draw(N_UNSEEN, UNSEEN_SEED, unseen=True)
    scale = np.sqrt((train**2).sum(axis=1).mean())
    return (train / scale).astype(np.float32), (unseen / scale).astype(np.float32)


def objective(atoms, patches, alpha):
    """Mean of ½‖y - xD‖² + alpha ‖x‖₁ over the patches, for the minimal codes x and atoms of unit norm."""
    atoms = unit_rows(np.asarray(atoms, np.float64))[0].astype(patches.dtype)
    codes = encode(patches, None, atoms, algorithm="lasso", alpha=alpha, n_jobs=N_THREADS)
    residual = patches - codes @ atoms
    return float((residual**2).sum(dtype=float) / 2 + alpha * np.abs(codes).sum(dtype=float)) / len(patches)


def sample_start(data, n_atoms, seed):
    """Distinct samples of unit norm: the start of SPAMS and scikit-learn."""
    rows = data[np.random.default_rng(seed).choice(len(data), min(len(data), 10 * n_atoms), replace=False)]
    rows = rows[np.linalg.norm(rows, axis=1) > 0]  # some patches are flat
    return unit_rows(rows[:n_atoms].astype(np.float64))[0].astype(data.dtype)


def optional_spams():
    """The package, or None if it is not installed."""
    try:
        import spams
    except ImportError:
        return None
    return spams


def seeds_text(trials):
    return "one seed" if trials == 1 else f"medians of {trials} seeds"


class Section(NamedTuple):
    """A result to report."""

    title: str
    body: str


class Course(NamedTuple):
    """Atoms at every time mark, None before there were any; last atoms and seconds of a fit that ended by itself."""

    atoms: list
    final: np.ndarray | None = None
    end: float | None = None


class Recorder:
    """Callback that records the atoms present at every time mark; its own time does not count.

    They are those after the last iteration that was complete. If there were several starts, a fit that is stopped
    returns the best of them: candidates are all finished starts and the present one.
    """

    def __init__(self, marks, stops):
        self.marks, self.stops, self.recorded = marks, stops, []
        self._finished, self._atoms, self._start = [], None, 1
        self._began, self._paused = time.perf_counter(), 0.0

    def elapsed(self):
        return time.perf_counter() - self._began - self._paused

    def record(self, seconds):
        """Record for the marks before this time."""
        while len(self.recorded) < len(self.marks) and self.marks[len(self.recorded)] < seconds:
            self.recorded.append([*self._finished, *([] if self._atoms is None else [self._atoms])])

    def __call__(self, snapshot):
        paused = time.perf_counter()
        self.record(self.elapsed())
        if snapshot.start != self._start:
            self._finished.append(self._atoms)
        self._start, self._atoms = snapshot.start, snapshot.dictionary
        self._paused += time.perf_counter() - paused
        return self.stops and len(self.recorded) == len(self.marks)


def best(candidates, data, alpha):
    """The atoms with the smallest objective on training patches."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return min(candidates, key=lambda atoms: objective(atoms, np.asarray(data[:N_JUDGED]), alpha))


def lasso_road(n_atoms, alpha, seed, n_jobs=N_THREADS, **others):
    return ROAD(n_atoms, formulation="lasso", alpha=alpha, random_state=seed, n_jobs=n_jobs, **others)


def warm_up(data, n_atoms, **settings):
    """Compile what a fit of such data needs: a few iterations of every stage, and the first of the real problem."""
    settings |= {"n_jobs": N_THREADS, "random_state": 0}
    ROAD(n_atoms, max_iter=3, **settings).fit(data[:2_000])
    ROAD(n_atoms, callback=lambda _: True, **settings).fit(data)


def learn_roadict(data, n_atoms, alpha, marks, seed, stops=True):
    """ROAD's default fit, ended at the last mark if ``stops``."""
    warm_up(data[:100_000], n_atoms, formulation="lasso", alpha=alpha)
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark of memory
    recorder = Recorder(marks, stops)
    model = lasso_road(n_atoms, alpha, seed, callback=recorder).fit(data)
    end = recorder.elapsed()
    recorder.record(end)
    atoms = [best(candidates, data, alpha) for candidates in recorder.recorded]
    atoms += [model.components_] * (len(marks) - len(atoms))
    return Course(atoms) if model.stop_reason_ == "callback" else Course(atoms, model.components_, end)


def learn_spams(data, n_atoms, alpha, marks, seed):
    """SPAMS, one run per mark: it does not give its atoms before the end."""
    spams, columns = optional_spams(), np.asfortranarray(data.T)
    start = np.asfortranarray(sample_start(data, n_atoms, seed).T)
    settings = {"lambda1": alpha, "mode": 2, "numThreads": N_THREADS, "batchsize": BATCH, "verbose": False}
    atoms = []
    for mark in marks:
        began = time.perf_counter()
        atoms.append(spams.trainDL(columns, D=start, K=n_atoms, iter=-mark, **settings).T)
        seconds = time.perf_counter() - began
        if seconds > 1.2 * mark + 0.5:  # its threads wait for each other by spinning
            print(
                f"SPAMS took {seconds:.1f} s instead of {mark:g} s: are there other programs running?", file=sys.stderr
            )
    return Course(atoms)


def learn_sklearn(data, n_atoms, alpha, marks, seed):
    """scikit-learn, batches in random order."""
    rng, start = np.random.default_rng([seed, 1]), sample_start(data, n_atoms, seed)
    settings = {"alpha": alpha, "batch_size": BATCH, "fit_algorithm": "cd", "n_jobs": N_THREADS}
    model = MiniBatchDictionaryLearning(n_atoms, dict_init=start, random_state=seed, **settings)
    clone(model).partial_fit(data[:BATCH])  # starts its processes
    recorded, atoms, order = [], None, np.empty(0, int)
    began = time.perf_counter()
    while len(recorded) < len(marks):
        if len(order) < BATCH:
            order = rng.permutation(len(data))
        rows, order = np.sort(order[:BATCH]), order[BATCH:]
        model.partial_fit(data[rows])
        seconds = time.perf_counter() - began
        while len(recorded) < len(marks) and marks[len(recorded)] < seconds:
            recorded.append(atoms)
        atoms = model.components_.copy()
    get_reusable_executor().shutdown()  # else this process lives on as long as its idle workers
    return Course(recorded)
