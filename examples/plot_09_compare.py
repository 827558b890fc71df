"""
Compare learners fairly
=======================

Which dictionary is better? Code held-out samples with the same coder and the same number of coefficients for all
of them, and use random samples as a baseline.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera
from sklearn.feature_extraction.image import extract_patches_2d

from roadict import ROAD, AlternatingDictionaryLearning, SparseCoder

patches = extract_patches_2d(camera() / 255.0, (5, 5), max_patches=1200, random_state=0).reshape(1200, 25)
patches -= patches.mean(axis=1, keepdims=True)
train, test = patches[:600], patches[600:]
atoms, sparsity = 50, 3

# %%
# The same training patches, the same number of atoms. The two-stage methods get the number of coefficients.

two_stage = {"n_nonzero_coefs": sparsity, "max_iter": 30, "random_state": 0}
learners = {
    "ROAD": ROAD(atoms, epsilon=0.15, tol=3e-3, n_init=1, random_state=0),
    "K-SVD": AlternatingDictionaryLearning(atoms, update="approximate-ksvd", tol=0, **two_stage),
    "MOD": AlternatingDictionaryLearning(atoms, update="mod", tol=0, **two_stage),
}
dictionaries = {name: model.fit(train).components_ for name, model in learners.items()}
dictionaries["random samples"] = np.random.default_rng(0).permutation(train)[:atoms]

# %%
# The same coder for all, on new patches.

errors = {}
for name, dictionary in dictionaries.items():
    coder = SparseCoder(dictionary, algorithm="omp", n_nonzero_coefs=sparsity)
    codes = coder.transform(test)
    errors[name] = np.linalg.norm(test - coder.inverse_transform(codes)) / np.linalg.norm(test)
    print(f"{name:15} error on new patches {errors[name]:.3f}")

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.barh(list(errors), list(errors.values()))
axes.invert_yaxis()
axes.set(xlabel=f"relative error of {len(test)} new patches, {sparsity} atoms each")
plt.show()

# %%
# **With your own data**: replace ``patches``, give all learners the same conditions, and repeat with several
# seeds before you call one method better: differences in one draw are mostly chance. ``roadict reproduce`` does
# this for the paper's claims.
