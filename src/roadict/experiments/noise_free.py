"""Fig. 2: recovery without noise, four sizes."""

from roadict.experiments.methods import SYNTHETIC
from roadict.experiments.plan import Experiment, Panel, samples

NOISE_FREE = Experiment(
    "noise-free",
    "Recovery without noise",
    "Fig. 2",
    "At every size ROAD needs fewer samples than BLOTLESS, K-SVD and MOD, and its error goes to 0, while theirs have a "
    "floor however many samples there are.",
    "Two-stage methods code by OMP with the true number of coefficients, unknown to ROAD; 300 iterations each.",
    (
        Panel("16-32-3", "16 features, 32 atoms, 3 nonzeros", samples((100, 200, 300, 400), 16, 32, sparsity=3)),
        Panel(
            "24-48-3", "24 features, 48 atoms, 3 nonzeros", samples((150, 200, 300, 350, 400, 500), 24, 48, sparsity=3)
        ),
        Panel("24-48-6", "24 features, 48 atoms, 6 nonzeros", samples((400, 500, 600, 800, 1000), 24, 48, sparsity=6)),
        Panel("32-64-6", "32 features, 64 atoms, 6 nonzeros", samples((350, 425, 500, 800), 32, 64, sparsity=6)),
    ),
    SYNTHETIC,
)
