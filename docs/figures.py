"""Figures of the gallery and of the page "How ROAD works", drawn when the site is built, for light and dark pages."""

import io
import re
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap, same_color, to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.spines import Spine
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.prox import nearest_rank_one, shrink_groups
from roadict.synthetic import planted

# The gallery's pictures, which suit light and dark pages.

LIGHT, DARK, BOTH = "#22272e", "#ced6dd", "#868e96"
"""Ink on light pages, on dark ones, and on thumbnails, which are on both."""
DIM = 0.45
"""Lines of a smaller brightness are lightened on dark pages."""
GREY = 0.3
"""Range of red, green and blue from which on a frame has a colour of its own."""
FIRST_TWO = slice(2)
SHOWN = {
    "plot_01_recover": slice(8),
    "plot_04_missing": FIRST_TWO,
    "plot_05_denoise": FIRST_TWO,
    "plot_06_inpaint": FIRST_TWO,
    "plot_07_upscale": slice(2, 4),
    "plot_08_digits": slice(1),
    "plot_12_stains": slice(1),
    "plot_13_handwriting": FIRST_TWO,
}
"""Panels of the first figure of an example that its thumbnail has; all of them, drawn smaller, unless here."""
SMALL = (4.8, 3.2)
"""Inches of such a small drawing: its letters are large on the thumbnail."""
TITLE = 2.6
"""Points of a title per inch of the panels that a thumbnail has."""


def _get_sg_image_scraper():
    """Let sphinx-gallery find, by this name, how to save figures."""
    return scrape


def scrape(block, block_vars, gallery_conf):
    """Save the figures that a block has made, with pyplot or ``roadict.plotting``, and write them as rst."""
    from matplotlib.figure import Figure

    made = [value for value in block_vars["example_globals"].values() if isinstance(value, Figure)]
    made = [*map(plt.figure, plt.get_fignums()), *(figure for figure in made if not hasattr(figure, "number"))]
    text = ""
    for figure in made:
        if not hasattr(figure, "saved"):
            figure.saved = True
            path = Path(next(block_vars["image_path_iterator"]))
            _thumbnail(figure, path, Path(block_vars["src_file"]).stem)
            for theme in ("light", "dark"):
                target = path.with_stem(f"{path.stem}_{theme}")
                drawn = for_dark_pages(figure) if theme == "dark" else _inked(figure, LIGHT)
                drawn.savefig(target, dpi=110, transparent=True)
                source = target.relative_to(gallery_conf["src_dir"]).as_posix()
                text += f"\n.. image:: /{source}\n   :alt: figure\n   :class: only-{theme}\n\n"
    plt.close("all")
    return text


def _inked(figure, ink):
    """Give texts, grey spines, ticks and black lines this colour, and what is behind them none."""
    for artist in figure.findobj():
        if isinstance(artist, Text) or (isinstance(artist, Line2D) and artist.get_color() in (*INKS, "k", "black")):
            artist.set_color(ink)
        elif isinstance(artist, Spine) and np.ptp(to_rgb(artist.get_edgecolor())) < GREY:
            artist.set_edgecolor(ink)  # a coloured frame means something
    for axes in figure.axes:
        axes.tick_params(colors=ink)
        for line in (*axes.get_xgridlines(), *axes.get_ygridlines()):
            line.set(color=BOTH, alpha=0.25)
        if (legend := axes.get_legend()) is not None:
            legend.get_frame().set_visible(False)
    return figure


def for_dark_pages(figure):
    """Give a figure light ink, lighter lines, and no background."""
    _inked(figure, DARK)
    for line in figure.findobj(Line2D):
        line.set_color(_lighter(line.get_color()))
        line.set_markeredgecolor(_lighter(line.get_markeredgecolor()))
    for spine in figure.findobj(Spine):
        spine.set_edgecolor(_lighter(spine.get_edgecolor()))
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_alpha(0)
    return figure


def _lighter(colour):
    """Mix a dark colour with white."""
    mixed = np.array(to_rgb(colour))
    if same_color(colour, "none") or mixed @ (0.3, 0.6, 0.1) >= DIM:
        return colour
    return to_hex(0.55 * mixed + 0.45)


def _thumbnail(figure, path, example):
    """Save some panels of a figure, or a small drawing of all: the figure itself would be too small to read."""
    _inked(figure, BOTH)
    legends = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    for legend in legends:
        legend.set_visible(False)  # on so few pixels it covers the lines
    if example in SHOWN:
        _save_panels(figure, figure.axes[SHOWN[example]], path)
    else:
        size = figure.get_size_inches()
        figure.set_size_inches(SMALL)
        figure.savefig(path, dpi=160, transparent=True)
        figure.set_size_inches(size)
    for legend in legends:
        legend.set_visible(True)


def _save_panels(figure, panels, path):
    """Save panels alone, with titles that can be read on a thumbnail."""
    hidden = [axes for axes in figure.axes if axes not in panels and axes.get_visible()]
    sizes = {axes.title: axes.title.get_size() for axes in panels}
    for axes in hidden:
        axes.set_visible(False)
    width = _box(figure, panels).width
    for title, size in sizes.items():
        title.set_size(max(size, TITLE * width))
    figure.savefig(path, dpi=160, transparent=True, bbox_inches=_box(figure, panels))
    for title, size in sizes.items():
        title.set_size(size)
    for axes in hidden:
        axes.set_visible(True)


