"""
How many samples are enough
===========================

With too few samples, many dictionaries explain the data equally well. With more samples, the hidden one becomes
the sparsest. ROAD is compared with K-SVD, which gets the true number of coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np

from roadict import ROAD, AlternatingDictionaryLearning
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

counts = (30, 60, 100, 200)
trials = 2
errors = {"ROAD": np.empty((len(counts), trials)), "K-SVD, sparsity known": np.empty((len(counts), trials))}
for row, count in enumerate(counts):
    for trial in range(trials):
        truth = planted(count, 10, 15, sparsity=2, random_state=trial)
        road = ROAD(15, random_state=trial)
        ksvd = AlternatingDictionaryLearning(15, update="ksvd", n_nonzero_coefs=2, tol=0, random_state=trial)
        for name, model in zip(errors, (road, ksvd), strict=True):
            learned = model.fit(truth.data).components_
            errors[name][row, trial] = dictionary_error(learned, truth.dictionary)

# %%
# Each dot is a trial, the line their mean. Below 0.01 every atom has been recovered.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in errors.items():
    (line,) = axes.plot(counts, values.mean(axis=1), label=name)
    axes.plot(counts, values, "o", color=line.get_color(), alpha=0.4)
axes.axhline(0.01, color="grey", lw=0.8, ls=":")
axes.set(xlabel="samples", ylabel="recovery error", title="15 atoms of 10 features, two in each sample", ylim=(0, None))
axes.legend()
plt.show()

# %%
# **With your own data** there is no truth to compare with. Learn twice, from two halves of the samples or
# from two values of ``random_state``, and compare the atoms with ``dictionary_error(first.components_,
# second.components_)``. If the two agree, there were enough samples.
