"""
Fill missing pixels
===================

Half of the pixels are missing, and there is a scratch. Atoms are learned from the remaining pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import chelsea

from roadict.metrics import psnr
from roadict.pictures import inpaint

whole = chelsea()[84:148, 124:188, 1]
mask = np.random.default_rng(0).random(whole.shape) < 0.5
mask[30:33] = True
holes = np.where(mask, 0, whole).astype(np.uint8)
filled = inpaint(holes, mask, n_components=64, max_iter=60, random_state=0)
print(f"{mask.mean():.0%} of the pixels were missing")

# %%
# Observed pixels do not change.

figure, panels = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for axes, (title, picture) in zip(
    panels, {"observed": holes, "filled": filled, "original": whole}.items(), strict=True
):
    quality = f", {psnr(picture, whole, peak=255):.1f} dB" if title == "filled" else ""
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axes.set_title(title + quality)
    axes.axis("off")
plt.show()

# %%
# **With your own data**: the mask is nonzero where a pixel is missing; without a mask, transparent pixels are
# missing. Holes much larger than a patch of 8 × 8 pixels are filled smoothly, not with new content. On the
# command line: ``roadict inpaint holes.png -o whole.png --mask mask.png``.
