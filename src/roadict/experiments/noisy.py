"""Fig. 3: recovery from noisy samples."""

from roadict.experiments.methods import SYNTHETIC
from roadict.experiments.plan import Experiment, Panel, samples

NOISY = Experiment(
    "noisy",
    "Recovery with noise",
    "Fig. 3",
    "With noise of 30 and of 20 dB ROAD's error is below that of the other methods: it is more robust to noise.",
    "(16, 32, 3). ROAD knows the norm of the noise, the two-stage methods the number of coefficients.",
    (
        Panel("30-db", "SNR 30 dB", samples((100, 200, 300, 400), 16, 32, sparsity=3, snr_db=30.0)),
        Panel("20-db", "SNR 20 dB", samples((100, 200, 300, 400), 16, 32, sparsity=3, snr_db=20.0)),
    ),
    SYNTHETIC,
)
