"""Our own experiment: what finds the atoms, at equal CPU time."""

from roadict.experiments.methods import timed
from roadict.experiments.plan import Experiment, Panel, samples

ABLATION = Experiment(
    "ablation",
    "What finds the atoms?",
    "Ablation",
    "At equal CPU time ROAD finds dictionaries that other learners do not find, whether these restart or also get the "
    "exact finish.",
    "The others have the CPU time of ROAD's defaults on the same trial: as many restarts as begin in it, of which the "
    "last may run over, the best by its own objective. ROAD with one start is a single fit and takes the time that it "
    "takes, less or more. ROAD without the finish is told that the data are exact, and its last run, a long one, often "
    "runs over: the finish may add more than is shown. ROAD with ρ = 10 is the paper's, with 300 iterations and the "
    "samples as they are, which the defaults scale to unit norm: the moving ρ is judged together with these. The "
    "annealed Lasso alternates with MOD, with a weight that falls from 0.3 to 0.03 of the root-mean-square norm, and "
    "gets the same finish; K-SVD and BLOTLESS code by OMP with the true number of coefficients.",
    (
        Panel("16-32-3", "16 features, 32 atoms, 3 nonzeros", samples((100, 150, 200, 300), 16, 32, sparsity=3)),
        Panel("24-48-3", "24 features, 48 atoms, 3 nonzeros", samples((200,), 24, 48, sparsity=3)),
        Panel("24-48-6", "24 features, 48 atoms, 6 nonzeros", samples((400,), 24, 48, sparsity=6)),
        Panel("32-64-6", "32 features, 64 atoms, 6 nonzeros", samples((350,), 32, 64, sparsity=6)),
    ),
    (
        timed("road-defaults", "ROAD, our defaults", "road"),
        timed("road-unfinished", "ROAD without the finish", "unfinished", finish=False),
        timed("road-one-start", "ROAD, one start", "road", n_init=1),
        timed("road-paper", "ROAD, ρ = 10", "paper", finish=False),
        timed("road-paper-finished", "ROAD, ρ = 10, with the finish", "paper", finish=True),
        timed("lasso-annealed", "annealed Lasso", "annealed-lasso", finish=False),
        timed("lasso-annealed-finished", "annealed Lasso with the finish", "annealed-lasso", finish=True),
        timed("ksvd", "K-SVD", "ksvd", finish=False),
        timed("blotless", "BLOTLESS", "blotless", finish=False),
    ),
    of_paper=False,
    n_trials=32,
)
