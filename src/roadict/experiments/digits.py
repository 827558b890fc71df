"""Table I: a digit, twice larger."""

from roadict.experiments.methods import PICTURES
from roadict.experiments.plan import Experiment, Panel, PictureProblem

DIGITS = Experiment(
    "digits",
    "A digit, twice larger, from five others",
    "Table I",
    "ROAD's dictionary gives the best digit, by Yang's approach (24.02 dB) and by Zeyde's (26.92 dB).",
    "6 × 6 patches with an overlap of 2, 245 in all, 64 atoms, as in the paper. It does not report its five training "
    "digits: every trial draws its own. 300 iterations of ROAD, a sixth as many of the two-stage methods, which learn "
    "with the coder they are named with: the Lasso in the paper; six times as many gave K-SVD and MOD no gain. Our "
    "dictionaries hold the detail that bicubic lacks. The paper's hold pixels, and the second one of Zeyde's approach "
    "comes from a pseudo-inverse of the learner's own codes: this is done literally, too.",
    (
        Panel("yang", "Yang: one stacked dictionary", (PictureProblem("digit", 2, "yang", 64, 300),)),
        Panel("zeyde", "Zeyde: two dictionaries", (PictureProblem("digit", 2, "zeyde", 64, 300),)),
        Panel("yang-literal", "Yang, literally: pixels", (PictureProblem("digit", 2, "yang-literal", 64, 300),)),
        Panel("zeyde-literal", "Zeyde, literally: pixels", (PictureProblem("digit", 2, "zeyde-literal", 64, 300),)),
    ),
    PICTURES,
    "digit",
)
