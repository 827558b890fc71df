"""What needs a package that is not installed says so, and how to install it, before any work."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from program import assert_refused
from roadict import extras, load
from roadict.drawing.markup import _environment, render
from roadict.drawing.raster import png
from roadict.pictures import denoise, upscale
from roadict.plotting import atoms_figure, compare_atoms_figure, history_figure
from roadict.road.noise import EpsilonPath
from roadict.runs.history import COLUMNS, History
from roadict.synthetic import planted

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
DISTRIBUTIONS = {"PIL": "pillow", "skimage": "scikit-image", "pywt": "PyWavelets"}
THREE = "pillow, scikit-image and PyWavelets; install them"
PICTURE = np.zeros((9, 9))
HISTORY = History({name: [1.0, 0.5] for name in COLUMNS})
PATH = EpsilonPath(*(np.array([0.3, 0.1]) for _ in range(6)), chosen=1, exact=False)


@pytest.fixture
def without(monkeypatch):
    """Make imports of packages fail."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def brought_by(extra):
    """Distributions of an extra, those of the extras that it names included."""
    found = set()
    for line in EXTRAS[extra]:
        if line.startswith("roadict["):
            found |= {name for other in re.findall(r"[\w-]+", line)[1:] for name in brought_by(other)}
        else:
            found.add(re.match(r"[\w-]+", line)[0])
    return found


def uses():
    """The modules and the extra, "" if none is named, of every call of ``require`` in the package."""
    for path in (ROOT / "src" / "roadict").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "require":
                modules = [
                    name
                    for given in call.args[1:]
                    for name in (getattr(extras, given.value.id) if isinstance(given, ast.Starred) else [given.value])
                ]
                yield modules, call.keywords[0].value.value if call.keywords else ""


def test_every_extra_that_the_code_names_brings_what_it_names():
    checked = 0
    for modules, extra in uses():
        for module in modules:
            assert DISTRIBUTIONS.get(module, module) in brought_by(extra or extras._EXTRAS[module]), (module, extra)
            checked += 1
    assert checked > 30


@pytest.mark.parametrize(
    ("arguments", "hidden", "names", "extra"),
    [
        ("show model.npz -o atoms.png", ["matplotlib"], "matplotlib; install it", "plots"),
        ("demo --out folder", ["matplotlib"], "matplotlib; install it", "plots"),
        ("demo", ["tifffile", "jinja2"], "tifffile and jinja2; install them", "pictures,plots"),
        ("upscale a.png -o b.png", ["PIL"], "pillow; install it", "pictures"),
        (
            "denoise a.png -o b.png",
            ["PIL", "skimage", "pywt"],
            "pillow, scikit-image and PyWavelets; install them",
            "pictures",
        ),
        ("inpaint a.png -o b.png", ["tifffile"], "tifffile; install it", "pictures"),
        ("reproduce noisy", ["skimage"], "scikit-image; install it", "experiments"),
        ("report folder", ["jinja2"], "jinja2; install it", "experiments"),
        ("studio", ["gradio"], "gradio; install it", "studio"),
        ("studio", ["PIL"], "pillow; install it", "studio"),
    ],
)
def test_a_command_says_what_to_install_before_it_looks_at_its_files(
    roadict, without, tmp_path, monkeypatch, arguments, hidden, names, extra
):
    monkeypatch.chdir(tmp_path)
    without(*hidden)
    command = arguments.split()
    result = roadict(*command)
    assert_refused(result, f"roadict {command[0]} needs {names} with: pip install 'roadict[{extra}]'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("use", "package", "message"),
    [
        (HISTORY.plot, "matplotlib", "a figure needs matplotlib; install it with: pip install 'roadict[plots]'"),
        (PATH.plot, "matplotlib", "a figure needs matplotlib; install it with: pip install 'roadict[plots]'"),
        (lambda: atoms_figure(np.eye(4)), "matplotlib", "'roadict[plots]'"),
        (lambda: atoms_figure(np.eye(300, 3)), "matplotlib", "'roadict[plots]'"),
        (lambda: compare_atoms_figure(np.eye(4), np.eye(4)), "matplotlib", "'roadict[plots]'"),
        (lambda: history_figure(HISTORY), "matplotlib", "'roadict[plots]'"),
        (lambda: render("demo", "demo.html"), "jinja2", "a page needs jinja2; "),
        (lambda: png(PICTURE), "PIL", "a PNG file needs pillow; install it with: pip install 'roadict[pictures]'"),
        (HISTORY.to_frame, "pandas", "to_frame() needs pandas; install it with: pip install 'roadict[dataframe]'"),
        (PATH.to_frame, "pandas", "to_frame() needs pandas; install it with: pip install 'roadict[dataframe]'"),
        (lambda: denoise(PICTURE), "pywt", """denoise(sigma="auto") needs PyWavelets; """),
        (lambda: upscale(PICTURE), "skimage", "upscale() without train= or model= needs scikit-image; "),
    ],
)
def test_a_function_says_what_to_install(without, use, package, message):
    _environment.cache_clear()
    without(package)
    with pytest.raises(ModuleNotFoundError, match=re.escape(message)):
        use()


def test_a_chosen_number_of_atoms_is_saved_without_matplotlib(roadict, without, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", planted(80, 6, 4, sparsity=1, random_state=0).data)
    without("matplotlib")
    result = roadict("learn", "data.npy", "-k", "3:4", "-o", "model.npz", "--seed", 0)
    assert result.code == 0
    assert "  chosen\n" in result.out
    assert "curve" not in result.out
    first = result.err.splitlines()[0]
    assert first.startswith("roadict: warning: the curve of the choice is left out: it needs matplotlib; install it")
    assert {path.name for path in tmp_path.iterdir()} == {"data.npy", "model.npz"}
    with pytest.raises(ModuleNotFoundError, match="a figure needs matplotlib"):
        load("model.npz").plot()
