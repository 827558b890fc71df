"""The gallery runs as it is, without warnings, and every example draws and says what to change."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


@pytest.fixture
def pyplot():
    """Matplotlib without windows, clean before and after."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def test_there_are_at_most_thirteen():
    assert 1 <= len(EXAMPLES) <= 13


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")  # plt.show() has nothing to show
def test_example(path, pyplot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    left = runpy.run_path(str(path))
    assert left["figure"].axes, "draws nothing"
    left["figure"].canvas.draw()
    assert not list(tmp_path.iterdir()), "leaves files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_to_change(path):
    text = path.read_text(encoding="utf-8")
    assert re.match(r'"""\n(\S.*)\n=+\n\n\S', text), "a title and a sentence come first"
    assert "# **With your own data**" in text
