"""How honest the progress of jobs is: their stages' shares of the time, and the total time foretold along the way.

    python benchmarks/progress.py [JOB ...]

For every job: how much of the bar and how much of the time each stage took, and the total time, relative to the true
one, that was foretold after a tenth, a quarter, half and three quarters of it. The costs of stages in
`road/expected.py` and in `pictures` come from here. Kernels are compiled before. It takes some minutes.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import skimage.data
from sklearn.datasets import load_digits
from sklearn.feature_extraction.image import extract_patches_2d

from roadict import ROAD, ROADCV
from roadict.pictures import SuperResolution, denoise, inpaint, upscale
from roadict.progress.stages import FINE_STEPS
from roadict.progress.terminal import Progress, stage_name
from roadict.synthetic import planted

Job = Callable[[Progress], object]
FORETOLD = (0.1, 0.25, 0.5, 0.75)


def fit(X: np.ndarray, **parameters: object) -> Job:
    """A fit as a job."""

    def job(report: Progress) -> None:
        model = (ROAD if "n_components" in parameters else ROADCV)(random_state=0, **parameters)
        if isinstance(model, ROADCV):
            model._progress = lambda done, total, text: report(done, total, "choosing")
        for snapshot in model.iter_fit(X):
            kind = "descent" if "stationarity" in snapshot.residuals else "search"
            report(round(FINE_STEPS * snapshot.share), FINE_STEPS, f"{stage_name(snapshot)} ({kind})")

    return job


def noisy(n_samples: int) -> np.ndarray:
    """Planted samples with noise of 20 dB."""
    return planted(n_samples, 16, 32, sparsity=3, snr_db=20, random_state=0).data


def patches(number: int) -> np.ndarray:
    """Patches of a photograph."""
    some = extract_patches_2d(skimage.data.camera() / 255, (8, 8), max_patches=number, random_state=0)
    return some.reshape(number, -1)


def photo(side: int) -> np.ndarray:
    """A photograph with noise, in colour."""
    clean = skimage.data.astronaut()[:side, :side] / 255
    return np.clip(clean + np.random.default_rng(0).normal(0, 20 / 255, clean.shape), 0, 1).astype(np.float32)


def holes(side: int) -> tuple[np.ndarray, np.ndarray]:
    """A grey photograph and a mask of half its pixels."""
    grey = skimage.data.camera()[100 : 100 + side, 100 : 100 + side]
    return grey, np.random.default_rng(0).random(grey.shape) < 0.5


def jobs() -> dict[str, Job]:
    """All jobs by name."""
    digits = load_digits().data.astype(np.float32)
    few = {"random_state": 0}
    return {
        "exact": fit(planted(400, 16, 32, sparsity=3, random_state=0).data, n_components=32),
        "noisy": fit(noisy(400), n_components=32),
        "scarce": fit(noisy(150), n_components=32),
        "noisy-5000": fit(noisy(5000), n_components=32),
        "lasso": fit(noisy(400), n_components=32, formulation="lasso"),
        "digits": fit(digits, n_components=32),
        "digits-64": fit(digits, n_components=64),
        "digits-100": fit(digits, n_components=100),
        "patches": fit(patches(20_000), n_components=100),
        "signs": fit(digits, n_components=32, positive_code=True, positive_dict=True),
        "number": fit(noisy(400)),
        "denoise-128": lambda report: denoise(photo(128), 20 / 255, progress=report, **few),
        "denoise-512": lambda report: denoise(photo(512), 20 / 255, progress=report, **few),
        "inpaint-128": lambda report: inpaint(*holes(128), progress=report, **few),
        "inpaint-256": lambda report: inpaint(*holes(256), progress=report, **few),
        "train": lambda report: SuperResolution(3, random_state=0).fit([photo(512)] * 4, report),
        "zeyde": lambda report: SuperResolution(3, approach="zeyde", random_state=0).fit([photo(512)] * 4, report),
        "upscale": lambda report: upscale(photo(512), 3, train=[photo(300)] * 4, progress=report, **few),
    }


def measure(job: Job) -> tuple[list[tuple[float, float, str]], float]:
    """Time and share at every report, and the time of the job."""
    began, calls = time.perf_counter(), []
    job(lambda done, total, text: calls.append((time.perf_counter() - began, done / total, text)))
    return calls, time.perf_counter() - began


def main() -> None:
    """Measure the jobs named, or all."""
    warnings.simplefilter("ignore")
    chosen = jobs()
    for name in sys.argv[1:] or chosen:
        measure(chosen[name])
        calls, seconds = measure(chosen[name])
        print(f"{name}: {seconds:.1f} s")
        names = list(dict.fromkeys(text for _, _, text in calls))
        ends = [*(next(call for call in calls if call[2] == stage) for stage in names[1:]), (seconds, 1.0, "")]
        before = (0.0, 0.0)
        for stage, (end, share, _) in zip(names, ends, strict=True):
            print(f"  {stage:40} {(end - before[0]) / seconds:5.0%} of the time {share - before[1]:5.0%} of the bar")
            before = end, share
        foretold = []
        for part in FORETOLD:
            known = [(at, share) for at, share, _ in calls if at <= part * seconds and share > 0] or [(0.0, 1.0)]
            foretold.append(f"{known[-1][0] / known[-1][1] / seconds:.2f}")
        print(f"  foretold after {', '.join(f'{part:.0%}' for part in FORETOLD)}: {', '.join(foretold)}", flush=True)


if __name__ == "__main__":
    main()
