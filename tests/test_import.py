"""Imports are lazy: heavy packages are imported on first use."""

import os
import subprocess
import sys

import numpy as np
import pytest

# scikit-learn imports SciPy, and pandas if it is installed.
HEAVY = ("numba", "torch", "matplotlib", "skimage", "sklearn", "scipy", "pandas", "gradio", "typer")


def imported_by(statement):
    """Return the heavy packages that a new Python has imported after a statement."""
    program = f"import sys; {statement}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import roadict; roadict.__version__; dir(roadict)", set()),
        ("import roadict.metrics, roadict.synthetic", {"scipy"}),
        (
            "import roadict; roadict.ROAD; roadict.load",
            {"sklearn", "scipy", "numba", "pandas"},
        ),
        ("import roadict.cli.app", {"typer"}),
        ("import roadict.engines.gpu.cuda", set()),
    ],
)
def test_imports_are_lazy(statement, allowed):
    assert imported_by(statement) <= allowed


def test_the_program_learns_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch', name='torch')")
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(20, 3)))
    done = subprocess.run(
        [sys.executable, "-m", "roadict", "learn", "data.npy", "-o", "model.npz", "--max-iter", "2"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
