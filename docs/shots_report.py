"""Take pictures of the report, light and dark, for the README and the site.

``python docs/shots_report.py [REPORT.html]`` writes images/report-light.webp and images/report-dark.webp: the first
screen, with contents and verdicts, above the first figures. The page is docs/results/report.html unless one is named.
It needs chromium and chromedriver.
"""

import io
import sys
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "tests"))

from browser import browser  # noqa: E402

PAGE = FOLDER / "results" / "report.html"
WIDTH, HEIGHT = 1400, 1000
FIGURES = "document.querySelector('.panels').scrollIntoView({block: 'center', behavior: 'instant'})"


def take(page, target, *, dark, chromium):
    """Save the first screen and that of the first figures, one above the other."""
    chromium.open(page.resolve().as_uri(), width=WIDTH, height=HEIGHT, dark=dark)
    shots = [shot(chromium)]
    chromium.run(FIGURES)
    shots.append(shot(chromium))
    whole = Image.new("RGB", (WIDTH, sum(picture.height for picture in shots)))
    for index, picture in enumerate(shots):
        whole.paste(picture, (0, index * HEIGHT))
    whole.save(target, quality=80)


def shot(chromium):
    """What the window shows."""
    return Image.open(io.BytesIO(chromium.driver.get_screenshot_as_png())).convert("RGB")


if __name__ == "__main__":
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    if not page.is_file():
        sys.exit(f"{page} does not exist; write it by roadict report, or name another page")
    with browser() as driver:
        for theme in ("light", "dark"):
            take(page, FOLDER / "images" / f"report-{theme}.webp", dark=theme == "dark", chromium=driver)
