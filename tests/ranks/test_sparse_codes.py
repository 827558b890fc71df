"""``roadict learn`` on several ranks with sparse codes, and without codes."""

import errno
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from roadict.cli import learn
from roadict.files.atomic import RescuedError

CODES = np.where(np.random.default_rng(0).random((7, 5)) < 0.3, 1.5, 0)


class Fitted:
    checkpoint = None
    full = None

    def __init__(self, codes):
        self.codes_, self.saved = codes, []

    def save(self, path):
        if path.name == self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.saved.append(self.codes_)


@pytest.fixture
def learned(tmp_path, monkeypatch, on_ranks):
    """Return a function that runs the command on two ranks, whose fits have these codes, and returns rank 0's model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(learn, "fit_with_progress", lambda *arguments: None)
    np.save("data.npy", np.ones((7, 3)))

    def run(parts, gather):
        models = [Fitted(part) for part in parts]
        task = learn.Task(Path("data.npy"), None, None, Path("out.npz"), gather, False, True)
        on_ranks(2, lambda comm: learn._learn(models[comm.rank], task, "", comm))
        return models[0]

    return run


def test_sparse_codes_are_gathered_or_written_in_parts(learned):
    parts = [scipy.sparse.csr_array(part) for part in (CODES[:3], CODES[3:])]
    np.testing.assert_array_equal(learned(parts, gather=True).saved[0].toarray(), CODES)
    assert learned(parts, gather=False).saved[0].shape == (0, 5)
    found = [scipy.sparse.load_npz(f"out.codes-{rank}-of-2.npz").toarray() for rank in range(2)]
    np.testing.assert_array_equal(np.concatenate(found), CODES)


@pytest.mark.parametrize("gather", [False, True])
def test_codes_that_were_not_stored_are_not_written(learned, gather):
    assert learned([None, None], gather).saved == [None]
    assert [path.name for path in Path().iterdir()] == ["data.npy"]


def test_a_model_that_had_to_go_elsewhere_does_not_keep_codes_from_being_written(learned, monkeypatch, tmp_path):
    monkeypatch.setattr(Fitted, "full", "out.npz")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RescuedError, match=r"out\.npz cannot be written \(No space left on device\); the result is in"):
        learned([CODES[:3], CODES[3:]], gather=False)
    found = [np.load(f"out.codes-{rank}-of-2.npy") for rank in range(2)]
    np.testing.assert_array_equal(np.concatenate(found), CODES)
