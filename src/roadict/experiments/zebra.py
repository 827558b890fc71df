"""Table II: a zebra, three times larger."""

from roadict.experiments.methods import LONG, PICTURES
from roadict.experiments.plan import Experiment, Panel, PictureProblem

ZEBRA = Experiment(
    "zebra",
    "A zebra, three times larger, from three pictures",
    "Table II",
    "ROAD's dictionary gives the best picture: 28.18 dB against 27.87 (K-SVD), 27.76 (BLOTLESS) and "
    "26.71 (MOD, bicubic).",
    "Zeyde's approach with the paper's filters, 9 × 9 patches with an overlap of 6, PCA, 512 atoms. 100 iterations of "
    "ROAD, a sixth as many of the two-stage methods, which learn with the coder they are named with: the Lasso in the "
    "paper, which does not report its iterations; and once more with as many as take the CPU time of ROAD with our ρ, "
    "by which they are judged. The paper's training pictures, as its 11,775 patches tell, are t36, t64 and t65 of "
    "Yang's 91, of which the first and the last are the same file: there are two pictures, and not three.",
    (Panel("zeyde", "Zeyde: two dictionaries", (PictureProblem("zebra", 3, "zeyde", 512, 100),)),),
    (*PICTURES, *LONG),
    "zebra",
)
