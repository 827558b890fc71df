"""The page of the demo in Chromium: what it shows is what was learned, in every window."""

import base64
import io
from datetime import UTC, datetime

import numpy as np
import pytest
from PIL import Image

from roadict import ROAD
from roadict.demo.page import Times, make_demo_page, recovery_text
from roadict.metrics import match_atoms
from roadict.synthetic import planted

WINDOWS = [
    {"width": width, "height": 844, "phone": width == 390, "dark": dark} for width in (1400, 390) for dark in (0, 1)
]


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory):
    truth = planted(150, 9, 10, sparsity=2, random_state=0)
    model = ROAD(10, random_state=0).fit(truth.data)
    target = tmp_path_factory.mktemp("demo") / "demo.html"
    made = datetime(2026, 3, 5, 9, 7, tzinfo=UTC)
    target.write_text(make_demo_page(truth, model, Times(2.1, 11.8), 0, made=made), encoding="utf-8")
    return truth, model, target.as_uri()


def pixels(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def texts(chromium, selector):
    return [element.text for element in chromium.find(selector)]


@pytest.mark.parametrize("window", WINDOWS)
def test_it_fits_every_window(chromium, demo_page, window):
    *_, address = demo_page
    chromium.open(address, **window)
    assert chromium.console_errors() == []
    assert chromium.requests() == [address]
    assert chromium.width_of_content() <= window["width"]
    behind = chromium.run("return getComputedStyle(document.body).backgroundColor")
    assert (behind == "rgb(15, 18, 22)") == bool(window["dark"])
    edges = "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.right]"
    (left, right), atoms = chromium.run(edges, ".picture"), chromium.run(edges, "#atoms")
    assert atoms == pytest.approx([left, right], abs=1)
    assert chromium.run(edges, ".zoom")[1] == pytest.approx(right, abs=1), "the right half is not empty"


def test_its_numbers_are_those_of_the_fit(chromium, demo_page):
    truth, model, address = demo_page
    chromium.open(address, width=1400)
    indices, signs = match_atoms(model.components_, truth.dictionary)
    learned = model.components_[indices] * signs[:, None]
    expected = np.sum(learned * truth.dictionary, axis=1)
    found = chromium.run("return [...document.querySelectorAll('[data-correlation]')].map(e => +e.dataset.correlation)")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert expected.min() > 0.99
    assert texts(chromium, "#found") == ["10 of 10"]
    assert texts(chromium, "#headline") == ["10 of 10 atoms found in 2.1 s (plus 12 s to compile, first run only)."]
    assert "on 5 March 2026, 09:07, from seed 0" in texts(chromium, "#made")[0]
    largest = np.linalg.norm(learned - truth.dictionary, axis=1).max()
    digit, power = f"{largest:.0e}".split("e-")
    raised = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    assert texts(chromium, "#recovery")[0].startswith(f"All 10 atoms found, largest error {digit} × 10⁻{raised}: ")
    assert recovery_text(model, truth) == f"all 10 atoms found, largest error {largest:.0e}"


def test_atoms_that_were_not_found_are_not_claimed():
    truth = planted(100, 9, 12, sparsity=2, random_state=0)
    model = ROAD(12)
    model.components_ = np.vstack([truth.dictionary[:11], np.eye(9)[:1]])
    assert recovery_text(model, truth) == "11 of 12 atoms found; median error 0e+00"


def test_its_charts_agree_with_its_text(chromium, demo_page):
    from selenium.webdriver import ActionChains

    truth, model, address = demo_page
    chromium.open(address, width=1400)
    labels = texts(chromium, ".plot .mark text")
    assert labels[0].startswith("exact finish: ")
    assert labels[1] == f"exact finish: {model.objective_:.1f}"
    titles = set(texts(chromium, ".plot text"))
    assert {"iteration (log scale)", "relative size", "sum of the absolute codes"} <= titles
    for plot in chromium.find(".plot"):  # the ring is at the last iteration, at the end of the scale
        ring, line = (plot.find_element("css selector", name).rect for name in (".mark circle", ".line"))
        assert ring["x"] + ring["width"] / 2 == pytest.approx(line["x"] + line["width"], abs=2)
    column = chromium.show(chromium.find(".plot")[1]).find_elements("css selector", ".column rect")[0]
    ActionChains(chromium.driver).move_to_element(column).perform()
    tip = chromium.find("#tip")[0].text
    assert tip.splitlines()[0] == "iteration 1"
    assert f"of the run {model.history_['objective'][0]:.3g}" in tip
    assert f"of the planted codes {np.abs(truth.codes).sum():.3g}" in tip
    assert "trial" not in tip


def test_its_picture_is_in_colour_and_all_atoms_are_shown(chromium, demo_page):
    *_, address = demo_page
    chromium.open(address, width=1400)
    sources = chromium.run("return [...document.querySelectorAll('.tile img')].map(image => image.src)")
    for picture in map(pixels, sources):
        assert picture.shape == (255, 330, 3)
        assert np.ptp(picture.astype(int), axis=2).mean() > 20, "a cat with green eyes"
    by_label = chromium.run(
        "return Object.fromEntries([...document.querySelectorAll('.zoom figcaption')].map(c => "
        "[c.querySelector('b').textContent, +(c.querySelector('[data-psnr]') || {dataset: {}}).dataset.psnr]))"
    )
    assert by_label["ROAD"] > by_label["bicubic"] > by_label["input"]
    sheet = pixels(chromium.find("#atoms")[0].get_attribute("src"))
    assert sheet.shape == (8 * 10 - 1, 16 * 10 - 1, 2)  # atoms of 9 x 9 pixels, with gaps of one
    corners = [(10 * row, 10 * column) for row in range(8) for column in range(16)]
    assert len({sheet[top : top + 9, left : left + 9, 0].tobytes() for top, left in corners}) == 128
    chromium.drag(".slider input", -80)
    cut = chromium.run("return getComputedStyle(document.querySelector('.slider')).getPropertyValue('--cut')")
    assert float(cut[:-1]) < 45
