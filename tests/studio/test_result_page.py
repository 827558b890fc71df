"""Results in a real browser: charts, atoms and the loupe, wide and narrow, light and dark."""

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from skimage.data import camera

from roadict import ROAD, ROADCV
from roadict.pictures import SuperResolution
from roadict.studio import verdict
from roadict.studio.commands import learn_command, picture_command
from roadict.studio.jobs import Job, Owner
from roadict.studio.past import PastRuns
from roadict.synthetic import planted

from .driving import PHONE, until


def tooltip(page):
    shown = page.browser.find("#rd-tip.shown")
    return shown[0].text if shown else ""


def values_of(page, chart):
    """Text of the tooltip at the middle of a chart."""
    scroll_to(page, chart)

    def hovered():
        for right in (0, 2):  # again, as scrolling hides it
            ActionChains(page.driver).move_to_element_with_offset(chart, right, 0).perform()
        return tooltip(page)

    return until(hovered, "the values")


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
    order = ["#pictures-panel", "#pictures-slider", "#pictures-view", "#pictures-details"]
    page.check_everywhere("#pictures-view .rd-panel", order)
    place_of = """return ["before", "after", "difference", "map"].map(name => {
        const box = document.querySelector(`#pictures-view canvas[data-view=${name}]`).getBoundingClientRect();
        return [box.left, box.top, box.width]; })"""
    *views, small = page.browser.run(place_of)
    assert len({top for _, top, _ in views}) == 1  # side by side
    assert [left for left, *_ in views] == sorted({left for left, *_ in views})
    assert views[0][2] > 180
    assert small[1] < views[0][1]
    rings = [text.text.split(":")[0] for text in page.browser.find("#pictures-details g.mark text")]
    assert rings == ["atoms used", "atoms used"]

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
    ActionChains(page.driver).move_to_element_with_offset(canvas, -50, -50).click().perform()
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

    page.resize(PHONE, True)  # and by finger
    scroll_to(page, after)
    old = place()
    page.browser.swipe(after, -24, -16)
    assert place() == (old[0] + 3, old[1] + 2)
    scroll_to(page, buttons[2])
    page.browser.tap(buttons[2])
    until(lambda: shown().split(" used")[0] == buttons[2].get_attribute("aria-label").split(",")[0], "the tapped atom")
    chart = page.one("#pictures-details .rd-figures svg")
    scroll_to(page, chart)
    page.browser.tap(chart)
    assert until(lambda: tooltip(page), "the values").startswith("iteration ")


