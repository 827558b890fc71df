"""Runs that are stopped and resumed: shared by the tests of checkpoints."""

import itertools

import numpy as np

from roadict import ROAD
from roadict.checkpoints.schedule import Checkpoint
from roadict.synthetic import planted

DATA = planted(90, 6, 9, sparsity=2, random_state=0).data
HOLES = np.where(np.random.default_rng(1).random(DATA.shape) < 0.1, np.nan, DATA)
CUTS = {1: [], 2: [70], 3: [20, 20]}


def road(**parameters):
    return ROAD(**{"n_components": 9, "max_iter": 60, "random_state": 0} | parameters)


def stopping(folder, moment, every=1e9):
    """Request a stop after so many iterations."""
    calls = itertools.count(1)
    return Checkpoint(folder, every=every, stop=lambda: 15 if next(calls) == moment else 0)


def assert_same(first, second):
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.codes_, second.codes_)
    assert (first.n_iter_, first.stop_reason_, first.objective_, first.error_) == (
        second.n_iter_,
        second.stop_reason_,
        second.objective_,
        second.error_,
    )
    for column in ("objective", "primal", "dual", "error", "rho"):
        np.testing.assert_array_equal(first.history_[column], second.history_[column])
