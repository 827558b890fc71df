"""Fig. 1: exact against inexact ADMM."""

from roadict.experiments.methods import (
    ALTERNATING_LASSO,
    CONSISTENT,
    INEXACT_ONE,
    INEXACT_THREE,
    ROAD_DEFAULTS,
    ROAD_PAPER,
    SEQUENTIAL,
    SIMCO,
)
from roadict.experiments.plan import Experiment, Panel, PlantedProblem, samples

SOLVERS = Experiment(
    "solvers",
    "Exact and inexact ADMM",
    "Fig. 1",
    "Exact ADMM reaches an error of almost 0 in under 300 iterations from 300 samples on, while inexact ADMM stays "
    "near 0.01 even after 10,000 iterations.",
    "(16, 32, 3): 16 features, 32 atoms, 3 nonzero coefficients per sample. eADMM: ρ = 10, 300 iterations. iADMM: "
    "β = 200, 300, 250 and ρ = 210, 310, 260 or 310 for all, 10,000 iterations.",
    (
        Panel(
            "iterations", "Error along the iterations, N = 300", (PlantedProblem(16, 32, 300, sparsity=3, trace=True),)
        ),
        Panel("samples", "Error against the number of samples", samples((100, 200, 300, 400), 16, 32, sparsity=3)),
    ),
    (ROAD_PAPER, ROAD_DEFAULTS, INEXACT_THREE, INEXACT_ONE, SIMCO, ALTERNATING_LASSO, SEQUENTIAL, CONSISTENT),
)
