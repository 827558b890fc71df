"""
Enlarge a picture
=================

Detail that a small picture lacks is predicted from dictionaries learned on other pictures.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import brick, camera, coins
from skimage.transform import resize

from roadict.metrics import psnr
from roadict.pictures import Recipe, SuperResolution

large = camera()[100:228, 170:298] / 255
small = resize(large, (64, 64), order=3, anti_aliasing=True)
bicubic = np.clip(resize(small, large.shape, order=3), 0, 1)

# %%
# Learn from two other pictures, in a few seconds, then enlarge.

model = SuperResolution(2, n_components=64, max_iter=40, recipe=Recipe(max_samples=2000), random_state=0)
model.fit([coins(), brick()[:256, :256]])
learned = model.predict(small)

# %%
figure, panels = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
shown = {"small": small, "bicubic": bicubic, "roadict": learned, "original": large}
for axes, (title, picture) in zip(panels, shown.items(), strict=True):
    quality = f", {psnr(picture, large):.1f} dB" if title in ("bicubic", "roadict") else ""
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title + quality)
    axes.axis("off")
plt.show()

# %%
# **With your own data**: ``roadict.pictures.upscale(picture, scale=3)`` uses a larger model, which the first
# call trains in some 20 seconds and keeps. Pictures like your own make better teachers: pass them to ``fit``.
# On the command line: ``roadict upscale photo.png -o big.png --scale 3 --train folder``.
