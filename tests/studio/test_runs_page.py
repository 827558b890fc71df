"""Past runs, jobs of closed pages, and large pictures in a real browser, on screen and phone, light and dark."""

import shutil

import numpy as np
import pytest
from PIL import Image

from .driving import PHONE, WIDE, Page, until

FIRST_CARD = "return document.querySelector('#runs .rd-card')?.innerText ?? ''"
CARDS = "#runs .rd-card:not(.rd-live)"
RUNS = "return [...document.querySelectorAll('#runs .rd-card button')].map(button => button.dataset.run)"
TICKED = "return [...document.querySelectorAll('#runs input:checked')].map(box => box.value)"
ERROR_SHOWN = """const place = document.querySelector('#versus'), error = document.createElement('div');
    error.className = 'rd-panel'; place.append(error);
    const display = getComputedStyle(place).display; error.remove(); return display"""
STORED_TAB = "return localStorage.getItem('roadict-tab')"


def denoise(page, path, noise="auto"):
    page.upload(path)
    page.choose("pictures-task", "Denoise")
    page.enter("pictures-noise", noise)
    page.one("#pictures-run").click()


def asks_before_leaving(page):
    return page.browser.run("return !window.dispatchEvent(new Event('beforeunload', {cancelable: true}))")


@pytest.fixture
def no_past(server):
    """A studio without past runs."""
    shutil.rmtree(server.cache / "studio", ignore_errors=True)


@pytest.fixture
def no_runs(no_past, page):
    """A page without past runs."""
    return page


def test_runs_survive_a_reload_and_are_compared(no_runs, server, tiny):
    page, browser = no_runs, no_runs.browser
    denoise(page, tiny)
    page.wait_for("Done")
    until(lambda: len(browser.find(CARDS)) == 1, "a card")
    assert not asks_before_leaving(page)
    page.reload()
    page.wait_for("Nothing has run yet")
    until(lambda: browser.run(FIRST_CARD).split("\n")[:3] == ["Denoise", "tiny.png", "24 × 24 pixels"], "the card")
    page.click(f"{CARDS} button")
    assert "sigma" in page.wait_for("Done")
    assert len(until(lambda: browser.find("#pictures-slider img"), "the slider")) == 2
    assert "denoise tiny.png" in page.one("#pictures-command .cm-content").text

    page.click(f"{CARDS} input")
    ticked = until(lambda: browser.run(TICKED), "the tick")
    denoise(page, tiny, "5")
    until(lambda: len(browser.find(CARDS)) == 2, "another card")
    until(lambda: browser.run(TICKED) == ticked, "the tick at its run, which is the second now")
    assert len(ticked) == 1
    browser.open(server.address, width=390, height=900, phone=True, dark=True)
    until(lambda: len(browser.find(CARDS)) == 2, "the cards")
    for box in (f"{CARDS}:nth-child({i}) input" for i in (1, 2)):
        page.click(box)
    until(lambda: len(browser.run(TICKED)) == 2, "both ticks")
    text = until(lambda: browser.find("#versus .rd-versus"), "the comparison")[0].text
    assert "The two pictures differ by" in text
    assert "--sigma 5" in text
    assert browser.find("body.dark")
    for size in (WIDE, PHONE):
        page.resize(size, False)
        left, right = (image.rect for image in browser.find("#versus .rd-picture"))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] < right["x"]
        first, second = (card.rect for card in browser.find(CARDS))
        assert first["y"] == second["y"]
        assert 0 <= first["x"] < first["x"] + first["width"] <= size[0]
    for part in (".rd-card", ".rd-versus"):
        page.check_everywhere(part, ["#runs", "#versus", "#pictures-file"])
    assert page.errors() == []
    page.click(f"{CARDS} input")
    until(lambda: not browser.find("#versus .rd-versus"), "the end of the comparison")
    assert browser.run(ERROR_SHOWN) != "none"
    after = """const section = document.querySelector("#pictures-view .rd-loupe[data-zoom]");
        if (section?.dataset.run !== arguments[0]) return "";
        const canvas = section.querySelector("canvas[data-view=after]");
        return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.join()"""
    pixels = []
    for run in browser.run(RUNS):  # one after the other: the loupe has the pictures of each
        page.click(f"{CARDS} button[data-run='{run}']")
        pixels.append(until(lambda: browser.run(after, run), "the loupe"))  # noqa: B023
    assert pixels[0] != pixels[1]
    page.one(".rd-clear").click()
    page.driver.switch_to.alert.dismiss()
    assert len(browser.find(CARDS)) == 2
    page.one(".rd-clear").click()
    page.driver.switch_to.alert.accept()
    until(lambda: not browser.find("#runs .rd-card"), "no runs")
    assert list((server.cache / "studio").iterdir()) == []