def test_signals_have_atoms_with_users_and_charts_with_values(page, tmp_path):
    np.save(tmp_path / "signals.npy", planted(120, 10, 12, sparsity=2, random_state=0).data)
    page.open_tab("Signals")
    page.upload(tmp_path / "signals.npy", "signals")
    page.enter("signals-components", "12")
    page.resize(PHONE, False)
    page.one("#signals-run").click()
    assert "relative error" in page.wait_for("Done", "signals")
    assert "-k 12" in page.one("#signals-command .cm-content").text
    top = "return document.querySelector('#signals-panel').getBoundingClientRect().top"
    until(lambda: -20 < page.browser.run(top) < 200, "the panel to be in sight")
    page.check_everywhere("#signals-view .rd-panel", ["#signals-panel", "#signals-view", "#signals-details"])
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
    assert "tolerance 10⁻⁴" in chart.text
    assert chart.find_element("css selector", "path.tolerance").is_displayed()
    assert len(page.browser.find("#signals-details g.mark circle")) == 2
    text = values_of(page, chart)
    assert text.startswith("iteration ")
    assert [line.split(" ")[0] for line in text.splitlines()[1:]] == ["primal", "dual", "data"]
    page.browser.run("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_LEFT)
    assert until(lambda: tooltip(page), "the values") != text

    page.click("#signals-stability input")  # a sample is learned with defaults, whatever was chosen before
    next(button for button in page.browser.find("button") if button.text == "400 planted signals").click()
    until(lambda: "400 signals of 16 entries" in page.one("#signals-summary").text, "the sample")
    until(lambda: not page.one("#signals-stability input").is_selected(), "the defaults")
    page.one("#signals-run").click()
    until(lambda: "planted atoms found\n32 of 32" in page.panel("signals").text, "the planted atoms")


@pytest.fixture
def doubtful_runs(server, tmp_path):
    """Past runs of the studio: one that has not converged, and one with a number from the data and an unstable atom."""
    data = planted(120, 8, 10, sparsity=2, snr_db=30, random_state=0).data
    with pytest.warns(UserWarning, match="has not converged") as caught:
        stopped = ROAD(10, epsilon=0.05, max_iter=3, n_init=1, random_state=0).fit(data)
    stopped.max_iter = None  # as in the studio
    chosen = ROADCV([8, 10], n_splits=1, random_state=0).fit(data)
    chosen.atom_stability_ = np.r_[0.42, np.ones(chosen.n_components_ - 1)]
    (tmp_path / "jobs").mkdir()
    past = PastRuns(tmp_path / "jobs", server.cache / "studio")
    for name, model in (("stopped.npy", stopped), ("chosen.npy", chosen)):
        job = Job(learn_command(name), past.new_folder(), Owner("signals", "none"))
        np.save(job.source, data)
        model.save(job.result)
        job.state = "done"
        job.status.lines = [f"roadict: warning: {caught[0].message}"] if model is stopped else []
        past.settle(job)
    yield chosen
    past.clear()


def test_what_is_to_be_doubted_is_marked_and_charts_tell_why(doubtful_runs, page):
    order = ["#signals-panel", "#signals-view", "#signals-details"]
    click = """const buttons = [...document.querySelectorAll("#runs .rd-card button")];
        const button = buttons.find(button => button.innerText.includes(arguments[0]));
        button?.click();
        return Boolean(button)"""
    until(lambda: page.browser.run(click, "stopped.npy"), "the run that has not converged")
    text = page.wait_for("Stopped before it converged", "signals")
    assert "--max-iter 20000" in text
    assert "max_iter" not in text
    border = "return getComputedStyle(document.querySelector('#signals-panel .rd-panel')).borderLeftColor"
    assert page.browser.run(border) == "rgb(161, 98, 7)"  # amber
    page.check_everywhere("#signals-panel .rd-panel", order)

    assert page.browser.run(click, "chosen.npy")
    page.wait_for("Done", "signals")
    until(lambda: len(page.browser.find("#signals-view .rd-doubted")) == 1, "the unstable atom")
    (doubted,) = page.browser.find("#signals-view .rd-doubted")
    assert "Atom 1, " in doubted.get_attribute("aria-label")
    assert doubted.get_attribute("aria-label").endswith("stability 0.42: not to be trusted")
    assert doubted.value_of_css_property("outline-style") == "dashed"
    assert "A dashed frame marks atoms that do not recur" in page.one("#signals-view").text
    page.check_everywhere("#signals-view .rd-panel", order)
    shown = {figure.text: figure for figure in page.browser.find("#signals-details figure")}
    for caption, values in {"Error of hidden entries by": " atoms\nerror ", "Stability, most": "atom "}.items():
        (figure,) = [figure for text, figure in shown.items() if caption in text]
        assert values in values_of(page, figure.find_element("css selector", "svg"))
    page.one("#signals-choose input").click()
    until(lambda: page.one("#signals-components").text.startswith(verdict.NUMBERS.strip("“”")), "the other field")
    assert verdict.FIND.strip("“”") in page.one("#signals-choose").text


@pytest.fixture
def upscaled_runs(server, tmp_path):
    """Past upscalings of a picture, by 2 with a model that was trained in the run, and by 3 with one of the cache."""
    past = PastRuns(tmp_path, server.cache / "studio")
    small = camera()[100:140, 200:250]
    for scale, said in ((2, "model saved in"), (3, "model from")):
        model = SuperResolution(scale, n_components=16, max_iter=1, random_state=0).fit([camera()[:64, 160:224]])
        model.save(tmp_path / f"model-{scale}.npz")
        job = Job(picture_command("upscale", f"by-{scale}.png", scale=scale), past.new_folder(), Owner("", ""))
        Image.fromarray(small).save(job.source)
        Image.fromarray(model.predict(small)).save(job.result)
        job.state, job.status.lines = "done", [f"{said} {tmp_path / f'model-{scale}.npz'}"]
        if scale == 2:
            job.status.runs, job.status.measures = [[3.0, 2.0]], {"primal": [0.2, 0.1], "error": [0.3, 0.2]}
            job.status.atoms = model.predictor_.atoms
        past.settle(job)
    yield
    past.clear()


def test_an_atom_of_an_upscaling_is_shown_large_with_its_places(upscaled_runs, page):
    click = """const button = [...document.querySelectorAll("#runs .rd-card button")].find(
        button => button.innerText.includes(arguments[0]));
        button?.click();
        return Boolean(button)"""
    details = lambda: page.browser.run("return document.querySelector('#pictures-details')?.innerText || ''")  # noqa: E731
    shown = lambda: page.one("#pictures-details .rd-atom").text  # noqa: E731
    drawn = """const [large, heat] = ["rd-large canvas", "rd-heat"].map(
        name => document.querySelector(`#pictures-details .${name}`));
        return heat && [large.width, large.clientWidth, heat.width, heat.height, +heat.dataset.covered]"""
    for scale, course in ((2, True), (3, False)):
        assert until(lambda: page.browser.run(click, f"by-{scale}.png"), "the run")  # noqa: B023
        until(lambda: ("How the run went" in details()) == course, "the details of this run")  # noqa: B023
        until(lambda: (page.browser.run(drawn) or [0])[0] == 3 * scale, "the first atom")  # noqa: B023
        assert "the detail that the model adds where a patch is most like it" in details()
        buttons, first = page.browser.find("#pictures-details .rd-grid button"), shown()
        assert len(buttons) == 16
        scroll_to(page, buttons[3])
        buttons[3].click()
        until(lambda: shown() != first, "another atom")  # noqa: B023
        name, text = buttons[3].get_attribute("aria-label").split(", ", 1)
        assert shown().startswith(f"{name} {text}")
        _, large, width, height, covered = page.browser.run(drawn)
        assert large > 60
        assert (width, height) == (50 * scale, 40 * scale)
        assert 0 < covered < 1
    for box in page.browser.find("#runs .rd-card input"):
        box.click()
    text = until(lambda: page.browser.find("#versus .rd-versus"), "the comparison")[0].text
    assert "The two pictures differ in size or colours." in text


@pytest.fixture(autouse=True)
def light(chromium):
    """Leave the window as it was."""
    yield
    chromium.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
