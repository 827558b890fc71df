"""Take pictures of the home page, light and dark, for the README and the site.

``python docs/screenshots.py docs/_build/html`` writes images/home-light.webp and images/home-dark.webp. It needs
chromium and chromedriver.
"""

import io
import sys
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "tests"))

from browser import browser  # noqa: E402

WIDTH, HEIGHT = 1400, 1000


def take(page, target, *, dark, driver):
    """Save a picture of a page's first screen."""
    driver.open(page.resolve().as_uri(), width=WIDTH, height=HEIGHT, dark=dark)
    picture = Image.open(io.BytesIO(driver.driver.get_screenshot_as_png())).convert("RGB")
    picture.save(target, quality=80)


if __name__ == "__main__":
    site = Path(sys.argv[1])
    with browser() as driver:
        for theme in ("light", "dark"):
            take(site / "index.html", FOLDER / "images" / f"home-{theme}.webp", dark=theme == "dark", driver=driver)