def test_a_job_outlives_its_page_and_is_found_again(no_runs, server, tiny, large):
    page, browser = no_runs, no_runs.browser
    denoise(page, tiny)
    page.wait_for("Done")
    page.one("#pictures-file button[aria-label='Clear']").click()
    denoise(page, large)
    page.wait_for("Denoising")
    (job,) = server.jobs()
    assert asks_before_leaving(page)  # and works on, as if its user had chosen to stay:
    browser.find(f"{CARDS} button")[0].click()
    page.wait_for("Done")
    page.one("#runs .rd-live button").click()
    page.wait_for("Denoising")

    page.reload()
    page.wait_for("Denoising")
    assert server.jobs() == [job]
    until(lambda: browser.find("#pictures-keep"), "Stop and keep")
    tops = """return ["run", "keep", "cancel"].map(
        name => document.querySelector(`#pictures-${name}`).getBoundingClientRect().top)"""
    for size in (WIDE, PHONE):
        page.resize(size, False)
        assert len({*browser.run(tops)}) == 1  # in one row
    page.check_everywhere("#pictures-panel .rd-panel", ["#runs", "#pictures-file"])

    page.driver.switch_to.new_window("tab")
    other = Page(browser, server.address)
    other.wait_for("Nothing has run yet")  # it is the job of another page, which is still open
    before = browser.run(STORED_TAB)
    other.open_tab("Signals")
    until(lambda: browser.run(STORED_TAB) != before, "the tab to be stored")
    page.reload()
    chosen = "return document.querySelector('button[role=tab][aria-selected=true]')?.innerText"
    until(lambda: browser.run(chosen) == "Signals", "the tab of this page")
    page.driver.switch_to.window(page.tab)
    page.driver.close()
    page.driver.switch_to.window(other.tab)
    page.tab = other.tab

    for _ in range(2):  # two reloads in a row: the first page must not hold the job
        page.reload()
    page.wait_for("Denoising")
    browser.console_errors()  # Gradio reports that the page which was left at once has disconnected
    assert server.jobs() == [job]
    page.one("#pictures-cancel").click()
    assert page.wait_for("Cancelled").split() == ["Cancelled", "Nothing", "was", "saved."]
    until(lambda: server.jobs() == [], "the end of the job")
    until(lambda: not browser.find("#runs .rd-live"), "no job")
    assert len(browser.find(CARDS)) == 1


def test_a_large_photo_that_cannot_be_read_gets_a_reason_and_no_buttons(page, tmp_path):
    path = tmp_path / "broken.jpg"
    Image.new("RGB", (2500, 2000), "red").save(path)
    path.write_bytes(path.read_bytes()[:-2000])
    page.upload(path)
    until(lambda: "broken.jpg" in page.one("#pictures-size").text, "the reason")
    assert not page.browser.find("#pictures-shrink")
    Image.new("RGB", (2500, 2000), "red").save(tmp_path / "whole.jpg")
    page.one("#pictures-file button[aria-label='Clear']").click()
    page.upload(tmp_path / "whole.jpg")
    until(lambda: page.browser.find("#pictures-shrink"), "the choice")


