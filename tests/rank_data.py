"""Samples and formulations for the tests of ranks, as threads and as processes."""

import numpy as np

from roadict.synthetic import planted

TRUTH = planted(151, 8, 12, sparsity=2, random_state=0)
HOLES = np.where(np.random.default_rng(1).random(TRUTH.data.shape) < 0.1, np.nan, TRUTH.data)
CUTS = {1: [], 2: [110], 3: [110, 110], 4: [1, 2, 150]}  # uneven; the second of three ranks has no rows
FORMS = {
    "exact": {"rho": 10.0},
    "ball": {"rho": 10.0, "epsilon": 0.1},
    "lasso": {"rho": 10.0, "formulation": "lasso"},
    "inexact": {"formulation": "inexact", "beta": (200, 300, 250), "rho": (210, 310, 260)},
}
