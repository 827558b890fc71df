"""A small experiment, to be run by the tests as a process of its own: python tiny.py FOLDER JOBS TRIALS."""

import sys
from pathlib import Path

from roadict.experiments.methods import KSVD, MOD, ROAD_PAPER
from roadict.experiments.plan import Experiment, Panel, samples
from roadict.experiments.runner import pending, run

TINY = Experiment(
    "tiny",
    "tiny",
    "none",
    "none",
    "none",
    (Panel("6-8-2", "6 features, 8 atoms", samples((40, 60), 6, 8, sparsity=2)),),
    (ROAD_PAPER, KSVD, MOD),
)


def trials(number):
    return list(TINY.trials(number, "auto"))


if __name__ == "__main__":
    folder, jobs, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    run(pending(trials(number), folder), folder, jobs=jobs)
