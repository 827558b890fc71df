"""The studio in a real browser: a real server, real files, real clicks."""

import re
import shlex
import signal
import socket
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from skimage.data import camera

from roadict import load
from roadict.pictures import SuperResolution
from roadict.pictures.upscaling import _key, bundled_pictures
from roadict.synthetic import planted

from .driving import PHONE, WIDE, Page, Server, until


@pytest.fixture
def repeat(roadict, monkeypatch, tmp_path):
    """Run the command that the page shows, in the folder of the test; returns its output file."""

    def run(command):
        monkeypatch.chdir(tmp_path)
        program, *arguments = shlex.split(command)
        assert program == "roadict"
        assert roadict(*arguments, "-q") == (0, "", "")
        return tmp_path / arguments[arguments.index("-o") + 1]

    return run


def command_of(page, tab="pictures"):
    return page.one(f"#{tab}-command .cm-content").text.replace("\n", "")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height", "phone"), [WIDE, PHONE])
def test_it_opens_everywhere(page, server, width, height, phone, dark):
    page.browser.open(server.address, width=width, height=height, phone=phone, dark=dark)
    for tab in ("pictures", "signals"):
        until(lambda: page.browser.find("button[role=tab]"), "the tabs")
        page.open_tab(tab.capitalize())
        until(lambda: page.one(f"#{tab}-run").is_displayed(), tab)  # noqa: B023
        assert page.browser.width_of_content() <= width
        assert page.browser.run("return document.body.classList.contains('dark')") == dark
    assert page.errors() == []


def test_a_picture_is_denoised_as_on_the_command_line(page, tiny, repeat, tmp_path):
    page.upload(tiny)
    until(lambda: "24 × 24 pixels, grey, 8 bits" in page.one("#pictures-preview").text, "the preview")
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    shares, drawn = set(), set()

    def done():
        panel = page.panel().get_attribute("innerHTML")
        shares.update(part.split('"')[0] for part in panel.split('aria-valuenow="')[1:])
        drawn.update(name for name in ("<svg", "<img") if name in panel)
        return "<strong>Done" in panel

    until(done, "the result")
    assert len(shares) > 2  # the progress moved
    assert drawn == {"<svg", "<img"}  # the objective and the atoms were shown
    assert "estimated" in page.panel().text
    assert len(until(lambda: page.browser.find("#pictures-slider img"), "the slider")) == 2
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    picture = page.download("pictures-result", downloads)
    command = page.download("pictures-script", downloads).read_text()
    assert command.strip() == command_of(page)
    assert picture.name == "tiny-denoised.png"
    assert picture.read_bytes() == repeat(command).read_bytes()


def test_a_mask_is_drawn_and_its_pixels_filled(page, tiny, repeat, tmp_path):
    from selenium.webdriver import ActionChains

    page.choose("pictures-task", "Inpaint")
    page.upload(tiny)
    canvas = page.one("#pictures-editor canvas")
    until(lambda: canvas.size["height"] > 100, "the canvas")
    page.browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    # What is drawn before the canvas is ready is lost: draw until the page has it.
    page.one("#pictures-run").click()
    assert "Nothing is drawn yet" in page.wait_for("That did not work")

    def drawn():
        ActionChains(page.driver).move_to_element(canvas).click_and_hold().move_by_offset(20, 5).release().perform()
        return page.browser.find("#pictures-editor button[aria-label='Undo']:not([disabled])")

    def started():
        """Click until the page has what was drawn, which it sends a little later."""
        page.one("#pictures-run").click()
        end = time.monotonic() + 10
        while refused := page.panel_text().startswith("That did not work"):
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        return not refused

    until(drawn, "something drawn")
    until(started, "the job")
    assert "pixels are missing" in page.wait_for("Done")
    mask = page.download("pictures-mask", tmp_path)
    picture = page.download("pictures-result", tmp_path).read_bytes()
    assert "--mask tiny-mask.png" in command_of(page)
    missing = np.asarray(Image.open(mask)) > 0
    assert missing.shape == (24, 24)
    assert missing[12, 12]
    assert not missing[[0, 0, -1, -1], [0, -1, 0, -1]].any()
    assert picture == repeat(command_of(page)).read_bytes()
    page.one("#pictures-file button[aria-label='Clear']").click()
    until(lambda: canvas.size["height"] == 0, "the canvas to go with its picture")


