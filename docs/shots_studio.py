"""Take the picture of the studio for docs/studio.md, docs/images/studio.png, in Chromium.

    python docs/shots_studio.py

It starts a studio, fills the scratched sample, and takes the result from the headline to the loupe.
"""

import base64
import io
import signal
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.browser import browser  # noqa: E402
from tests.studio import driving  # noqa: E402
from tests.studio.driving import Page, Server, until  # noqa: E402

driving.GUARD = 600

WIDTH, COLOURS = 1400, 256


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        server = Server(Path(folder))
        try:
            page = Page(chromium, server.address)
            chromium.open(server.address, width=WIDTH, height=1000)
            until(lambda: len(chromium.find("#pictures-samples .thumbnail-item")) == 3, "the samples")
            until(lambda: _click_sample(page, 2), "the sample")
            page.one("#pictures-run").click()
            page.wait_for("Done")
            until(lambda: chromium.find("#pictures-view .rd-loupe[data-zoom]"), "the loupe")
            until(lambda: chromium.find("#pictures-details canvas.rd-heat"), "the places of an atom")
            _save(chromium, HERE / "images" / "studio.png")
        finally:
            server.stop(signal.SIGTERM)


def _click_sample(page: Page, index: int) -> bool:
    """Click a sample; before the page is ready a click is lost."""
    page.browser.find("#pictures-samples .thumbnail-item")[index].click()
    return "pixels" in page.one("#pictures-preview").text


def _save(chromium, path: Path) -> None:
    """Save the page from its top to the end of the atoms."""
    bottom = "return document.querySelector('#pictures-details .rd-explorer').getBoundingClientRect().bottom + scrollY"
    clip = {"x": 90, "y": 0, "width": WIDTH - 180, "height": chromium.run(bottom) + 16, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    shot = base64.b64decode(chromium.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
