import io

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def scene():
    """Edges, lines and a texture, from a formula: detail at every position."""
    y, x = np.mgrid[:96, :96] / 96
    waves = 0.5 + 0.25 * np.sin(40 * (x + 0.5 * y)) * (x > 0.5)
    disc = (np.hypot(x - 0.35, y - 0.4) < 0.25) * 0.4
    bars = ((np.floor(10 * y) % 2) * (x < 0.2)) * 0.3
    return np.clip(waves + disc - bars, 0, 1)


@pytest.fixture(scope="session")
def bomb():
    """A file of some kilobytes with 400 million pixels."""
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, format="PNG")
    return file.getvalue()


@pytest.fixture
def program(roadict, monkeypatch, tmp_path):
    """Run the program in this process, in a folder of its own with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return roadict


def eight_bits(picture):
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)


def luma8(path):
    """Luma as in the literature: BT.601, 16 to 235, rounded to 8 bits. From Pillow's pixels, not our code's."""
    rgb = np.asarray(Image.open(path).convert("RGB")).astype(float)
    return np.rint(16 + rgb @ [65.481, 128.553, 24.966] / 255) / 255
