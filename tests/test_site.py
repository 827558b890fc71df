"""The site builds without warnings, its links lead somewhere, and it opens in a browser without a complaint.

The gallery is not run here: ``tests/test_examples.py`` does that.
"""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("sphinx_gallery")
pytest.importorskip("pydata_sphinx_theme")
ROOT = Path(__file__).parents[1]
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
SOURCES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml", "docs", "examples", "benchmarks", "src")
PAGES = ("gallery/index.html", "api/estimators.html", "performance.html", "distributed.html", "studio.html")
PAGES += ("from-scikit-learn.html", "when-not.html", "citing.html", "start.html", "which-method.html", "changelog.html")
LOOKS = [(width, dark) for width in (1400, 390) for dark in (False, True)]


REPORT = '<!DOCTYPE html><html lang="en"><title>Report</title><p id="top">Of the claims ...</p></html>'


def publish(folder):
    """Let a copy of the repository have a report and a figure of success, as ``benchmarks/paper.py`` writes them."""
    results = folder / "docs" / "results"
    if not (results / "report.html").is_file():
        (results / "report.html").write_text(REPORT, encoding="utf-8")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for theme in ("", "-dark"):
        if not (results / f"success{theme}.png").is_file():
            shutil.copy(results / "zebra.png", results / f"success{theme}.png")
    if "docs/results/success.png" not in readme:
        mark = "<!-- success: python benchmarks/paper.py DIR -->\n"
        shown = "![Shares](docs/results/success.png)\n\n*A caption, [with more](docs/results/README.md).*\n"
        (folder / "README.md").write_text(readme.replace(mark, mark + shown), encoding="utf-8")


def test_pages_without_what_is_not_published_yet(monkeypatch):
    """They keep what stands there, and show it no more once it is published."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    from_results = importlib.import_module("from_results")
    home, results = ((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("index", "results"))
    empty = "<!-- success: python benchmarks/paper.py DIR -->\n<!-- /success -->\n"
    assert from_results.home(home, empty) == home
    assert from_results.results(results, report=False) == results
    assert "{chart} atoms-over-time" in home
    assert "images/report-light.webp" in results
    filled = empty.replace("\n", "\n![Shares](docs/results/success.png)\n", 1)
    shown = from_results.home(home, filled)
    assert "<!-- success -->\n![Shares](results/success.png)\n<!-- /success -->" in shown
    assert "{chart} atoms-over-time" not in shown
    framed = from_results.results(results, report=True)
    assert '<iframe class="report" src="report.html"' in framed
    assert "images/report-light.webp" not in framed


def test_the_report_is_the_page_of_the_results(site):
    text = (site / "results.html").read_text(encoding="utf-8")
    assert '<iframe class="report" src="report.html"' in text
    assert '<a href="report.html">Open it alone</a>' in text
    published = (site.parent / "docs" / "results" / "report.html").read_bytes()
    assert (site / "report.html").read_bytes() == published


def test_the_home_page_has_the_figure_of_success_of_the_readme(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    for theme, name in (("light", "success"), ("dark", "success-dark")):
        [classes] = re.findall(rf'<img [^>]*class="([^"]*)"[^>]*src="_images/{name}.png"', text)
        assert f"only-{theme}" in classes.split()
    assert "results/README.html" in text
    assert "Atoms found over time" not in text  # the chart that stood there before


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy, where the repository has an address, and one figure a twin for dark pages."""
    folder = tmp_path_factory.mktemp("site")
    unwanted = shutil.ignore_patterns("_build", "gallery", ".peers", "__pycache__")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=unwanted)
        else:
            shutil.copy(source, folder / name)
    publish(folder)
    pictures = folder / "docs" / "results"
    shutil.copy(pictures / "zebra.png", pictures / "zebra-dark.png")
    (pictures / "noisy-dark.png").unlink(missing_ok=True)
    project = (folder / "pyproject.toml").read_text(encoding="utf-8")
    if "urls" not in tomllib.loads(project)["project"]:
        project += '\n[project.urls]\nRepository = "https://code.invalid/roadict"\n'
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")
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


@pytest.mark.parametrize(
    "page", ["how-road-works", "paper-to-code", "scale", "decisions/0004-scale", "from-scikit-learn"]
)
def test_equations_are_mathml(site, page):
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    assert '<div class="equation"><math ' in text
    assert "<mfrac>" in text
    assert "$" not in re.sub(r"<(pre|script)\b.*?</\1>", "", text, flags=re.DOTALL)


def test_every_public_name_is_in_the_reference(site):
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
    assert text.count('<figure class="site-chart"') >= 14