def _box(figure, panels):
    """Place of panels in inches."""
    figure.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in panels]
    return Bbox.union(boxes).padded(6).transformed(figure.dpi_scale_trans.inverted())


# The figures of the page.

INKS = {LIGHT, DARK, BOTH}


def _faded():
    """Blue to orange through transparent, so that zero has the colour of the page."""
    share = np.linspace(-1, 1, 255)[:, None]
    colours = np.where(share > 0, [0.88, 0.42, 0.06], [0.23, 0.49, 0.75])
    return ListedColormap(np.hstack([colours, np.abs(share)]))


WARM, COOL = "#d96a10", "#3a7cbe"
PHONE = 3.6
"""Inches of a figure for phones, whose letters are then as large as those of the text."""
MAP = {"cmap": _faded(), "interpolation": "nearest", "aspect": "auto"}


def draw(folder: Path) -> None:
    """Draw every figure that is missing or older than this file, wide and for phones, as SVG in the ink of the page."""
    folder.mkdir(exist_ok=True)
    for figure in (decomposition, blocks, course):
        for narrow in (False, True):
            target = folder / f"{figure.__name__}{'-narrow' * narrow}.svg"
            if not target.exists() or target.stat().st_mtime < Path(__file__).stat().st_mtime:
                target.write_text(_svg(figure(narrow), target.stem), encoding="utf-8")


def _svg(figure, name):
    made, file = _inked(figure, LIGHT), io.StringIO()
    with plt.rc_context({"svg.hashsalt": name}):
        made.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    plt.close(made)
    drawing = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)
    return drawing.replace(LIGHT, "currentColor")


def _matrix(axes, values, title, limit=None):
    limit = np.abs(values).max() if limit is None else limit
    axes.imshow(values, vmin=-limit, vmax=limit, **MAP)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(LIGHT)


def _small_problem():
    return planted(14, 6, 4, sparsity=1, random_state=5)


def decomposition(narrow=False):
    """Data as a sum of rank-one matrices, one for each atom, most rows of which are zero."""
    truth = _small_problem()
    widths, size = ([2, 0.6, 2, 0.6, 2], (PHONE, 4.6)) if narrow else ([2, 0.6] * 4 + [2], (10, 3.4))
    rows = 2 if narrow else 1
    figure, grid = plt.subplots(rows, len(widths), figsize=size, layout="constrained", width_ratios=widths)
    panels = [axes for axes in grid.flat if axes is not grid.flat[5] or not narrow]  # below the data there is nothing
    limit = np.abs(truth.data).max()
    _matrix(panels[0], truth.data, "data", limit)
    for k in range(4):
        share = np.outer(truth.codes[:, k], truth.dictionary[k])
        _matrix(panels[2 * k + 2], share, f"atom {k + 1}", limit)
    for place, sign in zip(panels[1::2], "=+++", strict=True):
        place.text(0.5, 0.5, sign, fontsize=20, ha="center", va="center")
    for axes in {*grid.flat} - {*panels[::2]}:
        axes.axis("off")
    return figure


def blocks(narrow=False):
    """The two steps on one block: shrink each sample's row, and take the nearest rank-one matrix."""
    truth = _small_problem()
    rng = np.random.default_rng(3)
    rough = np.outer(truth.codes[:, 2], truth.dictionary[2]) + 0.1 * rng.standard_normal(truth.data.shape)
    sparse = shrink_groups(rough, 0.4)
    weights, direction = nearest_rank_one(rough)
    figure, panels = _three(narrow, (8, 3.4))
    limit = np.abs(rough).max()
    _matrix(panels[0], rough, "where the iteration stands", limit)
    _matrix(panels[1], sparse, "A: few samples use the atom", limit)
    _matrix(panels[2], np.outer(weights, direction), "B: all use the same direction", limit)
    for axes in panels[2:] if narrow else panels:
        axes.set_xlabel("features", fontsize=8)
    panels[0].set_ylabel("samples", fontsize=8)
    return figure


@cache
def _run():
    """A run on planted data: its history, and the errors of the atoms along the iterations."""
    truth = planted(250, 16, 32, sparsity=3, random_state=1)
    errors = []

    def watch(snapshot):
        errors.append(dictionary_error(snapshot.dictionary, truth.dictionary))

    return ROAD(32, n_init=1, callback=watch, random_state=1).fit(truth.data).history_, errors


def course(narrow=False):
    """A run: rho falls until the iteration searches, rises until it settles, and the atoms appear."""
    history, errors = _run()
    figure, panels = _three(narrow, (11, 3.3))
    panels[0].semilogy(history["rho"], color=WARM)
    panels[0].set(title="ρ", xlabel="iteration")
    panels[1].semilogy(history["primal"], label="primal", color=WARM)
    panels[1].semilogy(history["dual"], label="dual", color=COOL)
    panels[1].set(title="residuals", xlabel="iteration")
    panels[1].legend(frameon=False)
    panels[2].plot(errors, color=WARM)
    panels[2].set(title="distance from the true atoms", xlabel="iteration", ylim=(0, None))
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _three(narrow, size):
    """Three panels: side by side, or below each other for a phone."""
    return plt.subplots(*((3, 1) if narrow else (1, 3)), figsize=(PHONE, 6.6) if narrow else size, layout="constrained")
