"""
Noisy data
==========

An exact fit of noisy data would fit the noise as well. ``epsilon`` bounds the relative error over all samples;
the best value is about the share of the noise, and the default finds it in the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

truth = planted(300, 12, 18, sparsity=2, snr_db=20, random_state=0)
share = np.linalg.norm(truth.noise) / np.linalg.norm(truth.data)
print(f"the noise is {share:.1%} of the data")

# %%
# Learn with the default, which hides some entries and finds the bound that predicts them best, and with several
# given bounds.

default = ROAD(18, random_state=0).fit(truth.data)
print(f"noise level found: {default.epsilon_:.1%}")
bounds = (0.02, 0.05, 0.1, 0.2, 0.4)
models = [ROAD(18, epsilon=bound, random_state=0).fit(truth.data) for bound in bounds]
errors = [dictionary_error(model.components_, truth.dictionary) for model in models]
counts = [(model.codes_ != 0).sum(axis=1).mean() for model in models]

# %%
# The atoms are correct over a wide range. If the bound is too small, the number of coefficients grows: noise is
# coded as well.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(bounds, errors, "o-")
left.set(xlabel="epsilon", ylabel="recovery error", ylim=(0, None))
right.semilogx(bounds, counts, "o-")
right.axhline(2, color="grey", lw=0.8, ls=":")
right.set(xlabel="epsilon", ylabel="coefficients per sample", ylim=(0, None))
for axes in (left, right):
    axes.set_xticks(bounds, [f"{bound:g}" for bound in bounds])
    axes.minorticks_off()
    axes.axvline(share, color="tab:orange", lw=1, label="the noise")
    axes.axvline(default.epsilon_, color="tab:green", lw=1, ls="--", label="found by default")
left.legend()
plt.show()

# %%
# **With your own data**: call ``ROAD(K).fit(X)``; ``model.epsilon_`` is the noise level found, and
# ``model.epsilon_path_.plot()`` shows why. If the noise has a known standard deviation ``sigma``, pass
# ``epsilon=sigma * np.sqrt(X.size) / np.linalg.norm(X)``: it saves about half of the time.
# ``formulation="lasso"`` is an alternative; its weight follows from the noise level, too.
