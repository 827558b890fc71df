"""Rows of experiments with made-up results, so that the right verdict is known."""

import numpy as np

from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.verdicts import verdicts


def synthetic(name, result_of, number=6, engine="auto", cpu_of=lambda _: 1.0):
    """Rows of an experiment whose results and CPU times are functions of the trial."""
    return [
        {
            "key": trial.key(),
            "settings": trial.settings(),
            "result": result_of(trial),
            "seconds": {"cpu": cpu_of(trial), "wall": 1.0},
            "trials": number,
        }
        for trial in EXPERIMENTS[name].trials(number, engine)
    ]


def error(value):
    return {"error": value, "error_greedy": value}


def by_method(table, default):
    return lambda trial: error(table.get(trial.method.name, default))


def outcomes(rows):
    return [verdict.outcome for verdict in verdicts(rows)]


def draws(trial):
    """Random numbers of a trial: others for every method."""
    return np.random.default_rng([trial.seed, *trial.method.name.encode(), getattr(trial.problem, "n_samples", 0)])


def bimodal(trial, share):
    """A run that ends at 1e-5, or in a wrong minimum near 0.03."""
    rng = draws(trial)
    return error(float((1e-5 if rng.random() < share else 0.03) * rng.lognormal(0, 0.2)))
