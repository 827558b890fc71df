"""
Strokes of handwriting
======================

Ink adds up: a digit is a sum of strokes, never a difference. With 30 % of the pixels missing, ROAD learns nonnegative
parts of 300 digits and fills in the rest. The data themselves tell the number of parts and the noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, MiniBatchDictionaryLearning

from roadict import ROAD

X = load_digits().data[::6] / 16  # every sixth, to be quick
rng = np.random.default_rng(0)
missing = rng.random(X.shape) < 0.3
gaps = np.where(missing, np.nan, X)


def relative_error(guess, where):
    return np.linalg.norm((guess - X)[where]) / np.linalg.norm(X[where])


# %%
# How many parts, and how much noise? A tenth of the pixels that are left is hidden too, and predicted with several
# numbers of atoms and weights. A small weight fits the noise, a large one too little. ``ROADCV`` automates such a
# choice; with signs it takes minutes on these data.

signs = {"positive_code": True, "positive_dict": True}
common = {"formulation": "lasso", "missing_values": np.nan, "tol": 1e-2, "n_init": 1, "random_state": 0}
hidden = ~missing & (rng.random(X.shape) < 0.1)
errors = {}
for k in (16, 32, 48):
    for alpha in (0.03, 0.1, 0.3):
        model = ROAD(k, alpha=alpha, **signs, **common).fit(np.where(hidden, np.nan, gaps))
        errors[k, alpha] = relative_error(model.codes_ @ model.components_, hidden)
        print(f"{k} atoms, weight {alpha:4}: hidden pixels {errors[k, alpha]:.3f}")
k, alpha = min(errors, key=errors.get)

# %%
# The best pair, with all pixels that are left; and the same without signs, at the weight that was chosen with them.

filled = {}
for name, constraints in {"ROAD without signs": {}, "ROAD with signs": signs}.items():
    model = ROAD(k, alpha=alpha, **constraints, **common).fit(gaps)
    filled[name] = model.codes_ @ model.components_
print(f"{k} atoms, weight {alpha}; {model.error_:.0%} of the observed pixels are left to the noise")
print(f"{(model.codes_ > 0).sum(axis=1).mean():.1f} parts per digit")

# %%
# scikit-learn's estimators need all pixels. They get the mean of each pixel first, and then five times what they made
# of it. NMF, which has no weight, has fewer atoms, so that it does not fit the noise. What counts is the best of these
# results, as judged by the missing pixels themselves. Dictionary learning has not settled by then: more rounds bring
# it nearer, and take longer.

mean = np.where(missing, np.nanmean(gaps, axis=0), X)
coding = {"alpha": alpha, "transform_alpha": alpha, "transform_algorithm": "lasso_cd", "fit_algorithm": "cd"}
coding["transform_max_iter"] = 20_000
peers = {"NMF": [NMF(n, max_iter=2000, tol=1e-2) for n in (8, 16)]}
peers["dictionary learning"] = [MiniBatchDictionaryLearning(k, **coding, **signs, max_iter=10, random_state=0)]
for name, models in peers.items():
    for peer in models:
        guess = mean
        for _ in range(6):
            guess = np.where(missing, peer.fit_transform(guess) @ peer.components_, X)
            before = filled.setdefault(name, guess)
            if relative_error(guess, missing) < relative_error(before, missing):
                filled[name] = guess

for name, guess in {"mean of the pixel": mean, **filled}.items():
    print(f"{name:20} {relative_error(guess, missing):.3f}")

# %%
# The most used parts: many are strokes, and some are whole digits, which is sparser still. Beside them six digits:
# what was left, what ROAD and NMF make of it, and how they were.

figure = plt.figure(figsize=(9, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.25])
most_used = np.argsort(-model.atom_usage_)[:36]
for axes, part in zip(left.subplots(6, 6).flat, model.components_[most_used], strict=False):
    axes.imshow(part.reshape(8, 8), cmap="Greys")
    axes.axis("off")
left.suptitle("parts")
rows = {"missing": gaps, "ROAD": np.where(missing, filled["ROAD with signs"], X), "NMF": filled["NMF"], "original": X}
for line, (name, pictures) in zip(right.subplots(4, 6), rows.items(), strict=True):
    for axes, pixels in zip(line, pictures[10:16], strict=True):
        axes.imshow(pixels.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[], facecolor="#f4c7a1")
    line[0].set_ylabel(name)
right.suptitle("digits")
plt.show()

# %%
# **With your own data**: put one picture, spectrum or histogram in each row of ``X``, mark missing entries by NaN, and
# try other numbers and weights if the best pair lies at an end of those tried. If atoms need no meaning, compare with
# free signs as well: sums cannot cancel, so prediction may lose a little.
