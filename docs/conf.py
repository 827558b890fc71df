"""How Sphinx builds the site: ``make docs``."""

import os
import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx_gallery.sorting import FileNameSortKey

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "src")]
os.environ["MPLBACKEND"] = "Agg"
WIDE = 600
"""Pixels of a picture from which on phones scroll it."""

import charts  # noqa: E402
import figures  # noqa: E402
import from_results  # noqa: E402

import roadict  # noqa: E402
from roadict.drawing.charts import CSS_FILE  # noqa: E402

project = "roadict"
author = "The roadict developers"
project_copyright = "the roadict developers"
version = release = roadict.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "charts",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
suppress_warnings = ["config.cache"]  # the gallery's order is a class, which cannot be cached
nitpicky = True
nitpick_ignore = [("py:exc", "ModelFileError")]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"  # else every entry of a class begins with its long name, and is cut after it
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_use_param = False  # types such as "array of shape (n_samples, n_features)" are words, not links
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

sphinx_gallery_conf = {
    "examples_dirs": str(FOLDER.parent / "examples"),
    "gallery_dirs": "gallery",
    "within_subsection_order": FileNameSortKey,
    "filename_pattern": "plot_",
    "image_scrapers": ("figures",),
    "thumbnail_size": (480, 320),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "reference_url": {"roadict": None},
}

html_theme = "pydata_sphinx_theme"
html_title = "roadict"
html_math_renderer = "mathml"
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static", str(CSS_FILE)]
html_css_files = ["charts.css", "site.css"]
html_js_files = ["tables.js", "from-files.js"]
html_extra_path = [from_results.REPORT] * (FOLDER / from_results.REPORT).is_file()
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "roadict"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "results": []},
}
# The repository, once pyproject.toml names it.
_URLS = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
_REPOSITORY = next((_URLS[key] for key in ("Repository", "Source", "Homepage") if key in _URLS), None)
if _REPOSITORY:
    html_theme_options["icon_links"] = [{"name": "Repository", "url": _REPOSITORY, "icon": "fa-solid fa-code-branch"}]
# The bar on the left lists the pages of a section; these have none.
_ALONE = ("index", "start", "which-method", "how-road-works", "questions", "paper-to-code", "performance", "beside")
_ALONE += ("is-it-real", "from-scikit-learn", "when-not", "citing", "contributing", "changelog", "studio")
html_sidebars = {page: [] for page in _ALONE}

figures.draw(FOLDER / "_figures")


def _commands():
    """What ``--help`` prints, of every command."""
    from typer.testing import CliRunner

    from roadict.cli.app import app

    names = [info.name or info.callback.__name__ for info in app.registered_commands]
    pages = {name: CliRunner().invoke(app, [name, "--help"], prog_name="roadict").output for name in sorted(names)}
    return "\n".join(f"## {name}\n\n```text\n{text}```\n" for name, text in pages.items())


def _drawn(match):
    """A figure of figures.py inside the page, whose ink it takes, wide and for phones."""
    svgs = ""
    for kind, suffix in (("wide", ""), ("narrow", "-narrow")):
        drawing = (FOLDER / "_figures" / f"{match[1]}{suffix}.svg").read_text(encoding="utf-8")
        named = f'<svg class="{kind}" role="img" aria-label="{match[2]}" '
        svgs += drawing[drawing.index("<svg") :].replace("<svg ", named, 1)
    return f'```{{raw}} html\n<figure class="drawing">{svgs}<figcaption>{match[3]}</figcaption></figure>\n```\n'


def _scrolled(app, doctree):
    """Put wide pictures into a container that scrolls on phones, where they could not be read."""
    for image in list(doctree.findall(nodes.image)):
        file = Path(app.srcdir) / image["uri"]
        if not file.is_file() or file.suffix not in (".png", ".webp"):
            continue
        with Image.open(file) as picture:
            if picture.width < WIDE:
                continue
        parent = image.parent
        whole = parent if isinstance(parent, nodes.paragraph) and len(parent) == 1 else image
        box = nodes.container(classes=["wide-picture"])
        whole.replace_self(box)
        box.append(image)


def _both_themes(docname):
    """Show NAME-dark.png on dark pages instead of NAME.png; one without it is inverted there (site.css)."""
    folder = (FOLDER / docname).parent

    def shown(match):
        alt, name = match.groups()
        if not (folder / f"{name}-dark.png").is_file():
            return match[0]
        themes = {"light": name, "dark": f"{name}-dark"}
        return "\n".join(
            f"```{{image}} {file}.png\n:alt: {alt}\n:class: only-{theme}\n```\n" for theme, file in themes.items()
        )

    return shown


def _fill_in(app, docname, source):
    """Put in what is made when the site is built, or by ``benchmarks/paper.py``: help, charts, drawings, pictures."""
    text = source[0]
    if docname == "api/commands":
        text = text.replace("<!-- commands -->", _commands())
    if docname == "performance":
        text = text.replace("<!-- measured -->", charts.measured())
    if docname == "citing":
        text = text.replace("<!-- version -->", release)
    if docname == "index":
        link = f"[Repository]({_REPOSITORY}) · " if _REPOSITORY else ""
        text = text.replace("<!-- repository -->", link)
        text = from_results.home(text, (FOLDER.parent / "README.md").read_text(encoding="utf-8"))
    if docname == "results":
        text = from_results.results(text, report=bool(html_extra_path))
    text = re.sub(r"^!\[(.+)\]\((\S+)\.png\)$", _both_themes(docname), text, flags=re.MULTILINE)
    source[0] = re.sub(r"^```\{drawing\} (\w+)\n:alt: (.+)\n\n(.+)\n```\n", _drawn, text, flags=re.MULTILINE)


def setup(app):
    app.connect("source-read", _fill_in)
    app.connect("doctree-read", _scrolled)
