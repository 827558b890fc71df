"""Figures of the page "How ROAD works", drawn by the library itself when the site is built.

``python docs/figures.py`` draws them and images/real-patches.png, from the curves in benchmarks/real.json.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.prox import nearest_rank_one, shrink_groups
from roadict.synthetic import planted

# The gallery's pictures.


def _get_sg_image_scraper():
    """Let sphinx-gallery find, by this name, how to save figures that are not pyplot's."""
    return scrape


def scrape(block, block_vars, gallery_conf):
    """Save the figures that a block of an example has made with ``roadict.plotting``."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and getattr(value, "number", None) is None and not hasattr(value, "saved"):
            value.saved = True
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=100)
    return figure_rst(paths, gallery_conf["src_dir"])


# The figures of the page.

MAP = {"cmap": "RdBu_r", "interpolation": "nearest", "aspect": "auto"}


def draw(folder: Path) -> None:
    """Draw every figure that is not there yet."""
    folder.mkdir(exist_ok=True)
    for name, figure in (("decomposition", decomposition), ("blocks", blocks), ("course", course)):
        target = folder / f"{name}.png"
        if not target.exists():
            made = figure()
            made.savefig(target, dpi=130)
            plt.close(made)


def _matrix(axes, values, title, limit=None):
    limit = np.abs(values).max() if limit is None else limit
    axes.imshow(values, vmin=-limit, vmax=limit, **MAP)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[])


def _small_problem():
    return planted(14, 6, 4, sparsity=1, random_state=5)


def decomposition():
    """Data as a sum of rank-one matrices, one for each atom, most rows of which are zero."""
    truth = _small_problem()
    widths = [2, 0.6, 2, 0.6, 2, 0.6, 2, 0.6, 2]
    figure, panels = plt.subplots(1, 9, figsize=(10, 3.4), layout="constrained", width_ratios=widths)
    limit = np.abs(truth.data).max()
    _matrix(panels[0], truth.data, "data", limit)
    for k in range(4):
        share = np.outer(truth.codes[:, k], truth.dictionary[k])
        _matrix(panels[2 * k + 2], share, f"atom {k + 1}", limit)
    for place, sign in zip(panels[1::2], "=+++", strict=True):
        place.text(0.5, 0.5, sign, fontsize=20, ha="center", va="center")
        place.axis("off")
    return figure


def blocks():
    """The two steps on one block: shrink each sample's row, and take the nearest rank-one matrix."""
    truth = _small_problem()
    rng = np.random.default_rng(3)
    rough = np.outer(truth.codes[:, 2], truth.dictionary[2]) + 0.1 * rng.standard_normal(truth.data.shape)
    sparse = shrink_groups(rough, 0.4)
    weights, direction = nearest_rank_one(rough)
    figure, panels = plt.subplots(1, 3, figsize=(8, 3.4), layout="constrained")
    limit = np.abs(rough).max()
    _matrix(panels[0], rough, "where the iteration stands", limit)
    _matrix(panels[1], sparse, "A: few samples use the atom", limit)
    _matrix(panels[2], np.outer(weights, direction), "B: all use the same direction", limit)
    for axes in panels:
        axes.set_xlabel("features", fontsize=8)
    panels[0].set_ylabel("samples", fontsize=8)
    return figure


def course():
    """A run: rho falls until the iteration searches, rises until it settles, and the atoms appear."""
    truth = planted(250, 16, 32, sparsity=3, random_state=1)
    errors = []

    def watch(snapshot):
        errors.append(dictionary_error(snapshot.dictionary, truth.dictionary))

    history = ROAD(32, n_init=1, callback=watch, random_state=1).fit(truth.data).history_
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    panels[0].semilogy(history["rho"], color="tab:orange")
    panels[0].set(title="ρ", xlabel="iteration")
    panels[1].semilogy(history["primal"], label="primal")
    panels[1].semilogy(history["dual"], label="dual")
    panels[1].set(title="residuals", xlabel="iteration")
    panels[1].legend(frameon=False)
    panels[2].plot(errors, color="tab:green")
    panels[2].set(title="distance from the true atoms", xlabel="iteration", ylim=(0, None))
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


# The figure of the page "Performance".

FOLDER = Path(__file__).parent
LEARNERS = {"roadict": "tab:orange", "SPAMS": "tab:blue", "scikit-learn": "tab:green"}
HIGHEST = 1.12
"""Top of a panel, relative to the smallest objective in it: the first atoms of some learners are far above."""
LABEL_GAP = 0.08
"""Smallest distance of two labels, relative to the height of a panel."""


def real_patches():
    """Objective on unseen patches over seconds: a row per dictionary, a column per number of patches."""
    cases = json.loads((FOLDER.parent / "benchmarks" / "real.json").read_text(encoding="utf-8"))
    rows = sorted({(case["n_atoms"], case["alpha"]) for case in cases})
    columns = sorted({case["n_samples"] for case in cases})
    shape = len(rows), len(columns)
    size = 3.9 * len(columns), 2.9 * len(rows)
    figure, panels = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for axes in panels.flat:
        axes.set_visible(False)
    for case in cases:
        row, column = rows.index((case["n_atoms"], case["alpha"])), columns.index(case["n_samples"])
        _over_time(panels[row, column], case)
    trials = sorted({case["trials"] for case in cases})
    seeds = " or ".join("one seed" if trial == 1 else f"medians of {trial} seeds" for trial in trials)
    figure.supylabel(f"objective on unseen patches ({seeds})", fontsize=10)
    return figure


def _over_time(axes, case):
    """Draw one line per learner, labelled at its end, and a dot where ROAD's fit ended by itself."""
    axes.set_visible(True)
    seconds, ends = case["seconds"], {}
    for name, values in case["objective"].items():
        if values[-1] is not None:  # else it had no atoms yet
            axes.plot(seconds, np.array(values, float), color=LEARNERS[name])
            ends[name] = values[-1]
    if case["end"] is not None and case["end"] <= seconds[-1]:
        axes.plot(case["end"], ends["roadict"], "o", color=LEARNERS["roadict"])
    lowest = min(ends.values())
    heights = (lowest * 0.99, min(max(lowest * 1.02, axes.get_ylim()[1]), lowest * HIGHEST))
    title = f"{case['n_atoms']} atoms, α = {case['alpha']}, {case['n_samples']:,} patches"
    axes.set(xscale="log", ylim=heights, xlim=(seconds[0], seconds[-1]))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("seconds", fontsize=9)
    axes.set_xticks(seconds, labels=[f"{second:g}" for second in seconds])
    axes.minorticks_off()
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    place = 0.0
    for name, value in sorted(ends.items(), key=lambda item: item[1]):
        place = max(place, min(1.0, (value - heights[0]) / (heights[1] - heights[0])))
        position = {"xy": (1.02, place), "xycoords": "axes fraction", "va": "center", "fontsize": 9}
        axes.annotate(name, color=LEARNERS[name], **position)
        place += LABEL_GAP


if __name__ == "__main__":
    draw(FOLDER / "_figures")
    real_patches().savefig(FOLDER / "images" / "real-patches.png", dpi=110)
