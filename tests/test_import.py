"""What an import brings along, and in which order: heavy packages wait until they are needed."""

import os
import subprocess
import sys

import numpy as np
import pytest

# scikit-learn brings SciPy, and pandas where it is installed.
HEAVY = ("numba", "torch", "matplotlib", "skimage", "sklearn", "scipy", "pandas", "gradio", "typer")


def imported_by(statement):
    """The heavy packages that a fresh Python has loaded after a statement."""
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


def test_the_program_learns_where_torch_is_not_installed(tmp_path):
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
