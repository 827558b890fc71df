"""Table I: a digit, twice larger."""

from roadict.experiments.methods import PICTURES
from roadict.experiments.plan import Experiment, Panel, PictureProblem

DIGITS = Experiment(
    "digits",
    "A digit, twice larger, from five others",
    "Table I",
    "ROAD's dictionary gives the best digit, by Yang's approach (24.02 dB) and by Zeyde's (26.92 dB).",
    "The paper does not say which five digits it learned from: every trial draws five others. Its MOD by Zeyde's "
    "approach equals bicubic to four decimals, so its codes were zero.",
    (
        Panel("yang", "Yang: one stacked dictionary", (PictureProblem("digit", 2, "yang", 64, 300),)),
        Panel("zeyde", "Zeyde: two dictionaries", (PictureProblem("digit", 2, "zeyde", 64, 300),)),
    ),
    PICTURES,
    "digit",
)
