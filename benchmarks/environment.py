"""The environment of the peers' packages, benchmarks/.peers, created on first use."""

import subprocess
import venv
from pathlib import Path

FOLDER = Path(__file__).with_name(".peers")
PACKAGES = ["dictlearn[numba]==1.0.0", "sporco", "spams-bin", "scikit-learn"]


def peer_python():
    """Path of its interpreter."""
    python, ready = FOLDER / "bin" / "python", FOLDER / ".ready"
    if not ready.exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        ready.touch()
    return python
