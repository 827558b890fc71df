"""Take the pictures of pages in docs/images, in Chromium: of the site's home, of a result in the studio, of the report.

    python docs/screenshots.py home [docs/_build/html/index.html]
    python docs/screenshots.py report [docs/results/report.html]
    python docs/screenshots.py studio

It needs chromium and chromedriver. The studio is started, and fills its scratched sample.
"""

import base64
import io
import signal
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
IMAGES = HERE / "images"
sys.path.insert(0, str(HERE.parent))

from tests.browser import browser  # noqa: E402

PAGES = {"home": HERE / "_build" / "html" / "index.html", "report": HERE / "results" / "report.html"}
WIDTH, HEIGHT = 1400, 1000
FIGURES = "document.querySelector('.panels').scrollIntoView({block: 'center', behavior: 'instant'})"
PATIENCE = 600
"""Seconds for the studio's job."""


def take_home(page: Path, target: Path, *, dark: bool, chromium) -> None:
    """Save the first screen."""
    chromium.open(page.resolve().as_uri(), width=WIDTH, height=HEIGHT, dark=dark)
    _shot(chromium).save(target, quality=80)


def take_report(page: Path, target: Path, *, dark: bool, chromium) -> None:
    """Save the first screen, with contents and verdicts, and below it that of the first figures."""
    chromium.open(page.resolve().as_uri(), width=WIDTH, height=HEIGHT, dark=dark)
    shots = [_shot(chromium)]
    chromium.run(FIGURES)
    shots.append(_shot(chromium))
    whole = Image.new("RGB", (WIDTH, sum(picture.height for picture in shots)))
    for index, picture in enumerate(shots):
        whole.paste(picture, (0, index * HEIGHT))
    whole.save(target, quality=80)


def take_studio(target: Path, chromium) -> None:
    """Save a result, from the headline to the end of the atoms."""
    from tests.studio import driving

    driving.GUARD = PATIENCE
    with tempfile.TemporaryDirectory() as folder:
        server = driving.Server(Path(folder))
        try:
            page = driving.Page(chromium, server.address)
            chromium.open(server.address, width=WIDTH, height=HEIGHT)
            driving.until(lambda: len(chromium.find("#pictures-samples .thumbnail-item")) == 3, "the samples")
            driving.until(lambda: _click_sample(page, 2), "the sample")
            page.one("#pictures-run").click()
            page.wait_for("Done")
            driving.until(lambda: chromium.find("#pictures-view .rd-loupe[data-zoom]"), "the loupe")
            driving.until(lambda: chromium.find("#pictures-details canvas.rd-heat"), "the places of an atom")
            driving.until(lambda: chromium.find("#runs .rd-card:not(.rd-live)"), "the past run")
            _whole(chromium).save(target, quality=80)
        finally:
            server.stop(signal.SIGTERM)


def _click_sample(page, index: int) -> bool:
    """Click a sample; before the page is ready a click is lost."""
    page.browser.find("#pictures-samples .thumbnail-item")[index].click()
    return "pixels" in page.one("#pictures-preview").text


def _shot(chromium) -> Image.Image:
    """What the window shows."""
    return Image.open(io.BytesIO(chromium.driver.get_screenshot_as_png())).convert("RGB")


def _whole(chromium) -> Image.Image:
    """The studio's page from its top to the end of the atoms."""
    bottom = "return document.querySelector('#pictures-details .rd-explorer').getBoundingClientRect().bottom + scrollY"
    clip = {"x": 90, "y": 0, "width": WIDTH - 180, "height": chromium.run(bottom) + 16, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    shot = base64.b64decode(chromium.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    return Image.open(io.BytesIO(shot)).convert("RGB")


def main(name: str, *given: str) -> None:
    """Take the pictures of one page, in both themes unless it is the studio's."""
    with browser("--hide-scrollbars") as chromium:
        if name == "studio":
            take_studio(IMAGES / "studio.webp", chromium)
            return
        page = Path(given[0]) if given else PAGES[name]
        if not page.is_file():
            sys.exit(f"{page} does not exist; make it by make docs or roadict report, or name another page")
        take = take_home if name == "home" else take_report
        for theme in ("light", "dark"):
            take(page, IMAGES / f"{name}-{theme}.webp", dark=theme == "dark", chromium=chromium)


if __name__ == "__main__":
    if sys.argv[1:2] not in (["home"], ["report"], ["studio"]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
