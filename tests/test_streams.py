"""Learners go on without a standard error."""

import io
import subprocess
import sys

import pytest

from program import GUARD
from roadict import ROAD
from roadict.streams import GuardedStream
from roadict.synthetic import planted

DATA = planted(60, 6, 8, sparsity=2, random_state=0).data


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text):
        raise OSError(28, "No space left on device")

    def flush(self):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("stream", [lambda: None, closed, lambda: Full()])
def test_a_fit_survives_the_loss_of_standard_error(monkeypatch, stream, verbose):
    expected = ROAD(8, n_init=1, tol=1e-2, random_state=0).fit(DATA)
    monkeypatch.setattr(sys, "stderr", stream())
    model = ROAD(8, n_init=1, tol=1e-2, random_state=0, verbose=verbose).fit(DATA)
    assert (model.components_ == expected.components_).all()


def test_a_warning_survives_a_closed_standard_error():
    script = f"""
import sys
from roadict import ROAD
sys.stderr.close()
model = ROAD(8, n_init=1, max_iter=2, random_state=0).fit({DATA.tolist()})
print(model.stop_reason_)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD, check=False)
    assert (done.returncode, done.stdout) == (0, "max_iter\n")


def test_text_that_the_stream_cannot_encode_is_escaped():
    raw = io.BytesIO()
    stream = GuardedStream(io.TextIOWrapper(raw, encoding="ascii"))
    print("ρ is 10", file=stream, flush=True)
    assert raw.getvalue().decode().splitlines() == [r"\u03c1 is 10"]
    assert not stream.failed
