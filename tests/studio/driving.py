"""A studio in a process, and its page in a browser, as the tests drive them."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from selenium.common.exceptions import StaleElementReferenceException

WIDE, PHONE = (1400, 1000, False), (390, 800, True)
"""Width, height, and whether it is a phone."""
GUARD = 120
"""Timeout in seconds; nothing takes so long, except on a busy machine."""


def until(question, what):
    """Poll until the answer is true."""
    end = time.monotonic() + GUARD
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"waited {GUARD} s for {what}")


class Server:
    """A studio in a process of its own, with a home and a folder for temporary files of its own.

    What it prints goes to a file, which can be read while it runs.
    """

    def __init__(self, folder):
        self.folder = folder
        self.home, self.temporary, self.here = (folder / name for name in ("home", "tmp", "here"))
        for path in (self.home, self.temporary, self.here):
            path.mkdir(exist_ok=True)
        folders = {"HOME": self.home, "TMPDIR": self.temporary, "XDG_CACHE_HOME": self.home / "cache"}
        # Reuse compiled kernels; only the studio's own files should be new.
        caches = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""), "MPLCONFIGDIR": str(folder)}
        environment = os.environ | {name: str(path) for name, path in folders.items()} | caches
        self.environment = {name: value for name, value in environment.items() if value}
        number, name = tempfile.mkstemp(suffix=".log", dir=folder)
        self._log, self._read = Path(name), 0
        with open(number, "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "roadict", "studio", "--no-browser"],
                cwd=self.here,
                env=self.environment,
                stderr=log,
            )
        # Where ports are taken, the address is not in the first line.
        found = until(lambda: self.process.poll() is not None or self._address(), "the start of the studio")
        assert found is not True, f"the studio did not start: {self._log.read_text()}"
        self.address = found
        self.printed()

    def jobs(self):
        """Process numbers of the jobs that run."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return [number for task in tasks.iterdir() for number in (task / "children").read_text().split()]

    @property
    def cache(self):
        """Folder of what outlives it: past runs, and the model for upscaling."""
        return self.home / "cache" / "roadict"

    def files(self):
        """All files in its folders, except those that are to outlive it."""
        found = [path for folder in (self.home, self.temporary, self.here) for path in folder.rglob("*")]
        return [path for path in found if not path.is_relative_to(self.home / "cache")]

    def printed(self):
        """Return what it has printed since the last call."""
        text = self._log.read_text()
        fresh, self._read = text[self._read :], len(text)
        return fresh

    def stop(self, number):
        """Stop it; returns its exit code and what it printed since the last look."""
        self.process.send_signal(number)
        return self.process.wait(GUARD), self.printed()

    def _address(self):
        found = re.search(r"http://\S+ .*\n", self._log.read_text())  # a whole line
        return found and found[0].split()[0]


class Page:
    """The studio's page in the current tab of a browser."""

    def __init__(self, browser, address):
        self.browser = browser
        self.driver = browser.driver
        self.address = address
        self.tab = self.driver.current_window_handle
        self._errors = []
        # As if no form had been filled in before; the page of the last test could still save its own.
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "local_storage"})
        browser.open(address, height=1400)
        # The samples load last; before them the page handles no events.
        until(lambda: browser.run("return [...document.images].some(image => image.naturalWidth > 0)"), "the page")

    def one(self, selector):
        return until(lambda: self.browser.find(selector), selector)[0]

    def click(self, selector):
        """Click the first such element, also if the page replaces it after it was found."""

        def clicked():
            try:
                self.one(selector).click()
            except StaleElementReferenceException:
                return False
            return True

        until(clicked, selector)

    def upload(self, path, tab="pictures"):
        self.send(path, tab)
        # In one script: the page may replace the element between finding it and reading it.
        read = "const file = document.querySelector(arguments[0]); return file ? file.innerText : ''"
        until(lambda: path.name in self.browser.run(read, f"#{tab}-file").replace("\n", ""), "the upload")

    def send(self, path, tab="pictures"):
        """Drop a file without waiting, instead of the one that is there."""

        def sent():
            try:
                for clear in self.browser.find(f"#{tab}-file button[aria-label='Clear']"):
                    clear.click()
                self.one(f"#{tab}-file input[type=file]").send_keys(str(path))
            except StaleElementReferenceException:  # replaced by a page that is still filling in its form
                return False
            return True

        until(sent, f"the field for {path.name}")

    def reload(self):
        """Load the page again; that its last events are cut off is no error."""
        self._errors += self._severe()
        self.driver.refresh()
        self._severe()

    def choose(self, group, label):
        named = lambda: [item for item in self.browser.find(f"#{group} label") if item.text.strip() == label]  # noqa: E731
        until(named, label)[0].click()

    def enter(self, field, text):
        """Replace the text of a field."""
        box = self.one(f"#{field} input, #{field} textarea")
        box.clear()
        box.send_keys(text)

    def panel(self, tab="pictures"):
        return self.one(f"#{tab}-panel .rd-panel")

    def panel_text(self, tab="pictures"):
        """Text of the panel, read in one script: the page may replace the element between finding it and reading it."""
        read = "const panel = document.querySelector(arguments[0]); return panel && panel.innerText"
        return self.browser.run(read, f"#{tab}-panel .rd-panel") or ""

    def wait_for(self, title, tab="pictures"):
        """Wait until the panel has this title; returns its text."""

        def shown():
            text = self.panel_text(tab)
            assert title == "That did not work" or "That did not work" not in text, text
            return text if text.startswith(title) else None

        return until(shown, title)

    def download(self, button, folder):
        """Click and return the file."""
        before = set(folder.iterdir())
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        self.one(f"#{button}").click()

        def fresh():  # Chromium first makes an empty file of the name
            done = [path for path in set(folder.iterdir()) - before if path.suffix != ".crdownload"]
            return [path for path in done if path.exists() and path.stat().st_size]

        return until(fresh, "the download")[0]

    def open_tab(self, name):
        next(tab for tab in self.browser.find("button[role=tab]") if tab.text == name).click()

    def resize(self, size, dark):
        """Show the same page in another window and in other colours."""
        width, height, phone = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        now = "return [innerWidth, document.body.classList.contains('dark')]"
        until(lambda: self.browser.run(now) == [width, dark], "the window")

    def check_everywhere(self, coloured, order=()):
        """Wide and narrow, light and dark: no sideways scrolling, and parts in this order from top to bottom.

        The background of the element ``coloured`` must be that of the page. Afterwards the page is wide and light.
        """
        tops = "return arguments[0].map(s => document.querySelector(s).getBoundingClientRect().top)"
        colour = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        seen = set()
        for size in (WIDE, PHONE):
            for dark in (False, True):
                self.resize(size, dark)
                assert self.browser.width_of_content() <= size[0]
                found = self.browser.run(tops, list(order))
                assert found == sorted(found)
                seen.add(self.browser.run(colour, coloured))
        assert len(seen) == 2  # light and dark
        self.resize(WIDE, False)

    def errors(self):
        """Errors of the console, and requests to other hosts than the studio."""
        return [
            *self._errors,
            *self._severe(),
            *(url for url in self.browser.requests() if urlsplit(url).netloc != urlsplit(self.address).netloc),
        ]

    def _severe(self):
        """Errors of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
