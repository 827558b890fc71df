import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .driving import GUARD, Page, Server


@pytest.fixture(scope="session")
def needs_gradio():
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("needs Gradio: pip install 'roadict[studio]'")


@pytest.fixture(scope="session")
def killed(needs_gradio, tmp_path_factory):
    """A killed studio, and the files that it left behind."""
    server = Server(tmp_path_factory.mktemp("studio"))
    assert server.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    return server, server.files()


@pytest.fixture(scope="session")
def server(killed, chromium):
    """A studio for all tests, in the folder of a killed one, as a start takes seconds."""
    running = Server(killed[0].folder)
    yield running
    running.stop(signal.SIGINT)


@pytest.fixture(autouse=True)
def nothing_printed(request):
    """Check after each test of the studio for all tests that it has printed nothing: no warning, no traceback."""
    yield
    if "server" in request.fixturenames:
        assert request.getfixturevalue("server").printed() == ""


@pytest.fixture
def page(chromium, server):
    """A new page; at the end there must be no errors in the browser, and no requests to other hosts."""
    opened = Page(chromium, server.address)
    yield opened
    assert opened.errors() == []


@pytest.fixture
def tiny(tmp_path):
    """A noisy picture that takes a second or two."""
    y, x = np.mgrid[:24, :24]
    noise = np.random.default_rng(0).normal(0, 15, x.shape)
    path = tmp_path / "tiny.png"
    Image.fromarray(np.clip(120 + 60 * np.sin(x / 2) * np.cos(y / 3) + noise, 0, 255).astype(np.uint8)).save(path)
    return path


@pytest.fixture
def large(tmp_path):
    """A picture that takes many minutes: no two patches are similar, and few look like noise."""
    blocks = np.random.default_rng(1).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    path = tmp_path / "large.png"
    Image.fromarray(blocks.repeat(2, axis=0).repeat(2, axis=1)).save(path)
    return path


@pytest.fixture
def unseen(needs_gradio, tmp_path):
    """Return a function that gives what ``unseen_tab.py`` writes."""

    def run(tab, *given):
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("unseen_tab.py"), tmp_path, tab],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=3 * GUARD,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
