"""The pages in Chromium: no errors, no network requests, and working controls."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from roadict.drawing.raster import atom_sheet, png
from roadict.experiments.page import make_report
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.runner import PICTURES, make_row
from roadict.experiments.trial import Finished

ROOT = Path(__file__).resolve().parents[2]
PHONE = {"width": 390, "height": 844, "phone": True}
NAMES = ("solvers", "noisy", "digits", "zebra", "ablation")


def result_of(trial, rng):
    if EXPERIMENTS[trial.experiment].pictures:
        return {"psnr": float(20 + rng.random())}
    value = 0.0 if trial.method.name == "road-defaults" else float(rng.random() / 10)  # 0: below the axis
    return {"error": value, "error_greedy": value + 0.01, "trace": [[1, 0.5], [100, value]]}


@pytest.fixture(scope="module")
def rows_and_page(tmp_path_factory):
    """Synthetic rows of three figures and two tables, and the address of their page; some rows are missing."""
    folder, rng, rows = tmp_path_factory.mktemp("page"), np.random.default_rng(0), []
    (folder / PICTURES).mkdir()
    for name in NAMES:
        for trial in EXPERIMENTS[name].trials(2, "auto"):
            if trial.experiment == "solvers" and getattr(trial.problem, "n_samples", 0) == 400:
                continue
            row = make_row(Finished(trial, result_of(trial, rng), {"wall": 2.0, "cpu": 1.0}), 2)
            rows.append(row)
            if EXPERIMENTS[name].pictures:
                shape = (28, 28) if name == "digits" else (120, 150)
                grey = png(np.clip(np.add.outer(*map(np.arange, shape)) / 300 + rng.random() / 4, 0, 1))
                (folder / PICTURES / f"{row['key']}.png").write_bytes(grey)
                (folder / PICTURES / f"{row['key']}-atoms.png").write_bytes(png(atom_sheet(rng.random((64, 36)))))
                if trial.method.name == "bicubic":
                    original = png(np.clip(np.add.outer(*map(np.arange, shape)) / 300, 0, 1))
                    (folder / PICTURES / f"{row['key']}-original.png").write_bytes(original)
    target = folder / "report.html"
    target.write_text(make_report(rows, [folder]).page, encoding="utf-8")
    return rows, target.as_uri()


WIDE = {"width": 1400}
BOX = "const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };"
TEXTS = (
    BOX + "return [...document.querySelectorAll('.plot')].filter(plot => plot.getBoundingClientRect().width)"
    ".map(plot => [box(plot), [...plot.querySelectorAll('text')].map(text => [text.textContent, ...box(text)])])"
)


def box_of(chromium, element):
    """Left, top, right and bottom of an element in the window."""
    return chromium.run(BOX + "return box(arguments[0])", element)


@pytest.mark.parametrize("window", [WIDE, WIDE | {"dark": True}, PHONE, PHONE | {"dark": True}])
def test_it_loads_without_errors_or_requests_and_does_not_scroll_sideways(chromium, rows_and_page, window):
    _, address = rows_and_page
    chromium.open(address, **window)
    assert chromium.console_errors() == []
    assert chromium.requests() == [address]  # the page itself, and nothing else
    assert chromium.width_of_content() <= window["width"]
    assert chromium.run("return [...document.images].every(image => image.complete && image.naturalWidth > 0)")
    figures = chromium.run(TEXTS)
    assert len(figures) == 13  # one of the two sizes of each
    for (left, top, right, bottom), texts in figures:
        assert len(texts) > 8
        for i, (text, *box) in enumerate(texts):
            inside = left - 1 <= box[0] and box[2] <= right + 1 and top - 1 <= box[1] and box[3] <= bottom + 1
            assert inside, f"{text} is cut off"
            for other, *its in texts[:i]:
                # Boxes of text are higher than its letters.
                apart = box[0] >= its[2] or its[0] >= box[2] or box[1] + 3 >= its[3] or its[1] + 3 >= box[3]
                assert apart, f"{text} lies on {other}"


@pytest.mark.parametrize("window", [WIDE, PHONE])
def test_the_contents_stay_in_view_and_follow(chromium, rows_and_page, window):
    from selenium.webdriver.support.ui import WebDriverWait

    chromium.open(rows_and_page[1], **window)
    here = "return [...document.querySelectorAll('#contents a.here')].map(a => a.hash)"
    assert chromium.run(here) == ["#overview"]
    chromium.run("document.documentElement.style.scrollBehavior = 'auto'")
    for name in ("noisy", "zebra", "solvers"):
        (entry,) = chromium.find(f"#contents a[href='#{name}']")
        chromium.run("arguments[0].click()", entry)
        WebDriverWait(chromium.driver, 60).until(lambda _, name=name: chromium.run(here) == [f"#{name}"])
        left, top, right, bottom = box_of(chromium, chromium.find("#contents")[0])
        assert top == 0
        # Beside the text on a screen; a strip above it on a phone.
        assert (right - left < 250) if window is WIDE else (bottom < 60 and right - left == 390)
        below = 0 if window is WIDE else bottom
        assert below - 1 <= box_of(chromium, chromium.find(f"#{name} h2")[0])[1] <= 200
        entered = box_of(chromium, entry)
        assert entered[0] >= 0
        assert entered[2] <= window["width"]


def test_the_picture_of_the_report(chromium, rows_and_page, tmp_path):
    """What docs/screenshots.py saves: the first screen, and below it the first figures."""
    from urllib.request import url2pathname

    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "docs" / "screenshots.py")
    shots = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shots)
    page = Path(url2pathname(rows_and_page[1].removeprefix("file://")))
    shots.take_report(page, tmp_path / "report.webp", dark=True, chromium=chromium)
    with Image.open(tmp_path / "report.webp") as picture:
        assert picture.size == (shots.WIDTH, 2 * shots.HEIGHT)
        colours = np.asarray(picture)
    assert np.median(colours) < 60
    assert not np.array_equal(colours[: shots.HEIGHT], colours[shots.HEIGHT :])


def test_pictures_that_hardly_differ_have_differences(chromium, rows_and_page):
    chromium.open(rows_and_page[1])
    pairs = (
        "return [...document.querySelectorAll(arguments[0] + ' .zoom figure')]"
        ".map(figure => figure.querySelectorAll('img').length)"
    )
    digits, zebra = EXPERIMENTS["digits"], EXPERIMENTS["zebra"]
    # For every approach; the original has none.
    assert chromium.run(pairs, "#digits") == len(digits.panels) * [1, *[2] * len(digits.methods)]
    assert chromium.run(pairs, "#zebra") == [1] * (len(zebra.methods) + 1)


def test_what_is_tentative_or_incomplete_is_marked(chromium, rows_and_page):
    chromium.open(rows_and_page[1])
    pills = chromium.run("return [...document.querySelectorAll('.pill')].map(p => [p.textContent, p.className])")
    assert {kind for text, kind in pills if text.startswith("tentative")} == {"pill tentative"}
    hatched = chromium.run("return getComputedStyle(document.querySelector('.pill.tentative')).backgroundImage")
    assert hatched.startswith("repeating-linear-gradient")
    assert chromium.run("return [...document.querySelectorAll('#scores div')].map(d => d.textContent)") == [
        "2 too few rows"
    ]
    number = f"{len(rows_and_page[0])} of {len(rows_and_page[0]) + 16} rows:"
    assert chromium.find("#incomplete b")[0].text == number
    assert chromium.find("#solvers .incomplete b")[0].text == "64 of 80 rows:"
    assert not chromium.find("#noisy .incomplete")


def test_errors_and_requests_are_detected(chromium, tmp_path):
    page = tmp_path / "bad.html"
    head = '<!doctype html><meta name="viewport" content="width=device-width, initial-scale=1">'
    page.write_text(f'{head}<img src="missing.png"><script>nowhere()</script><p style="width: 2000px">wide', "utf-8")
    chromium.open(page.as_uri(), **PHONE)
    assert any("nowhere is not defined" in text for text in chromium.console_errors())
    assert any(address.endswith("missing.png") for address in chromium.requests())
    assert chromium.width_of_content() >= 2000


def test_dark_and_light_differ_and_are_readable(chromium, rows_and_page):
    seen = {}
    for dark in (False, True):
        chromium.open(rows_and_page[1], dark=dark)
        for what, selector in (("text", "body"), ("verdict", ".pill"), ("axis", ".plot text")):
            colours = chromium.run(
                """const element = document.querySelector(arguments[0]), style = getComputedStyle(element);
                let behind = element;
                while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
                return [element.namespaceURI.endsWith('svg') ? style.fill : style.color,
                        getComputedStyle(behind).backgroundColor]""",
                selector,
            )
            assert contrast(*colours) > 4.5, (what, dark, colours)  # what WCAG asks of small text
            seen[what, dark] = colours
    assert seen["text", False] != seen["text", True]


def contrast(*colours):
    """Ratio of the luminances of two colours, as WCAG defines it."""

    def luminance(colour):
        parts = np.array([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def test_numbers_on_the_page_are_those_of_the_rows(chromium, rows_and_page):
    rows, address = rows_and_page
    chromium.open(address)
    for name in NAMES[:-1]:  # the shares of the ablation are compared in test_page.py
        shown = chromium.run(
            "return [...document.querySelectorAll(arguments[0])].map(c => [+c.dataset.value, c.textContent])",
            f"#{name} td[data-value]",
        )
        groups = {}
        for row in rows:
            settings = row["settings"]
            if settings["experiment"] == name:
                for measure in row["result"].keys() - {"trace"}:
                    cell = settings["panel"], settings["method"]["name"], settings["problem"].get("n_samples")
                    groups.setdefault((*cell, measure), []).append(row["result"][measure])
        np.testing.assert_allclose(
            sorted(value for value, _ in shown), sorted(map(np.mean, groups.values())), rtol=1e-12
        )
        for value, text in shown:
            assert float(text.removesuffix(" dB")) == pytest.approx(value, rel=0.05)


def test_hovering_shows_the_values_of_the_rows(chromium, rows_and_page):
    from selenium.webdriver import ActionChains

    rows, address = rows_and_page
    chromium.open(address)
    figure = chromium.find("#noisy .plot")[0]
    chromium.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
    assert not chromium.find("#tip")[0].is_displayed()
    ActionChains(chromium.driver).move_to_element(chromium.find("#noisy .plot .column rect")[0]).perform()
    text = chromium.find("#tip")[0].text
    assert_beside(chromium, "#noisy .plot")
    errors = [
        row["result"]["error"]
        for row in rows
        if row["settings"]["panel"] == "30-db"
        and row["settings"]["method"]["name"] == "ksvd"
        and row["settings"]["problem"]["n_samples"] == 100
    ]
    assert "100 samples" in text
    assert f"K-SVD {np.mean(errors):.2g} " in text.replace("\n", " ") + " "
    ActionChains(chromium.driver).move_by_offset(0, 400).perform()
    assert not chromium.find("#tip")[0].is_displayed()


def assert_beside(chromium, selector):
    """Assert that the tooltip is visible and covers nothing of the chart."""
    chart, tip = (box_of(chromium, chromium.find(name)[0]) for name in (selector, "#tip"))
    assert tip[0] >= chart[2] or tip[2] <= chart[0] or tip[1] >= chart[3] or tip[3] <= chart[1]
    assert min(tip[:2]) >= 0
    width, height = chromium.run("return [innerWidth, innerHeight]")
    assert tip[2] <= width
    assert tip[3] <= height


def test_on_a_phone_the_tooltip_does_not_cover_the_chart(chromium, rows_and_page):
    chromium.open(rows_and_page[1], **PHONE)
    enter = "arguments[0].dispatchEvent(new PointerEvent('pointerenter'))"
    figure, columns = chromium.find("#noisy .plot.narrow")[0], chromium.find("#noisy .plot.narrow .column")[:4]
    for place in ("start", "center", "end"):
        chromium.run("arguments[0].scrollIntoView({block: arguments[1], behavior: 'instant'})", figure, place)
        for column in columns:
            chromium.run(enter, column)
            assert_beside(chromium, "#noisy .plot.narrow")


def test_a_finger_does_what_a_mouse_does(chromium, rows_and_page):
    from selenium.webdriver.support.ui import WebDriverWait

    chromium.open(rows_and_page[1], **PHONE)
    tip = chromium.find("#tip")[0]
    chromium.show(chromium.find("#noisy .plot.narrow")[0])
    columns = chromium.find("#noisy .plot.narrow .column rect")
    for column, samples in zip(columns, (100, 200), strict=False):
        chromium.tap(column)
        assert tip.is_displayed()  # after the finger has left
        assert tip.text.startswith(f"{samples} samples")
        assert_beside(chromium, "#noisy .plot.narrow")
    chromium.tap(chromium.find("#noisy .plot.narrow .label[data-name=ksvd] text")[0])
    assert not tip.is_displayed()
    faint = "return document.querySelectorAll('#noisy .narrow g.dim').length"
    assert chromium.run(faint) > 8
    chromium.tap(columns[0])
    assert chromium.run(faint) == 0
    assert tip.is_displayed()
    chromium.run("window.scrollBy({top: 30, behavior: 'instant'})")
    WebDriverWait(chromium.driver, 60).until(lambda _: not tip.is_displayed())

    slider = chromium.show(chromium.find("#zebra .slider")[0])
    chromium.swipe(slider, -slider.size["width"] // 4)
    visible = "return getComputedStyle(document.querySelector('#zebra .after')).clipPath"
    assert float(chromium.run(visible).split()[-1].rstrip("%)")) == pytest.approx(25, abs=5)
    tile = chromium.show(chromium.find("#zebra .tile")[1])
    place = "return document.querySelector('#zebra .tile img').getBoundingClientRect().left"
    before = chromium.run(place)
    chromium.swipe(tile, 24)
    assert chromium.run(place) - before == pytest.approx(24, abs=8)


def test_pointing_at_the_name_of_a_line_shows_it_alone(chromium, rows_and_page):
    from selenium.webdriver import ActionChains

    chromium.open(rows_and_page[1])
    faint = (
        "return [...document.querySelectorAll('#noisy .wide g[data-name]')]"
        ".filter(g => g.classList.contains('dim')).map(g => g.dataset.name)"
    )
    assert chromium.run(faint) == []
    entry = chromium.find("#noisy .wide .label[data-name=ksvd] text")[0]
    assert entry.text == "K-SVD"
    chromium.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", entry)
    ActionChains(chromium.driver).move_to_element(entry).perform()
    assert len(chromium.run(faint)) == 2 * 2 * 8  # lines and names of all others, in both figures
    assert "ksvd" not in chromium.run(faint)
    ActionChains(chromium.driver).move_by_offset(0, 300).perform()
    assert chromium.run(faint) == []


def test_hovering_over_a_table_shows_trials_and_the_papers_value(chromium, rows_and_page):
    from selenium.webdriver import ActionChains

    rows, address = rows_and_page
    chromium.open(address)
    names = chromium.run("return [...document.querySelectorAll('#zebra .wide .name')].map(e => e.textContent)")
    strip = chromium.find("#zebra .plot .column")[names.index("MOD, Lasso")]
    chromium.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", strip)
    ActionChains(chromium.driver).move_to_element(strip).perform()
    values = [
        row["result"]["psnr"]
        for row in rows
        if row["settings"]["experiment"] == "zebra" and row["settings"]["method"]["name"] == "mod-lasso"
    ]
    text = chromium.find("#tip")[0].text.replace("\n", " ")
    assert f"mean {np.mean(values):.2f} dB" in text
    assert "in the paper 26.71 dB" in text
    assert "2 trials" in text
    assert "quartiles" not in text


@pytest.mark.parametrize("window", [{}, PHONE])
def test_the_slider_moves_and_other_pictures_can_be_chosen(chromium, rows_and_page, window):
    chromium.open(rows_and_page[1], **window)
    visible = "return getComputedStyle(document.querySelector('#zebra .after')).clipPath"
    assert chromium.run(visible) == "inset(0px 0px 0px 50%)"
    width = chromium.find("#zebra .slider")[0].size["width"]
    chromium.drag("#zebra .slider input", -width // 4)
    cut = float(chromium.run(visible).split()[-1].rstrip("%)"))
    assert cut == pytest.approx(25, abs=3)
    line = chromium.run(
        "const r = s => document.querySelector('#zebra ' + s).getBoundingClientRect(); "
        "return (r('.handle').left - r('.slider').left) / r('.slider').width"
    )
    assert line == pytest.approx(cut / 100, abs=0.01)

    chosen = (
        "return document.querySelector('#zebra .after').src === document.querySelectorAll('#zebra .tile img')[5].src"
    )
    assert not chromium.run(chosen)
    chromium.find("#zebra select.right option")[5].click()
    assert chromium.run(chosen)
    label = chromium.find("#zebra .zoom figcaption b")[5].text
    assert chromium.find("#zebra .tag.right")[0].text.startswith(label)


def test_the_region_moves_for_all_methods_at_once(chromium, rows_and_page):
    chromium.open(rows_and_page[1])
    where = (
        "return [...document.querySelectorAll('#zebra .tile')].map(tile => { const one = tile.getBoundingClientRect(), "
        "two = tile.firstChild.getBoundingClientRect(); return [two.left - one.left, two.top - one.top, "
        "two.width / one.width]; })"
    )
    before = np.array(chromium.run(where))
    np.testing.assert_allclose(before[:, 2], 4, rtol=1e-3)
    chromium.drag("#zebra .tile", 30, 20)
    moved = np.array(chromium.run(where)) - before
    np.testing.assert_allclose(moved[:, :2], np.tile([30, 20], (len(moved), 1)), atol=1.5)