def test_a_large_photo_is_cut_or_shrunk_in_one_click_and_its_mask_with_it(page, server, tmp_path):
    from selenium.webdriver import ActionChains

    y, x = np.mgrid[:1800, :2400]
    photo = np.stack([x * 255 // 2400, y * 255 // 1800, np.full_like(x, 90)], axis=-1).astype(np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(photo).save(path)
    Image.fromarray(np.where(y == 900, np.uint8(255), np.uint8(0))).save(tmp_path / "mask.png")
    page.choose("pictures-task", "Inpaint")
    page.choose("pictures-source", "Mask file")
    page.upload(path)
    until(lambda: "photo.png has 2400 × 1800 pixels" in page.one("#pictures-size").text, "the choice")
    until(lambda: page.one("#pictures-shrink").text == "Shrink to 2309 × 1732", "the size")
    page.one("#pictures-run").click()
    assert "photo.png has more than 4,000,000 pixels; shrink it" in page.wait_for("That did not work")
    image = until(lambda: page.browser.find("#pictures-part img"), "the picture")[0]
    before = image.get_attribute("src")
    ActionChains(page.driver).move_to_element_with_offset(image, -90, -60).click().perform()
    until(lambda: page.one("#pictures-part img").get_attribute("src") != before, "the other part")
    page.one("#pictures-crop").click()
    until(lambda: "2309 × 1732 pixels" in page.one("#pictures-preview").text, "the part")
    until(lambda: "Nothing has run yet" in page.panel().text, "the error to go with its cause")
    assert "photo.png was cut from 2400 × 1800 to 2309 × 1732 pixels" in page.one("#pictures-size-note").text
    assert "photo-cut.png" in page.one("#pictures-file").text.replace("\n", "")
    assert not page.browser.find("#pictures-shrink")
    page.one("#pictures-file button[aria-label='Clear']").click()
    page.upload(path)
    until(lambda: page.browser.find("#pictures-shrink"), "the choice")
    until(lambda: not page.browser.find("#pictures-size-note p"), "no note")
    page.one("#pictures-shrink").click()
    until(lambda: "was shrunk" in page.one("#pictures-size-note").text, "the note")
    until(lambda: "2309 × 1732 pixels" in page.one("#pictures-preview").text, "the smaller picture")
    page.upload(tmp_path / "mask.png", "pictures-mask")
    page.one("#pictures-run").click()
    (mask,) = until(lambda: [file for file in server.files() if file.name == "photo-shrunk-mask.png"], "the mask")
    marked = np.asarray(Image.open(mask)) > 0
    assert marked.shape == (1732, 2309)
    assert np.flatnonzero(marked.any(axis=1)).tolist() == [866]
    page.one("#pictures-cancel").click()
    page.wait_for("Cancelled")


def test_transparent_pixels_are_filled_by_default_and_marks_stand_out(page, tmp_path, tiny):
    orange = np.full((24, 24, 3), (209, 96, 31), np.uint8)
    Image.fromarray(orange).save(tmp_path / "orange.png")
    clear = np.dstack([orange, np.full((24, 24), 255, np.uint8)])
    clear[3:5, 3:9, 3] = 0
    Image.fromarray(clear).save(tmp_path / "clear.png")
    page.choose("pictures-task", "Inpaint")
    page.upload(tmp_path / "clear.png")
    chosen = lambda: page.browser.run("return document.querySelector('#pictures-source input:checked')?.value")  # noqa: E731
    until(lambda: chosen() == "Transparent pixels", "the source")
    until(lambda: page.browser.find("#pictures-preview img"), "the preview")
    page.one("#pictures-run").click()
    assert "12 of 576 pixels are missing" in page.wait_for("Done")
    loupe = page.one("#pictures-view .rd-loupe")
    until(lambda: loupe.get_attribute("data-zoom"), "the loupe")
    zoom = int(loupe.get_attribute("data-zoom"))
    filled = """const canvas = document.querySelector("#pictures-view canvas[data-view=difference]");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return data.filter((value, i) => i % 4 === 0 && value > 190 && data[i + 2] < 60).length"""
    assert 8 * zoom**2 < page.browser.run(filled) < 16 * zoom**2  # orange, and grey around it
    page.check_everywhere("#pictures-view .rd-panel", ["#pictures-panel", "#pictures-slider", "#pictures-view"])
    page.one("#pictures-input")
    page.one("#pictures-file button[aria-label='Clear']").click()
    page.upload(tmp_path / "orange.png")
    until(lambda: chosen() == "Draw", "the source")
    until(lambda: page.one("#pictures-editor canvas").size["height"] > 100, "the canvas")


def test_one_signal_of_one_entry_is_told_in_the_singular(page, tmp_path):
    (tmp_path / "one.csv").write_text("1.5\n")
    page.open_tab("Signals")
    page.upload(tmp_path / "one.csv", "signals")
    until(lambda: page.one("#signals-summary").text == "1 signal of 1 entry", "the summary")


def test_the_label_of_the_command_is_beside_the_copy_button_on_a_phone(server, page, tiny):
    denoise(page, tiny)
    page.wait_for("Done")
    page.browser.open(server.address, width=390, height=844, phone=True)
    until(lambda: page.browser.find(f"{CARDS} button"), "the card")[0].click()
    page.wait_for("Done")
    label, button = page.one("#pictures-command label").rect, page.one("#pictures-command button").rect
    assert label["x"] + label["width"] <= button["x"]
    assert page.browser.width_of_content() <= 390
