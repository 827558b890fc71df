"""
Is this dictionary real?
========================

Real data come without their noise level and their number of atoms. Here both are known but not used: ROAD finds the
noise, halves of the samples confirm or refute each atom, and the truth is shown in the end.
"""

import numpy as np

from roadict import ROAD, ROADCV, atom_stability
from roadict.metrics import STABLE
from roadict.plotting import atoms_figure, compare_atoms_figure
from roadict.synthetic import planted

truth = planted(300, 10, 14, sparsity=2, snr_db=20, random_state=0)
X = truth.data

# %%
# The defaults: twice as many atoms as features, and the noise level from the data. Some entries are hidden and
# predicted from the others. If ε is too large, the codes have too few atoms to predict them; if it is too small, the
# codes follow the noise. The largest ε that predicts as well as the best one, within one standard error, is chosen.

model = ROAD(random_state=0).fit(X)
path = model.epsilon_path_.plot()

# %%
# It is close to the true share of the noise, usually somewhat below.

share = np.linalg.norm(truth.noise) / np.linalg.norm(X)
print(f"noise level found: {model.epsilon_:.3f}, true: {share:.3f}")

# %%
# Which atoms can be trusted? The model is fitted again, to halves of the samples. Real atoms recur there. Surplus ones
# (red frames) fit what is peculiar to the samples, and do not.

stability = atom_stability(model, X, n_splits=1, random_state=0)
print(f"{(stability >= STABLE).sum()} of {len(stability)} atoms are stable")
figure = atoms_figure(model.components_, stability=stability)

# %%
# Twenty atoms are too many, then. ``ROADCV`` chooses the number by hidden entries as well: too few atoms cannot
# represent the samples, too many adapt to the noise.

chosen = ROADCV([8, 11, 14, 17, 20], n_splits=1, random_state=0).fit(X)
print(f"{chosen.n_components_} atoms chosen, {len(truth.dictionary)} planted")
curve = chosen.plot()

# %%
# Now the truth: the stable atoms are the planted ones.

comparison = compare_atoms_figure(truth.dictionary, model.components_[stability >= STABLE])

# %%
# **With your own data**: put one sample in each row of ``X``, call ``ROAD().fit(X)``, and look at
# ``model.epsilon_path_.plot()``. Interpret stable atoms only. A systematic disturbance recurs as well, so stability is
# no proof of a physical cause; and atoms that few samples use may need more samples to become stable.
