"""A real Chromium for tests of pages: what it shows, its console messages, and its network requests."""

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
    """Return why there is no browser, or an empty text."""
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
        """Load a page in a window of that size; earlier messages and requests are discarded."""
        from selenium.webdriver.support.ui import WebDriverWait

        emulate = self.driver.execute_cdp_cmd
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        emulate("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        emulate("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.console_errors()
        self.requests()
        self.driver.get(address)
        # On a busy machine the driver sometimes responds before the page has loaded.
        loaded = "return location.href != 'about:blank' && document.readyState == 'complete'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(loaded))

    def run(self, script, *arguments):
        """Run a script and return its result."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        """Return all elements that match a CSS selector."""
        return self.driver.find_elements("css selector", selector)

    def show(self, element):
        """Scroll an element to the middle of the window."""
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        return element

    def drag(self, selector, right, down=0):
        """Drag the middle of an element."""
        from selenium.webdriver import ActionChains

        element = self.show(self.find(selector)[0])
        ActionChains(self.driver).click_and_hold(element).move_by_offset(right, down).release().perform()

    def swipe(self, element, right=0, down=0):
        """Put a finger on the middle of an element, move it, and lift it, all at once: a slow tap is a long press."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder
        from selenium.webdriver.common.actions.pointer_input import PointerInput

        actions = ActionBuilder(self.driver, mouse=PointerInput("touch", "finger"), duration=50)
        finger = actions.pointer_action.move_to(element).pointer_down()
        for _ in range(4 if right or down else 0):
            finger.move_by(right / 4, down / 4)
        finger.pointer_up()
        actions.perform()

    tap = swipe

    def console_errors(self):
        """Return the console's errors and warnings since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Return the addresses requested since the last call, except those inside the page."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        requested = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return [address for address in requested if not address.startswith(INSIDE)]

    def width_of_content(self):
        """Return the width of the page in pixels; above the window's it scrolls sideways."""
        return self.run("return document.documentElement.scrollWidth")


@contextmanager
def browser(*flags):
    """Start Chromium with its own profile, and with these flags; it is closed at the end of the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        # The driver is given, so that Selenium does not search for one on the network.
        driver = webdriver.Chrome(options=options, service=Service(DRIVER, env={**os.environ, "HOME": profile}))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
