"""Table II: a zebra, three times larger."""

from roadict.experiments.methods import PICTURES
from roadict.experiments.plan import Experiment, Panel, PictureProblem

ZEBRA = Experiment(
    "zebra",
    "A zebra, three times larger, from three pictures",
    "Table II",
    "ROAD's dictionary gives the best picture: 28.18 dB against 27.87 (K-SVD), 27.76 (BLOTLESS) and "
    "26.71 (MOD, bicubic).",
    "Zeyde's approach, 512 atoms, 100 iterations of ROAD, a sixth as many of the two-stage methods. The paper's MOD "
    "equals bicubic to four decimals, so its codes were zero.",
    (Panel("zeyde", "Zeyde: two dictionaries", (PictureProblem("zebra", 3, "zeyde", 512, 100),)),),
    PICTURES,
    "zebra",
)
