"""What people see on a terminal: one bar of the whole job, and lines that stand alone."""

import os
import re

import numpy as np
import pytest

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from skimage import data

from roadict.pictures.files import write_picture
from roadict.synthetic import planted
from screen import Screen, on_screen

WIDTHS = (80, 100, 120)
BAR = r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] {verb} ━{{{length}}} +(\d+) %(?:  .*)?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("screen")
    np.save(path / "data.npy", planted(200, 10, 14, sparsity=2, snr_db=20, random_state=0).data)
    noisy = data.camera()[100:124, 100:124] + np.random.default_rng(0).normal(0, 20, (24, 24))
    write_picture(path / "noisy.png", np.clip(noisy, 0, 255).astype(np.uint8))
    return path


def percents(screen, verb):
    """The percentages of the bar, which must show itself in every frame within the width; ``verb``: a pattern."""
    found = []
    for frame in filter(None, screen.frames):
        matched = re.fullmatch(BAR.format(verb=verb, length=min(30, screen.width // 4)), frame)
        assert matched, frame
        assert len(frame) <= screen.width
        found.append(int(matched[1]))
    return found


def assert_lines(screen, *patterns):
    """Exactly these lines are left on the screen, each by itself."""
    assert len(screen.lines) == len(patterns), screen.lines
    for line, pattern in zip(screen.lines, patterns, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)


LEARNED = r"(?:converged|max_iter) after \d+ iterations[^:]*: objective [\d.]+, .* of 14 atoms unused"


@pytest.mark.parametrize("width", WIDTHS)
def test_learn(folder, width):
    code, screen = on_screen(width, "learn", "data.npy", "-k", 14, "-o", "out.npz", "--seed", 0, cwd=folder)
    assert code == 0
    shares = percents(screen, "learning")
    assert len(shares) > 3
    assert shares == sorted(shares), "the bar is of the whole fit, and never goes back"
    assert any("noise level, round " in frame for frame in screen.frames)
    assert_lines(
        screen,
        "data.npy: 200 samples of 10 features, float64",
        LEARNED,
        r"the noise level follows from the data: epsilon 0\.\d+",
        "model: out.npz",
    )


@pytest.mark.parametrize(("width", "settings"), [(0, {}), (0, {"COLUMNS": "0"}), (100, {"COLUMNS": "0"})])
def test_a_width_of_0_is_unknown(folder, width, settings):
    arguments = ("learn", "data.npy", "-k", 14, "-o", "out.npz", "--seed", 0)
    code, screen = on_screen(width, *arguments, cwd=folder, **settings)
    assert code == 0
    assert len(percents(screen, "learning")) > 3
    assert screen.lines[0] == "data.npy: 200 samples of 10 features, float64"


@pytest.mark.parametrize("width", WIDTHS)
def test_denoise(folder, width):
    code, screen = on_screen(width, "denoise", "noisy.png", "-o", "clean.png", cwd=folder)
    assert code == 0
    shares = percents(screen, "denoising")
    assert len(shares) > 3
    assert shares == sorted(shares), "the bar is of all stages, and never goes back"
    assert_lines(screen, r"sigma [\d.]+ of 255 \(estimated\)", "picture of 24 x 24 pixels: clean.png")


def test_demo(folder):
    code, screen = on_screen(80, "demo", "--out", "demo", cwd=folder)
    assert code == 0
    shares = percents(screen, "(?:learning|enlarging a picture)")
    assert shares == sorted(shares), "one bar after the other, of one command"
    assert any("enlarging a picture" in frame for frame in screen.frames)
    assert_lines(
        screen,
        "400 samples of 16 features, each a combination of 3 of 32 hidden atoms",
        r"32 of 32 atoms found in [\d.]+ s(?: \(plus [\d.]+ s to compile, first run only\))?",
        r"all 32 atoms found, largest error \de-\d\d",
        r"objective [\d.]+ \(of the planted codes: [\d.]+\)",
        LEARNED.replace("14", "32"),
        r"model: demo.model\.npz",
        r"true and learned atoms: demo.atoms\.png",
        r"convergence: demo.convergence\.png",
        r"page: demo.demo\.html",
    )


@pytest.mark.parametrize("width", [20, 40])
def test_narrow_terminals(folder, width):
    arguments = ("learn", "data.npy", "-k", 14, "-o", "out.npz", "--seed", 0)
    code, screen = on_screen(width, *arguments, cwd=folder)
    assert code == 0
    assert all(len(frame) <= width for frame in screen.frames)
    if width == 40:
        assert percents(screen, "learning")
    assert [line.split()[0] for line in screen.lines][::3] == ["data.npy:", "model:"]


def test_a_terminal_that_cannot_rewrite_gets_plain_lines(folder):
    arguments = ("learn", "data.npy", "-k", 14, "-o", "out.npz", "--seed", 0)
    _, screen = on_screen(80, *arguments, cwd=folder, TERM="dumb")
    assert screen.frames == []
    assert screen.lines[-1] == "model: out.npz"


def test_the_screen_of_these_tests_shows_glued_lines():
    screen = Screen(10)
    screen.feed("bar\r\x1b[2Kbar 2next line\r\nmore\r\n\x1b[1A\x1b[2Kup\r\n")
    assert screen.frames == ["bar", "more"]
    assert screen.lines == ["bar 2next line", "up"]
