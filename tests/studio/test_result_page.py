"""Results in a real browser: charts, atoms and the loupe, wide and narrow, light and dark."""

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from roadict.studio import verdict
from roadict.synthetic import planted

from .driving import until

WIDE, PHONE = (1400, 1000, False), (390, 800, True)


def resize(page, size, dark):
    """Show the same page in another window and in other colours."""
    width, height, phone = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.browser.run("document.body.classList.toggle('dark', arguments[0])", dark)
    until(lambda: page.browser.run("return innerWidth") == width, "the size")


def check_everywhere(page, tab, order):
    """No sideways scrolling, parts in this order from top to bottom, and panels in the colours of the page."""
    tops = "return arguments[0].map(s => document.querySelector(s).getBoundingClientRect().top)"
    colour = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    seen = set()
    for size in (WIDE, PHONE):
        for dark in (False, True):
            resize(page, size, dark)
            assert page.browser.width_of_content() <= size[0]
            found = page.browser.run(tops, order)
            assert found == sorted(found)
            seen.add(page.browser.run(colour, f"#{tab}-view .rd-panel"))
    assert len(seen) == 2  # light and dark
    resize(page, WIDE, False)


def tooltip(page):
    shown = page.browser.find("#rd-tip.shown")
    return shown[0].text if shown else ""


def scroll_to(page, element):
    page.browser.run("arguments[0].scrollIntoView({block: 'center'})", element)


def test_a_picture_has_a_loupe_and_atoms_with_their_places(page, tmp_path):
    y, x = np.mgrid[:48, :48]
    waves = 120 + 60 * np.sin(x / 2) * np.cos(y / 3) + np.random.default_rng(0).normal(0, 15, x.shape)
    Image.fromarray(np.clip(waves, 0, 255).astype(np.uint8)).save(tmp_path / "waves.png")
    page.upload(tmp_path / "waves.png")
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    page.wait_for("Done")
    loupe = page.one("#pictures-view .rd-loupe")
    until(lambda: loupe.get_attribute("data-zoom"), "the loupe")
    check_everywhere(page, "pictures", ["#pictures-panel", "#pictures-slider", "#pictures-view", "#pictures-details"])

    pixels = """const canvas = document.querySelector(`#pictures-view canvas[data-view=${arguments[0]}]`);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return data.join()"""
    views = {name: page.browser.run(pixels, name) for name in ("map", "before", "after", "difference")}
    assert len(set(views.values())) == 4

    place = lambda: tuple(int(loupe.get_attribute(f"data-{side}")) for side in ("left", "top"))  # noqa: E731
    page.one("#pictures-view [data-zoom='8']").click()
    assert loupe.get_attribute("data-zoom") == "8"
    canvas = page.one("#pictures-view canvas[data-view=map]")
    scroll_to(page, canvas)
    ActionChains(page.driver).move_to_element_with_offset(canvas, -90, -90).click().perform()
    assert place() == (0, 0)
    after = page.one("#pictures-view canvas[data-view=after]")
    old = page.browser.run(pixels, "after")
    ActionChains(page.driver).drag_and_drop_by_offset(after, -16, -8).perform()  # 8 pixels of the page for one
    assert place() == (2, 1)
    assert page.browser.run(pixels, "after") != old
    after.send_keys(Keys.ARROW_LEFT)
    assert place() == (0, 1)

    buttons = page.browser.find("#pictures-details .rd-grid button")
    assert len(buttons) > 10
    shown = lambda: page.one("#pictures-details .rd-atom").text  # noqa: E731
    first = until(shown, "the first atom")
    scroll_to(page, buttons[0])
    buttons[3].click()
    until(lambda: shown() != first, "another atom")
    assert shown().split(" used")[0] == buttons[3].get_attribute("aria-label").split(",")[0]
    covered = page.one("#pictures-details canvas.rd-heat").get_attribute("data-covered")
    assert 0 < float(covered) < 1
    buttons[3].send_keys(Keys.ARROW_RIGHT)
    until(lambda: shown().split(" used")[0] == buttons[4].get_attribute("aria-label").split(",")[0], "the next atom")
    assert buttons[4] == page.driver.switch_to.active_element
    assert buttons[4].get_attribute("aria-pressed") == "true"


def test_signals_have_atoms_with_users_and_charts_with_values(page, tmp_path):
    np.save(tmp_path / "signals.npy", planted(120, 10, 12, sparsity=2, random_state=0).data)
    next(tab for tab in page.browser.find("button[role=tab]") if tab.text == "Signals").click()
    page.upload(tmp_path / "signals.npy", "signals")
    page.one("#signals-components textarea, #signals-components input").send_keys(Keys.CONTROL + "a", "12")
    resize(page, PHONE, False)
    page.one("#signals-run").click()
    assert "relative error" in page.wait_for("Done", "signals")
    top = "return document.querySelector('#signals-panel').getBoundingClientRect().top"
    until(lambda: -20 < page.browser.run(top) < 200, "the panel to be in sight")
    check_everywhere(page, "signals", ["#signals-panel", "#signals-view", "#signals-details"])
    labels = {element.text for element in page.browser.find("#signals-file ~ * label span, label span, span")}
    assert {name.strip("“”") for name in (verdict.ATOMS, verdict.ERROR_BOUND)} <= labels

    users = lambda: [figure.text for figure in page.browser.find("#signals-view .rd-users figure")]  # noqa: E731
    before = until(users, "users of the first atom")
    scroll_to(page, page.one("#signals-view .rd-grid"))
    page.browser.find("#signals-view .rd-grid button")[5].click()
    until(lambda: users() and users() != before, "users of another atom")
    assert all(text.startswith("signal ") for text in users())
    assert len(page.browser.find("#signals-view .rd-users svg path.c0")) == len(users())

    chart = page.one("#signals-details .rd-figures svg")
    scroll_to(page, chart)
    ActionChains(page.driver).move_to_element(chart).perform()
    text = until(lambda: tooltip(page), "the values")
    assert text.startswith("iteration ")
    assert [line.split(" ")[0] for line in text.splitlines()[1:]] == ["primal", "dual", "data"]
    page.browser.run("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_LEFT)
    assert until(lambda: tooltip(page), "the values") != text


@pytest.fixture(autouse=True)
def light(chromium):
    """Leave the window as it was."""
    yield
    chromium.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
