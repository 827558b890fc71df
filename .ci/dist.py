"""Build the sdist and the wheel, check them, and try the wheel in fresh environments outside the repository.

make dist                                            # with the Python of .venv
make dist ARGS="--python python3.12 --python python3.13"
make dist ARGS="--extra studio"                      # the studio's packages as well
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

SMOKE = """
import importlib.util, pathlib, sys
import numpy as np
import roadict
from roadict import ROAD, SparseCoder, load
from roadict.metrics import dictionary_error
from roadict.pictures import denoise
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
assert denoise(np.full((16, 16), 0.5), 0.1).shape == (16, 16)
np.save("data.npy", truth.data)
import roadict.studio.server
if importlib.util.find_spec("gradio"):
    import tempfile
    from roadict.studio.jobs import JobQueue
    from roadict.studio.page.layout import CSS_FILE, build
    with tempfile.TemporaryDirectory() as folder:
        build(JobQueue(), pathlib.Path(folder))
    assert CSS_FILE.exists()
    print("studio built")
print("library", roadict.__version__, "on Python", sys.version.split()[0])
"""


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


def try_out(wheel, python, extras):
    """Install the wheel in an environment of its own, and use it from a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        work = Path(folder) / "work"
        work.mkdir()
        run(python, "-m", "venv", environment)
        binaries = environment / ("Scripts" if os.name == "nt" else "bin")
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        settings = {"cwd": work, "env": clean | {"NUMBA_CACHE_DIR": str(work / "kernels")}}
        wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        run(binaries / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", wanted, **settings)
        run(binaries / "python", "-m", "pip", "check", **settings)
        (work / "smoke.py").write_text(SMOKE, encoding="utf-8")
        run(binaries / "python", "smoke.py", **settings)
        program = binaries / "roadict"
        run(program, "--version", **settings)
        run(program, "learn", "data.npy", "-k", "12", "-o", "learned.npz", "--seed", "0", **settings)
        run(program, "encode", "learned.npz", "data.npy", "-o", "codes.npz", **settings)
        run(program, "show", "learned.npz", "-o", "atoms.png", **settings)
        run(program, "demo", "--quiet", **settings)  # reads a template
        if not extras:
            refused = subprocess.run([str(program), "studio"], capture_output=True, text=True, check=False, **settings)
            assert (refused.returncode, "pip install 'roadict[studio]'" in refused.stderr) == (2, True), refused
        assert {"learned.npz", "codes.npz", "atoms.png", "roadict-demo"} <= {path.name for path in work.iterdir()}


def main():
    """Build, check, try."""
    options = argparse.ArgumentParser(description="Build and try the release.")
    options.add_argument("--python", action="append", help="interpreter to try the wheel with; may be repeated")
    options.add_argument("--extra", action="append", default=[], help="extra to install; may be repeated")
    given = options.parse_args()
    wheel = build()
    for python in given.python or [sys.executable]:
        try_out(wheel, python, given.extra)
    print(f"good: {', '.join(path.name for path in sorted(DIST.iterdir()))}")


if __name__ == "__main__":
    main()
