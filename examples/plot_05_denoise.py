"""
Remove noise from a picture
===========================

Patches of a picture are combinations of few atoms, noise is not. A dictionary is learned from the noisy
picture itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera

from roadict.metrics import psnr
from roadict.pictures import denoise

clean = camera()[80:208, 180:308].astype(np.float64)
noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
better = denoise(noisy, 20, n_components=64, max_iter=60, random_state=0)

# %%
# The dictionary is small so that this example runs fast; the default is 256 atoms.

figure, panels = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for axes, (title, picture) in zip(panels, {"noisy": noisy, "denoised": better, "original": clean}.items(), strict=True):
    quality = "" if picture is clean else f", {psnr(picture, clean, peak=255):.1f} dB"
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axes.set_title(title + quality)
    axes.axis("off")
plt.show()

# %%
# **With your own data**: ``denoise(picture)`` takes arrays of 8 or 16 bits or floats, grey or in colour, and
# estimates the noise unless you pass its standard deviation, in the units of the picture. On the
# command line: ``roadict denoise noisy.png -o clean.png --sigma 20``.
