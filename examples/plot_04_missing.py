"""
Half of the entries missing
===========================

Sensors fail, surveys have gaps. ROAD learns from the observed entries, and its codes predict the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

truth = planted(600, 16, 16, sparsity=1, random_state=0)
X = truth.data.copy()
missing = np.random.default_rng(0).random(X.shape) < 0.5
X[missing] = np.nan
print(f"{np.isnan(X).mean():.0%} of the entries are NaN")

# %%
# With ``missing_values=np.nan``, NaN marks an entry that was not observed. Without it, NaN is an error.

model = ROAD(16, missing_values=np.nan, random_state=0).fit(X)
filled = model.codes_ @ model.components_
gap = np.linalg.norm((filled - truth.data)[missing]) / np.linalg.norm(truth.data[missing])
print(f"recovery error {dictionary_error(model.components_, truth.dictionary):.1e}")
print(f"relative error of the unobserved entries: {gap:.2f}")

# %%
# Forty samples: as observed, filled in, and as they were.

figure, panels = plt.subplots(1, 3, figsize=(9, 5), sharey=True, layout="constrained")
limit = np.abs(truth.data[:40]).max()
for axes, (title, picture) in zip(panels, {"observed": X, "filled": filled, "true": truth.data}.items(), strict=True):
    axes.imshow(picture[:40], cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel="feature")
    axes.set_facecolor("#dddddd")
panels[0].set_ylabel("sample")
plt.show()

# %%
# **With your own data**: mark missing entries by NaN. Every sample and every feature needs some observed
# entries. The more is missing, the more samples you need and the fewer atoms a sample may use. On the
# command line: ``roadict learn table.csv -k 16 -o model.npz --missing``, where empty cells count as
# missing.
