"""What an import brings along, and in which order: heavy packages wait until they are needed."""

import subprocess
import sys

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
        ("import roadict.cli", {"typer"}),
    ],
)
def test_imports_are_lazy(statement, allowed):
    assert imported_by(statement) <= allowed
