"""Run a trial of any kind: as ``trial`` does, literally, or with iterations of the method's own.

Apart from ``trial``, on whose code the rows of all learners depend.
"""

import time
from dataclasses import replace
from pathlib import Path

from roadict.drawing.raster import atom_sheet, png
from roadict.experiments import trial as plain
from roadict.experiments.images import load
from roadict.experiments.literal import SUFFIX, enlarge_literally
from roadict.experiments.plan import PictureProblem, Trial
from roadict.metrics import psnr
from roadict.pictures.recipe import Recipe
from roadict.pictures.resize import resize
from roadict.seeds import TRIAL_DRAW, streams

PATCH_SIZE, STRIDE = 6, 4
"""Of digits, as in the paper."""


def execute(trial: Trial, data: Path | None) -> plain.Finished:
    """Run a trial on one thread; ``data``: folder of the paper's pictures, or None."""
    problem, settings = trial.problem, dict(trial.method.parameters)
    if trial.method.learner != "picture" or not isinstance(problem, PictureProblem):
        return plain.execute(trial, data)
    if problem.approach.endswith(SUFFIX):
        with plain._quietly():
            return _literally(trial, problem, data)
    if "max_iter" not in settings:
        return plain.execute(trial, data)
    longer = replace(problem, max_iter=settings.pop("max_iter"))
    method = replace(trial.method, parameters=tuple(settings.items()))
    return replace(plain.execute(replace(trial, problem=longer, method=method), data), trial=trial)


def _literally(trial: Trial, problem: PictureProblem, data: Path | None) -> plain.Finished:
    clock, cpu = time.perf_counter(), time.process_time()
    images = load(problem.picture, data)
    (rng,) = streams(trial.seed, TRIAL_DRAW, 1)
    training = [images.training[i] for i in rng.choice(len(images.training), images.draw, replace=False)]
    height, width = images.test.shape
    small = resize(images.test, (height // problem.scale, width // problem.scale))
    settings = dict(trial.method.parameters)
    method = settings.pop("method")
    recipe = Recipe(engine=trial.engine or "auto", patch_size=PATCH_SIZE, stride=STRIDE, **settings)
    big, high = enlarge_literally(small, training, problem, method, recipe, trial.seed)
    seconds = {"wall": round(time.perf_counter() - clock, 4), "cpu": round(time.process_time() - cpu, 4)}
    pictures = {"": png(big), plain.ATOMS: png(atom_sheet(high))}
    return plain.Finished(trial, {"psnr": psnr(big, images.test)}, seconds, pictures)
