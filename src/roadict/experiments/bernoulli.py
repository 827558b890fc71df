"""Fig. 4: a number of coefficients that varies from sample to sample."""

from roadict.experiments.methods import SYNTHETIC
from roadict.experiments.plan import Experiment, Panel, samples

BERNOULLI = Experiment(
    "bernoulli",
    "Recovery with varying sparsity",
    "Fig. 4",
    "Where the number of coefficients varies, ROAD still recovers the dictionary exactly from enough samples, while "
    "the dictionaries of the others differ much from the truth.",
    "24 features, 48 atoms; every coefficient is nonzero with probability θ. The two-stage methods take 3 and 6 "
    "coefficients for every sample, the mean.",
    (
        Panel("theta-3", "θ = 3/48", samples((200, 350, 600), 24, 48, probability=3 / 48)),
        Panel("theta-6", "θ = 6/48", samples((400, 700, 1000), 24, 48, probability=6 / 48)),
    ),
    SYNTHETIC,
)
