"""
Stains of tissue
================

The optical density of a pixel is a sum over stains, amount times colour, and neither is ever negative: a dictionary of
two atoms. The picture shows nuclei of cells in blue (hematoxylin) and a protein in brown (DAB).
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.color import hed2rgb, rgb2hed, rgb_from_hed
from skimage.data import immunohistochemistry
from sklearn.decomposition import NMF, DictionaryLearning

from roadict import ROAD, SparseCoder

picture = immunohistochemistry()  # comes with scikit-image
density = -np.log10((picture.reshape(-1, 3) + 1.0) / 256)
stained = density[np.linalg.norm(density, axis=1) > 0.15]  # the background says nothing about the stains
X = stained[np.random.default_rng(0).choice(len(stained), 2000, replace=False)]

# %%
# One pixel is a sample, and red, green and blue are its features. Three are too few to find the noise by hiding some
# of them, so a Lasso weight is given. It pulls the atoms into the cloud of pixels, the more the larger it is, and
# should be small compared with the densities.

signs = {"positive_code": True, "positive_dict": True}
lasso = {"formulation": "lasso", "alpha": 0.01}
model = ROAD(2, **lasso, **signs, random_state=0).fit(X)
print(f"root-mean-square density of a pixel {np.sqrt((X**2).sum(axis=1).mean()):.2f}")
print(model.components_.round(2))

# %%
# scikit-learn's ``DictionaryLearning`` minimises the same objective. ``NMF`` has signs but no weight, which leaves the
# vectors room: the result depends on the start.

alternating = DictionaryLearning(2, alpha=0.01, fit_algorithm="cd", **signs, random_state=0).fit(X)
found = {"ROAD": model.components_, "DictionaryLearning": alternating.components_}
found |= {
    f"NMF, start {seed}": NMF(2, init="random", max_iter=5000, random_state=seed).fit(X).components_
    for seed in range(3)
}

# %%
# If one stain is known, only the other has to be learned. Here hematoxylin is that of Ruifrok and Johnston, measured
# on other slides, which scikit-image uses too.

standard = rgb_from_hed[[0, 2]] / np.linalg.norm(rgb_from_hed[[0, 2]], axis=1, keepdims=True)
with_known = ROAD(2, **lasso, **signs, fixed_atoms=standard[:1], random_state=0).fit(X)
found |= {"ROAD, one known": with_known.components_, "Ruifrok, Johnston": standard}

# %%
# Angles between the vectors found and the standard ones, and the error that is left when the pixels are made of them.

for name, vectors in found.items():
    atoms = vectors[np.argsort(-vectors[:, 0] / vectors.sum(axis=1))]  # hematoxylin absorbs more red
    atoms = found[name] = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
    blue, brown = np.degrees(np.arccos(np.minimum((atoms * standard).sum(axis=1), 1)))
    amounts = SparseCoder(atoms, algorithm="lasso", alpha=0.01, positive_code=True).transform(X)
    error = np.linalg.norm(X - amounts @ atoms) / np.linalg.norm(X)
    print(f"{name:20} hematoxylin {blue:4.1f}°  DAB {brown:4.1f}°  error {error:.3f}")

# %%
# ROAD and ``DictionaryLearning`` agree, and their DAB is nearest to the standard. The hematoxylin of NMF is nearer
# than theirs, from every start: no weight pulls it into the cloud. Its DAB depends on the start, and lies outside the
# cloud. Nor is the standard the truth of this slide: its vectors leave the largest error.
#
# The stains apart: each amount times its vector, as a colour. scikit-image's ``rgb2hed`` inverts a matrix of three
# standard vectors and clips at 0; the third is eosin, which this slide does not have.

amounts = model.sparse_coder().transform(density)
order = np.argsort(-model.components_[:, 0])
alone = [np.clip(256 * 10 ** -np.outer(amounts[:, k], model.components_[k]) - 1, 0, 255) / 255 for k in order]
hed = rgb2hed(picture)
theirs = [hed2rgb(hed * (np.arange(3) == k)) for k in (0, 2)]

figure, panels = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
titles = ("tissue", "hematoxylin, ROAD", "DAB, ROAD", "hematoxylin, rgb2hed", "DAB, rgb2hed")
places = (panels[0, 0], panels[0, 1], panels[0, 2], panels[1, 1], panels[1, 2])
for axes, title, shown in zip(places, titles, (picture, *alone, *theirs), strict=True):
    axes.imshow(shown.reshape(picture.shape)[:256, :256])
    axes.set_title(title)
    axes.axis("off")

axes = panels[1, 0]
share = X / X.sum(axis=1, keepdims=True)
axes.scatter(share[:, 0], share[:, 2], s=3, color="#bbbbbb", label="pixels")
shown = {"ROAD": ("o", "tab:blue"), "DictionaryLearning": ("x", "tab:orange"), "Ruifrok, Johnston": ("s", "black")}
shown |= {name: ("^", "tab:green") for name in found if name.startswith("NMF")}
for name, (marker, colour) in shown.items():
    vectors = found[name] / found[name].sum(axis=1, keepdims=True)
    label = None if name in ("NMF, start 1", "NMF, start 2") else name.removesuffix(", start 0")
    axes.plot(vectors[:, 0], vectors[:, 2], marker, color=colour, label=label, markersize=6)
axes.set(title="the vectors", xlabel="share of red", ylabel="share of blue", xlim=(-0.03, 0.6), ylim=(0, 0.8))
axes.legend(fontsize=7, loc="lower left")
plt.show()

# %%
# **With your own data**: replace ``picture`` by an RGB picture of a stained slide, and 256 by the grey value of an
# empty spot. For three stains set ``n_components`` to 3; more than there are channels cannot be separated by their
# colour alone. Atoms that you know, such as spectra of pure substances, go into ``fixed_atoms``. More than eight
# channels let ``ROAD`` find the noise itself: omit ``formulation`` and ``alpha``.
