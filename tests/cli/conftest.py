from pathlib import Path

import numpy as np
import pytest

from roadict import ROAD

from .small import DATA


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    ROAD(8, max_iter=500, tol=1e-2, random_state=0).fit(DATA).save(path)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch, model_bytes):
    """Work in a folder with data and a model."""
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", DATA)
    np.savez("data.npz", signals=DATA)
    np.savetxt("data.csv", DATA, delimiter=",", header="a,b,c,d,e,f", comments="")
    Path("model.npz").write_bytes(model_bytes)
    return tmp_path