def test_the_marked_pixels_of_a_mask_file_are_filled(page, tiny, repeat, tmp_path):
    pixels = np.zeros((24, 24), np.uint8)
    pixels[5:8, 10:20] = 255
    # Of the same name as the picture: it must not replace it, and is downloaded under the name in the command.
    (tmp_path / "masks").mkdir()
    Image.fromarray(pixels).save(tmp_path / "masks" / "tiny.png")
    page.upload(tiny)
    page.choose("pictures-task", "Inpaint")
    # Gradio's canvas logs errors when it is removed before it is ready.
    until(lambda: page.one("#pictures-editor canvas").size["height"] > 100, "the canvas")
    page.choose("pictures-source", "Mask file")
    page.one("#pictures-run").click()
    assert "There is no mask file" in page.wait_for("That did not work")
    page.upload(tmp_path / "masks" / "tiny.png", "pictures-mask")
    page.one("#pictures-run").click()
    until(lambda: "That did not work" not in page.panel().text, "the job")
    assert "30 of 576 pixels are missing" in page.wait_for("Done")
    assert len(until(lambda: page.browser.find("#pictures-slider img"), "the slider")) == 2
    assert "--mask tiny-mask.png" in command_of(page)
    picture = page.download("pictures-result", tmp_path).read_bytes()
    mask = page.download("pictures-mask", tmp_path)
    assert (mask.name, np.array_equal(np.asarray(Image.open(mask)), pixels)) == ("tiny-mask.png", True)
    assert picture == repeat(command_of(page)).read_bytes()


@pytest.fixture
def trained(server):
    """A model in the studio's cache, trained in one iteration under the name of the default one."""
    model = SuperResolution(3, max_iter=1, random_state=0).fit([camera()[:64, 160:224]])
    model.max_iter = SuperResolution(3).max_iter
    path = server.cache / f"upscale-x3-{_key(model, bundled_pictures())}.npz"
    model.save(path)
    yield path
    path.unlink()


def test_a_picture_is_enlarged_as_on_the_command_line(page, server, trained, tiny, repeat, tmp_path, monkeypatch):
    page.upload(tiny)
    page.one("#pictures-run").click()
    text = page.wait_for("Done")
    assert f"model from {trained.name}" in text  # and not where it is
    assert "picture of 72 x 72 pixels" in text
    assert "Bicubic (left)" in page.one("#pictures-slider").text
    sizes = "return [...document.querySelectorAll('#pictures-slider img')].map(image => image.naturalWidth)"
    until(lambda: page.browser.run(sizes) == [72, 72], "the slider")
    assert "256 of 512 atoms, most used first" in page.one("#pictures-details .rd-explorer").text
    (tmp_path / "downloads").mkdir()
    picture = page.download("pictures-result", tmp_path / "downloads")
    assert picture.name == "tiny-enlarged.png"
    monkeypatch.setenv("XDG_CACHE_HOME", server.environment["XDG_CACHE_HOME"])
    assert picture.read_bytes() == repeat(command_of(page)).read_bytes()


def test_signals_are_learned_as_on_the_command_line(page, repeat, tmp_path):
    path = tmp_path / "signals.csv"
    made = planted(120, 8, 10, sparsity=2, random_state=0)
    np.savetxt(path, np.abs(made.codes) @ made.dictionary, delimiter=",")
    page.open_tab("Signals")
    page.upload(path, "signals")
    until(lambda: "120 signals of 8 entries" in page.one("#signals-summary").text, "the summary")
    atoms = page.one("#signals-components textarea, #signals-components input")
    atoms.clear()
    atoms.send_keys("10")
    page.choose("signals-signs", "Codes nonnegative")
    np.save(tmp_path / "known.npy", made.dictionary[:2])
    options = lambda: [button for button in page.browser.find("button") if button.text.startswith("More options")]  # noqa: E731
    until(options, "the options")[0].click()
    page.upload(tmp_path / "known.npy", "signals-fixed")
    page.one("#signals-run").click()
    assert "120 signals of 8 entries" in page.wait_for("Done", "signals")
    captions = [caption.text for caption in page.browser.find("#signals-details figcaption")]
    assert [re.split("[:. ]", caption)[0] for caption in captions] == ["Residuals", "Objective", "Share"]
    (tmp_path / "downloads").mkdir()
    model = page.download("signals-result", tmp_path / "downloads")
    assert "-k 10 --positive codes --fixed known.npy" in command_of(page, "signals")
    again = repeat(command_of(page, "signals"))
    with np.load(model) as learned, np.load(again) as expected:
        assert learned.keys() == expected.keys()
        for name in learned.keys() - {"history_seconds"}:
            np.testing.assert_array_equal(learned[name], expected[name])


def test_missing_entries_are_reported_and_allowed_by_a_tick(page, tmp_path):
    path = tmp_path / "holes.csv"
    rows = planted(60, 6, 8, sparsity=2, random_state=0).data.astype(str)
    rows[::20, 1] = ""
    path.write_text("\n".join(",".join(row) for row in rows))
    page.open_tab("Signals")
    page.upload(path, "signals")
    until(lambda: "60 signals of 6 entries; 3 are missing" in page.one("#signals-summary").text, "the summary")
    page.one("#signals-run").click()
    sentence = "holes.csv lacks 3 of its entries; fill them, or tick “Empty cells and NaN are missing entries”"
    assert sentence in page.wait_for("That did not work", "signals")
    page.one("#signals-missing input").click()
    page.one("#signals-run").click()
    until(lambda: "That did not work" not in page.panel("signals").text, "the job")
    page.wait_for("Done", "signals")
    assert "--missing" in command_of(page, "signals")


