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
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
SOURCES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml", "docs", "examples", "benchmarks", "src")
PAGES = ("gallery/index.html", "api/estimators.html", "performance.html", "results/README.html", "distributed.html")
PAGES += ("studio.html", "from-scikit-learn.html", "when-not.html", "citing.html")
LOOKS = [(width, dark) for width in (1400, 390) for dark in (False, True)]


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


def test_charts_show_the_numbers_of_their_tables(site):
    row = re.search(r"^\| \(16, 32, 3\) \| 200 \| exact \| SPAMS \|(.*)\|$", RESULTS, flags=re.MULTILINE)[1]
    values = [cell.strip() for cell in row.split("|")[:-1]]
    text = (site / "beside.html").read_text(encoding="utf-8")
    panel = re.findall(r'<svg [^>]*class="plot">.*?</svg>', text)[0]
    drawn = re.findall(r"<title>SPAMS: ([\d.e-]+) \(", panel)
    assert [float(value) for value in drawn] == [float(value) for value in values if value]


def test_bars_show_the_columns_of_their_learners(site):
    row = re.search(r"^\| planted .* \| 100 \| mod \|(.*)\|$", RESULTS, flags=re.MULTILINE)[1].split("|")
    text = (site / "performance.html").read_text(encoding="utf-8")
    [panel] = re.findall(r'<svg [^>]*aria-label="seconds of a fit".*?</svg>', text)
    assert f">{row[0].strip()}  roadict<" in panel
    assert f">{row[3].strip()}  dictlearn<" in panel


def test_a_table_is_folded_where_a_chart_shows_it(site):
    text = (site / "performance.html").read_text(encoding="utf-8")
    parts = re.split(r'(?=<section id=")', text)
    [coders] = [part for part in parts if part.startswith('<section id="coders">')]
    assert coders.index('<figure class="site-chart"') < coders.index("<details") < coders.index("<table")
    assert text.count('<figure class="site-chart"') >= 9


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


def open_everywhere(chromium, page):
    """Open a page from its file in every size and theme; it must fit, complain of nothing and load nothing else."""
    for width, dark in LOOKS:
        chromium.open(page.as_uri(), width=width, height=1000, phone=width < 500, dark=dark)
        assert chromium.console_errors() == [], (width, dark)
        assert [asked for asked in chromium.requests() if not asked.startswith("file:")] == [], (width, dark)
        assert chromium.width_of_content() <= width
        assert chromium.run("return document.documentElement.dataset.theme") == ("dark" if dark else "light")
        yield width, dark


def press(chromium, selector, *keys):
    from selenium.webdriver.common.keys import Keys

    [element] = chromium.find(selector)
    element.send_keys(*(getattr(Keys, key) for key in keys))


def hidden_share(chromium):
    """Percent of the picture "before" that are clipped at its right."""
    clipped = chromium.run("return getComputedStyle(document.querySelector('.compare .before')).clipPath")
    return float(re.match(r"inset\(0px ([\d.]+)%", clipped)[1])


def test_the_slider_of_the_home_page_uncovers_the_picture(chromium, site):
    from selenium.webdriver.common.action_chains import ActionChains

    for _ in open_everywhere(chromium, site / "index.html"):
        assert chromium.run("return [...document.querySelectorAll('.compare img')].every(i => i.naturalWidth == 1000)")
        assert hidden_share(chromium) == 50
        press(chromium, ".compare input", "ARROW_RIGHT")
        assert hidden_share(chromium) == 49
        press(chromium, ".compare input", "END")
        assert hidden_share(chromium) == 0
        [slider] = chromium.find(".compare input")
        ActionChains(chromium.driver).move_to_element_with_offset(
            slider, -slider.rect["width"] // 4, 0
        ).click().perform()
        assert 70 < hidden_share(chromium) < 80


def test_the_slider_of_the_run_finds_the_letters(chromium, site):
    pixels = (
        "const c = document.querySelector('.tile canvas'); return [...c.getContext('2d').getImageData(0, 0, 5, 5).data]"
    )
    for _ in open_everywhere(chromium, site / "how-road-works.html"):
        assert " 0 of 16 found" in chromium.find("#explorable .count")[0].text
        first = chromium.run(pixels)
        press(chromium, "#explorable input", "ARROW_RIGHT")
        assert chromium.find("#explorable .count")[0].text.startswith("iteration 4 ")
        assert chromium.run(pixels) != first
        press(chromium, "#explorable input", "END")
        assert " 16 of 16 found" in chromium.find("#explorable .count")[0].text
        assert len(chromium.find("#explorable .tile.found")) == 16
        assert len(chromium.find("#explorable .term")) == 2  # a sample is a sum of two letters
    orange = [value > 200 for value in chromium.run(pixels)[::4]]
    assert "".join(".#"[pixel] for pixel in orange) == "####.#...#####.#..#.#...#"  # an R


def test_the_run_plays_and_pauses(chromium, site):
    from selenium.webdriver.support.ui import WebDriverWait

    chromium.open((site / "how-road-works.html").as_uri())
    [play], [count] = chromium.find("#explorable .play"), chromium.find("#explorable .count")
    start = count.text
    play.click()
    assert "Pause" in play.text
    WebDriverWait(chromium.driver, 60).until(lambda _: count.text != start)
    play.click()
    assert "Play" in play.text


def test_the_comparison_opens_everywhere(chromium, site):
    for width, _ in open_everywhere(chromium, site / "beside.html"):
        panels = chromium.find(".site-chart .plot")
        assert len(panels) == 3
        assert all(0 < panel.rect["width"] <= width for panel in panels)
        labels = chromium.run("return [...document.querySelectorAll('.site-chart .label')].map(l => l.textContent)")
        assert {*labels} == {"ROAD", "SPORCO", "SPAMS", "scikit-learn", "dictlearn"}


def test_the_contents_of_a_reference_page_fit_and_differ(chromium, site):
    chromium.open((site / "api" / "estimators.html").as_uri(), width=1400, height=1000)
    right = (
        "return [...document.querySelectorAll('.bd-sidebar-secondary code')].map(c => c.getBoundingClientRect().right)"
    )
    assert 1000 < max(chromium.run(right)) <= 1400
    entries = [entry.text for entry in chromium.find(".bd-sidebar-secondary .nav-link")]
    assert entries.count("AlternatingDictionaryLearning") == 1
