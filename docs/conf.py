"""How Sphinx builds the site: ``make docs``."""

import os
import sys
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "src")]
os.environ["MPLBACKEND"] = "Agg"

import figures  # noqa: E402

import roadict  # noqa: E402

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
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
suppress_warnings = ["config.cache"]  # the gallery's order is a class, which cannot be cached
nitpicky = True
nitpick_ignore = [("py:exc", "ModelFileError")]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

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
    "image_scrapers": ("matplotlib", "figures"),
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
html_static_path = ["_static"]
html_css_files = ["site.css"]
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
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
# The bar on the left lists the pages of a section; these have none.
_ALONE = ("index", "start", "which-method", "how-road-works", "questions", "paper-to-code", "performance")
html_sidebars = {page: [] for page in (*_ALONE, "contributing", "changelog", "studio")}

figures.draw(FOLDER / "_figures")


def _commands():
    """What ``--help`` prints, of every command."""
    from typer.testing import CliRunner

    from roadict.cli.app import app

    names = [info.name or info.callback.__name__ for info in app.registered_commands]
    pages = {name: CliRunner().invoke(app, [name, "--help"], prog_name="roadict").output for name in sorted(names)}
    return "\n".join(f"## {name}\n\n```text\n{text}```\n" for name, text in pages.items())


def _fill_in(app, docname, source):
    """Put the help of the commands on their page."""
    if docname == "api/commands":
        source[0] = source[0].replace("<!-- commands -->", _commands())


def setup(app):
    app.connect("source-read", _fill_in)