def test_a_second_page_waits_and_runs_after_a_cancel(page, server, tiny, large):
    page.upload(large)
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    page.wait_for("Denoising")
    (job,) = server.jobs()
    page.driver.switch_to.new_window("tab")
    second = Page(page.browser, server.address)
    second.upload(tiny)
    second.choose("pictures-task", "Denoise")
    second.one("#pictures-run").click()
    assert "One job is ahead" in second.wait_for("Waiting in the queue")
    assert server.jobs() == [job]
    page.driver.switch_to.window(page.tab)
    page.one("#pictures-cancel").click()
    page.wait_for("Cancelled")
    until(lambda: job not in server.jobs(), "the machine to be free")
    page.driver.switch_to.window(second.tab)
    second.wait_for("Done")
    page.driver.close()
    page.driver.switch_to.window(page.tab)


def test_a_job_that_is_stopped_shows_what_it_has(page, tmp_path):
    np.save(tmp_path / "long.npy", planted(2000, 32, 64, sparsity=6, snr_db=20, random_state=0).data)
    page.open_tab("Signals")
    page.upload(tmp_path / "long.npy", "signals")
    page.one("#signals-run").click()
    until(lambda: page.browser.find("#signals-panel svg"), "the first iterations")
    page.one("#signals-keep").click()
    assert "interrupted after" in page.wait_for("Stopped", "signals")
    until(lambda: not page.browser.find("#signals-keep"), "the button to go")
    assert load(page.download("signals-result", tmp_path)).stop_reason_ == "interrupted"


def no_picture(path):
    path.write_text("Dear diary")


def too_wide(path):
    Image.new("1", (60_000, 6_000)).save(path)


@pytest.mark.parametrize(
    ("name", "write", "sentence"),
    [
        ("notes.txt", no_picture, "notes.txt is no picture in a format that roadict reads; convert it to PNG"),
        ("wide.png", too_wide, "wide.png has more than 268,435,456 pixels"),
    ],
)
def test_a_bad_file_is_refused_with_a_sentence(page, tmp_path, name, write, sentence):
    write(tmp_path / name)
    page.upload(tmp_path / name)
    until(lambda: sentence in page.one("#pictures-preview").text, "the sentence")
    page.one("#pictures-run").click()
    assert sentence in page.wait_for("That did not work")


def test_too_large_a_file_is_refused(page, server, tmp_path):
    path = tmp_path / "huge.png"
    path.write_bytes(bytes(129 << 20))
    page.send(path)
    until(lambda: "maximum" in page.one("body").text.lower(), "the refusal")
    assert not [file for file in server.files() if file.name == "huge.png"]


def test_only_this_machine_is_served(server):
    port = urlsplit(server.address).port
    assert urlsplit(server.address).hostname == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_the_next_start_removes_the_files_of_a_killed_studio(killed, server):
    _, left = killed
    assert left
    assert not [path for path in left if path.exists()]


def test_a_studio_terminated_during_a_job_leaves_no_files(chromium, server, large):
    """Nor does it touch another studio with the same folder for temporary files."""
    held = server.files()
    (lock,) = [file for file in held if file.suffix == ".lock"]
    another = Server(server.folder)
    page = Page(chromium, another.address)
    page.upload(large)
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    page.wait_for("Denoising")
    (job,) = another.jobs()
    assert [file for file in another.files() if file.name == "large.png" and file not in held]
    assert another.stop(signal.SIGTERM) == (128 + signal.SIGTERM, "")
    until(lambda: not alive(job), "the end of the job")
    assert lock.exists()
    assert set(server.files()) <= set(held)
    chromium.driver.get("about:blank")
    chromium.console_errors()  # of a page whose server has gone


def test_ctrl_c_leaves_one_line_and_past_runs_only(chromium, needs_gradio, tmp_path, tiny):
    folder = tmp_path / "studio"
    folder.mkdir()
    studio = Server(folder)
    page = Page(chromium, studio.address)
    page.upload(tiny)
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    page.wait_for("Done")
    assert studio.files()
    line = "roadict: error: the studio has stopped; finished runs are kept for a week\n"
    assert studio.stop(signal.SIGINT) == (130, line)
    assert studio.files() == []
    assert len(list((studio.cache / "studio").iterdir())) == 1
    chromium.driver.get("about:blank")
    chromium.console_errors()  # of a page whose server has gone


def alive(number):
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
