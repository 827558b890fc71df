"""
Recover a planted dictionary
============================

Data are made from 32 hidden atoms, three in each sample. ROAD is given the samples alone and finds the atoms
again.
"""

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.plotting import compare_atoms_figure
from roadict.synthetic import planted

truth = planted(400, 16, 32, sparsity=3, random_state=0)
print("data:", truth.data.shape, " hidden atoms:", truth.dictionary.shape)

# %%
# Learn. The number of atoms is all that ROAD is told: not how many of them a sample uses, nor a weight.

model = ROAD(n_components=32, random_state=0).fit(truth.data)
print(f"{model.stop_reason_} after {model.n_iter_} iterations")
print(f"atoms differ from the hidden ones by {dictionary_error(model.components_, truth.dictionary):.1e}")
print(f"{(model.codes_ != 0).sum(axis=1).mean():.2f} coefficients per sample, data error {model.error_:.1e}")

# %%
# Atoms come back in another order and perhaps with the other sign. The figure matches each hidden atom with
# its learned one and tells their correlation.

figure = compare_atoms_figure(truth.dictionary, model.components_)

# %%
# How the run went: the objective, the two residuals of the ADMM and the data error.

history = model.history_.plot()

# %%
# **With your own data**: put one sample in each row of an array ``X`` and call
# ``ROAD(n_components=K).fit(X)``. Start with twice as many atoms as features. Atoms are in
# ``model.components_`` (one per row), the codes of the fit in ``model.codes_``.
