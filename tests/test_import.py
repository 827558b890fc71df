"""Imports are lazy: heavy packages are imported on first use, and learning needs none of the optional ones."""

import subprocess
import sys

import numpy as np
import pytest

OPTIONAL = ("PIL", "gradio", "jinja2", "matplotlib", "mlxtend", "pandas", "pywt", "skimage", "tifffile", "torch")
# scikit-learn imports SciPy and joblib, and pandas if it is installed.
HEAVY = (*OPTIONAL, "joblib", "numba", "numpy", "rich", "scipy", "sklearn", "typer", "roadict.experiments")
ARRAYS = {"numpy", "scipy"}
LEARNERS = ARRAYS | {"joblib", "numba", "pandas", "sklearn"}
HELP = "sys.argv = ['roadict', 'learn', '--help']; runpy.run_module('roadict', run_name='__main__')"
WITHOUT = f"""
import runpy, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
"""


def python(program, **settings):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300, **settings
    )


def imported_by(statement):
    """Return the heavy packages that a new Python has imported after a statement."""
    report = f"print('imported', *[name for name in {HEAVY} if name in sys.modules])"
    done = python(f"import runpy, sys\ntry:\n    {statement}\nfinally:\n    {report}")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    return set(last.removeprefix("imported").split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import roadict; roadict.__version__; dir(roadict)", set()),
        ("import roadict.metrics, roadict.synthetic", ARRAYS),
        ("import roadict; roadict.ROAD; roadict.load", LEARNERS),
        ("from roadict import *; import roadict.pictures, roadict.plotting, roadict.ranks", LEARNERS),
        ("import roadict.cli.app", {"typer"}),
        (HELP, {"typer"}),
        ("import roadict.engines.gpu.cuda", {"numpy"}),
    ],
)
def test_imports_are_lazy(statement, allowed):
    assert imported_by(statement) <= allowed


def test_the_program_learns_and_encodes_without_the_optional_packages(tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(20, 3)))
    for arguments in (
        ["learn", "data.npy", "-o", "model.npz", "--max-iter", "2"],
        ["learn", "data.npy", "-o", "chosen.npz", "-k", "2:3", "--max-iter", "2"],
        ["encode", "model.npz", "data.npy", "-o", "codes.npz"],
    ):
        program = f"sys.argv = ['roadict', *{arguments}]; runpy.run_module('roadict', run_name='__main__')"
        done = python(WITHOUT + program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"data.npy", "model.npz", "chosen.npz", "codes.npz"}
    assert np.load(tmp_path / "codes.npz")["codes"].shape == (20, 6)


def test_the_library_learns_without_the_optional_packages():
    done = python(
        WITHOUT
        + """
import numpy as np
from roadict import ROAD, AlternatingDictionaryLearning, SparseCoder, atom_stability
from roadict.pictures import denoise, inpaint
from roadict.synthetic import planted

truth = planted(60, 4, 4, sparsity=1, random_state=0)
model = ROAD(4, random_state=0).fit(truth.data)
AlternatingDictionaryLearning(4, random_state=0, max_iter=2).fit(truth.data)
SparseCoder(model.components_, algorithm="omp", n_nonzero_coefs=1).transform(truth.data)
atom_stability(model, truth.data, random_state=0)
grey = np.linspace(0, 1, 256).reshape(16, 16)
print(denoise(grey, 0.1).shape, inpaint(np.where(np.eye(16), np.nan, grey), np.eye(16)).shape)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(16, 16) (16, 16)\n"
