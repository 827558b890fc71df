"""The site builds without warnings, its links lead somewhere, and it opens in a browser without a complaint.

The gallery is not run here: ``tests/test_examples.py`` does that.
"""

import http.server
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("sphinx_gallery")
pytest.importorskip("pydata_sphinx_theme")
ROOT = Path(__file__).parents[1]
SOURCES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "benchmarks", "src")
PAGES = ("index.html", "gallery/index.html", "api/estimators.html", "how-road-works.html", "performance.html")
PAGES += ("results/README.html", "distributed.html", "studio.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy, so that the gallery that was run stays as it is."""
    folder = tmp_path_factory.mktemp("site")
    unwanted = shutil.ignore_patterns("_build", "gallery", ".peers", "__pycache__")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=unwanted)
        else:
            shutil.copy(source, folder / name)
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(ROOT / "src")  # where the compiled kernels are
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*command, "docs", "html"], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    command = [sys.executable, str(ROOT / "docs" / "check_site.py"), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", ["how-road-works", "paper-to-code", "scale", "decisions/0004-scale"])
def test_equations_are_mathml(site, page):
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    assert '<div class="equation"><math ' in text
    assert "<mfrac>" in text
    assert "$" not in re.sub(r"<(pre|script)\b.*?</\1>", "", text, flags=re.DOTALL)


def test_every_public_name_is_in_the_reference(site):
    import importlib

    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    for module in ("roadict", "roadict.metrics", "roadict.synthetic", "roadict.pictures", "roadict.plotting"):
        for name in importlib.import_module(module).__all__:
            assert name == "__version__" or f'id="{module}.{name}"' in text, f"{module}.{name}"


@pytest.fixture
def address(site):
    """The site on a port of this machine."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_pages_open_in_a_browser_without_a_complaint(chromium, address):
    for page in PAGES:
        chromium.open(f"{address}/{page}", width=1280, height=1600)
        assert "roadict" in chromium.driver.title
        assert chromium.console_errors() == [], page
        assert [asked for asked in chromium.requests() if not asked.startswith(address)] == [], page
