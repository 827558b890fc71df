"""
Recover a planted dictionary
============================

Each sample combines three of 32 hidden atoms. ROAD gets only the samples and recovers the atoms.
"""

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.plotting import compare_atoms_figure
from roadict.synthetic import planted

truth = planted(400, 16, 32, sparsity=3, random_state=0)
print("data:", truth.data.shape, " hidden atoms:", truth.dictionary.shape)

# %%
# Learn. ROAD gets the number of atoms, but neither the number of coefficients per sample nor a weight.

model = ROAD(n_components=32, random_state=0).fit(truth.data)
print(f"{model.stop_reason_} after {model.n_iter_} iterations")
print(f"atoms differ from the hidden ones by {dictionary_error(model.components_, truth.dictionary):.1e}")
print(f"{(model.codes_ != 0).sum(axis=1).mean():.2f} coefficients per sample, data error {model.error_:.1e}")

# %%
# Learned atoms may differ in order and sign. The figure pairs each hidden atom with its learned one and shows
# their correlation.

figure = compare_atoms_figure(truth.dictionary, model.components_)

# %%
# The course of the run: objective, the two residuals of the ADMM and data error. The marked points are the
# returned fit.

history = model.history_.plot()

# %%
# **With your own data**: put one sample in each row of an array ``X`` and call
# ``ROAD(n_components=K).fit(X)``. Start with twice as many atoms as features. Atoms are in
# ``model.components_`` (one per row), the codes of the fit in ``model.codes_``.
