import importlib.util
import signal

import numpy as np
import pytest
from PIL import Image

from .driving import Page, Server


@pytest.fixture(scope="session")
def needs_gradio():
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("needs Gradio: pip install 'roadict[studio]'")


@pytest.fixture(scope="session")
def killed(needs_gradio, tmp_path_factory):
    """A studio that was killed, and the files that it has left."""
    server = Server(tmp_path_factory.mktemp("studio"))
    assert server.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    return server, server.files()


@pytest.fixture(scope="session")
def server(killed, chromium):
    """A studio for all tests, in the place of one that was killed; in the end Ctrl-C must leave one line and no files.

    A start takes seconds, so that tests of several studios make do with these.
    """
    running = Server(killed[0].folder)
    yield running
    assert running.files()
    assert running.stop(signal.SIGINT) == (130, "roadict: error: the studio has stopped; its files are gone\n")
    assert running.files() == []


@pytest.fixture
def page(chromium, server):
    """A fresh page; at the end nothing may have gone wrong in the browser, or have come from elsewhere."""
    opened = Page(chromium, server.address)
    yield opened
    assert opened.troubles() == []


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
    """A picture that takes many minutes: no patch of it is like another, and little of it looks like noise."""
    blocks = np.random.default_rng(1).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    path = tmp_path / "large.png"
    Image.fromarray(blocks.repeat(2, axis=0).repeat(2, axis=1)).save(path)
    return path
