import time

import pytest

from roadict import ROAD, Checkpoint
from roadict.checkpoints import storage
from roadict.synthetic import planted

DATA = planted(90, 6, 9, sparsity=2, random_state=0).data


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("every", "written"), [(0, 60), (1, 60), (10, 30), (30, 12), (1000, 0)])
def test_a_checkpoint_is_written_when_its_time_has_passed(tmp_path, monkeypatch, every, written):
    """An iteration takes six seconds here, so that checkpoints are due after 1, 1, 2 and 5 of them."""
    now = [5000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def tick(snapshot):
        now[0] += 6

    settings = Checkpoint(tmp_path, every=every)
    model = ROAD(9, rho=10.0, max_iter=60, tol=0, n_init=1, random_state=0, callback=tick, checkpoint=settings)
    model.fit(DATA)
    assert max(storage.numbers(tmp_path), default=0) == written