def test_dots_stand_where_their_values_are(site):
    section = RESULTS.split("\n## Digits and a flower")[1].split("\n## ")[0]
    found = re.findall(r"^\| digits \|(.*)\|$", section, flags=re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in found]
    text = (site / "performance.html").read_text(encoding="utf-8")
    [panel] = re.findall(r'<svg [^>]*aria-label="digits, objective over .*?</svg>', text)
    for _, _, _, _, ratio, seconds, *_ in cells:
        assert f">{ratio}, {seconds} s of CPU<" in panel
    values = [float(row[4]) for row in cells]
    at = [float(x) for x in re.findall(r'<circle class="dot" cx="([\d.]+)"', panel)]
    assert len(at) == len(values) == 4
    slope, offset = np.polyfit(values, at, 1)
    assert slope > 0
    np.testing.assert_allclose(np.array(values) * slope + offset, at, atol=0.01)


def test_the_home_page_links_the_repository(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    project = tomllib.loads((site.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    links = re.findall(
        f'<a [^>]*href="{re.escape(project["urls"]["Repository"])}"[^>]*>(.*?)</a>', text, flags=re.DOTALL
    )
    assert "Repository" in links
    assert any("fa-code-branch" in link for link in links)  # above every page


def test_the_home_page_has_the_table_of_the_readme(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [row] = re.findall(r"^\| SPORCO \| ([\d.]+) \| ([\d.]+) \|", readme, flags=re.MULTILINE)
    [cells] = re.findall(r"<td><p>SPORCO</p></td>(.*?)</tr>", text, flags=re.DOTALL)
    assert [*row] == re.findall(r"<p>([\d.]+)</p>", cells)


def test_pictures_of_pages_are_in_the_repository():
    images = ROOT / "docs" / "images"
    for name in ("home-light.webp", "home-dark.webp", "studio.webp", "report-light.webp", "report-dark.webp"):
        with Image.open(images / name) as picture:
            assert picture.width >= 1000
    with Image.open(images / "road.webp") as animation:
        assert animation.n_frames > 10
    assert (images / "road.webp").stat().st_size < 2_000_000


SUMMARY = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
WIDE_PICTURES = {"results/README": re.findall(r"^!\[.*\.png\)$", SUMMARY, flags=re.MULTILINE)}
WIDE_PICTURES |= {page: [page] for page in ("is-it-real", "studio")}


def open_everywhere(chromium, page):
    """Open a page from its file in every size and theme; it must fit, complain of nothing and load nothing else."""
    for width, dark in LOOKS:
        chromium.open(page.as_uri(), width=width, height=1000, phone=width < 500, dark=dark)
        assert chromium.console_errors() == [], (width, dark)
        assert [asked for asked in chromium.requests() if not asked.startswith("file:")] == [], (width, dark)
        assert chromium.width_of_content() <= width
        inside = "const a = document.querySelector('.bd-article-container'); return [a.scrollWidth, a.clientWidth]"
        needed, there = chromium.run(inside)  # the theme would scroll the text sideways
        assert needed <= there, (width, dark)
        assert chromium.run("return document.documentElement.dataset.theme") == ("dark" if dark else "light")
        yield width, dark


@pytest.mark.parametrize("page", PAGES)
def test_pages_open_everywhere(chromium, site, page):
    for _ in open_everywhere(chromium, site / page):
        assert "roadict" in chromium.driver.title


@pytest.mark.parametrize(
    ("page", "kind"), [("which-method", ".pst-scrollable-table-container"), ("index", ".wide-picture")]
)
def test_what_is_wide_is_scrolled_in_its_box_and_fades_where_it_goes_on(chromium, site, page, kind):
    """A phone hides the last column of a table, and the names of the lines of a figure: nothing else would tell."""
    box = f"const box = [...document.querySelectorAll('.bd-article {kind}')].find(box => box.clientWidth);"
    shown = f"""{box} const style = getComputedStyle(box);
        const sides = ['before', 'after'].filter(side => box.classList.contains('more-' + side));
        const faded = ['before', 'after'].filter(side => parseFloat(style.getPropertyValue('--' + side)) > 0);
        return [box.scrollWidth > box.clientWidth, sides.join(), faded.join(), style.maskImage !== 'none']"""
    for width, _ in open_everywhere(chromium, site / f"{page}.html"):
        phone = width < 500
        until_shown(chromium, shown, [phone, *["after" if phone else ""] * 2, phone])
        if phone:
            chromium.run(f"{box} box.scrollLeft = 9999")
            until_shown(chromium, shown, [True, "before", "before", True])


def until_shown(chromium, script, expected):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(chromium.driver, 30).until(lambda _: chromium.run(script) == expected, chromium.run(script))


def test_figures_suit_the_theme(chromium, site):
    """A figure for dark pages replaces the light one; one without it is inverted, a screenshot on a white card."""
    shown = """return [...document.querySelectorAll('.bd-article img')].filter(i => i.offsetParent).map(i => {
        const style = getComputedStyle(i);
        return [i.src.split('/').pop(), style.backgroundColor, style.filter]; })"""
    white, clear = "rgb(255, 255, 255)", ["rgba(0, 0, 0, 0)", "none"]
    turned = [white, "invert(0.92) hue-rotate(180deg)"]
    for _, dark in open_everywhere(chromium, site / "results" / "README.html"):
        figures = {name: style for name, *style in chromium.run(shown)}
        assert ("zebra-dark.png" in figures, "zebra.png" in figures) == (dark, not dark)
        assert figures["zebra-dark.png" if dark else "zebra.png"] == clear
        assert figures["noisy.png"] == (turned if dark else clear)
    for _, dark in open_everywhere(chromium, site / "studio.html"):
        figures = {name: style for name, *style in chromium.run(shown)}
        assert figures["studio.webp"] == ([white, "none"] if dark else clear)


def test_the_search_works_from_files(chromium, site):
    chromium.open(f"{(site / 'search.html').as_uri()}?q=inpaint")
    ended = "return document.querySelector('#search-results').textContent.includes('Search finished')"
    until_shown(chromium, ended, True)
    found = {link.get_attribute("href").rpartition("/")[2] for link in chromium.find("#search-results li a")}
    assert "pictures.html#roadict.pictures.inpaint" in found
    assert chromium.console_errors() == []


def test_frames_that_mean_something_keep_their_colour(monkeypatch):
    """Red frames of atoms that are not stable stay red, whatever the page; all others have its ink."""
    from matplotlib.colors import to_rgba

    from roadict.plotting import atoms_figure

    monkeypatch.syspath_prepend(ROOT / "docs")
    figures = importlib.import_module("figures")
    figure = atoms_figure(np.eye(3), stability=np.array([1.0, 0.99, 0.2]))
    for draw, ink in (
        (lambda f: figures._inked(f, figures.LIGHT), figures.LIGHT),
        (figures.for_dark_pages, figures.DARK),
    ):
        drawn = [axes.spines["left"].get_edgecolor() for axes in draw(figure).axes]
        assert drawn[:2] == [to_rgba(ink)] * 2
        red, green, blue, _ = drawn[2]
        assert red > 0.3 + max(green, blue)


def test_the_home_page_shows_its_parts_in_order(chromium, site):
    """On wide pages and on phones; beside or below the sentence comes the picture, which is first on phones."""
    parts = (
        "'.home-lead'",
        "'.compare'",
        "'.highlight-sh'",
        "'.highlight-python'",
        "'.numbers'",
        "'table'",
        "'#when-not-to-use-it'",
    )
    tops = f"return [{', '.join(parts)}].map(part => document.querySelector(part).getBoundingClientRect().top)"
    for width, _ in open_everywhere(chromium, site / "index.html"):
        sentence, picture, *rest = chromium.run(tops)
        assert rest == sorted(rest)
        assert sentence < min(picture, rest[0])
        assert width > 1000 or picture < rest[0]


def test_figures_can_be_read_on_a_phone(chromium, site):
    """Drawings have a form for phones, with letters as large as those of the text; wide pictures are scrolled."""
    drawn = """return [...document.querySelectorAll('figure.drawing svg')].map(
        svg => svg.clientWidth / svg.viewBox.baseVal.width).filter(Boolean)"""
    shown = """return [...document.querySelectorAll('.bd-article img')].filter(i => i.offsetParent).map(
        i => [i.clientWidth, i.closest('.wide-picture')?.clientWidth])"""
    for width, _ in open_everywhere(chromium, site / "how-road-works.html"):
        scales = chromium.run(drawn)  # of letters of 8 to 12 pixels
        assert len(scales) == 3
        assert min(scales) > (1.2 if width < 500 else 0.95)
    for page in WIDE_PICTURES:
        for width, _ in open_everywhere(chromium, site / f"{page}.html"):
            pictures = [sizes for sizes in chromium.run(shown) if sizes[1]]
            assert len(pictures) == len(WIDE_PICTURES[page])
            for picture, there in pictures:
                assert (picture > 500 > there) if width < 500 else (picture <= there)


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


def test_sliders_follow_a_finger(chromium, site):
    from selenium.webdriver.support.ui import WebDriverWait

    chromium.open((site / "index.html").as_uri(), width=390, height=844, phone=True)
    slider = chromium.show(chromium.find(".compare input")[0])
    chromium.swipe(slider, slider.rect["width"] // 4)
    assert 20 < hidden_share(chromium) < 30
    chromium.open((site / "how-road-works.html").as_uri(), width=390, height=844, phone=True)
    slider, [count] = chromium.show(chromium.find("#explorable input")[0]), chromium.find("#explorable .count")
    chromium.swipe(slider, slider.rect["width"] // 2)
    assert "16 of 16 found" in count.text
    chromium.tap(chromium.show(chromium.find("#explorable .sample")[3]))
    chosen = "return [...document.querySelectorAll('#explorable .sample')].findIndex(s => s.ariaPressed == 'true')"
    WebDriverWait(chromium.driver, 60).until(lambda _: chromium.run(chosen) == 3)


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
        ours, others = (tabs.rect for tabs in chromium.find(".sd-tab-set"))
        assert (others["y"] > ours["y"]) == (width < 500)  # side by side, if there is room
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
