"""A real Chromium for tests of pages: what it shows, what it complains of, and what it asks the network for."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
)
INSIDE = ("data:", "blob:", "chrome:", "devtools:", "about:")


def missing():
    """Say why there is no browser, or return an empty text."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "needs selenium: pip install 'roadict[dev]'"
    if CHROMIUM is None or DRIVER is None:
        return "needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"
    return ""


class Browser:
    """A page open in Chromium; ``driver`` is Selenium's."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, address, *, width=1200, height=900, phone=False, dark=False):
        """Load a page in a window of that size; what was said and asked for before is forgotten."""
        from selenium.webdriver.support.ui import WebDriverWait

        emulate = self.driver.execute_cdp_cmd
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        emulate("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        emulate("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.complaints()
        self.requests()
        self.driver.get(address)
        # On a busy machine the driver now and then answers before the page is there.
        there = "return location.href != 'about:blank' && document.readyState == 'complete'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(there))

    def run(self, script, *arguments):
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        """All elements that a CSS selector matches."""
        return self.driver.find_elements("css selector", selector)

    def complaints(self):
        """Errors and warnings of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Addresses that were asked for since the last call, but for what lies inside the page."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return [address for address in asked if not address.startswith(INSIDE)]

    def width_of_content(self):
        """Pixels that the page is wide; more than the window means that it scrolls sideways."""
        return self.run("return document.documentElement.scrollWidth")


@contextmanager
def browser():
    """Start Chromium with a profile of its own; it ends with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        # The driver is named, so that Selenium does not look for one on the network.
        driver = webdriver.Chrome(options=options, service=Service(DRIVER, env={**os.environ, "HOME": profile}))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
