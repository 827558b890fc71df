"""Real processes under torchrun: the same results as one process, a rank that is killed, a rank that hangs."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rank_data import TRUTH
from roadict import load

pytest.importorskip("torch")

import rank_fits
import rank_program

pytestmark = pytest.mark.skipif(os.name == "nt" or not Path("/proc").exists(), reason="needs Linux")

SCRIPT = Path(__file__).parents[1] / "rank_fits.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node")
GUARD = 300  # timeout in seconds of processes that hang
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
LONG = ("-k", "12", "--rho", "10", "--tol", "0", "--max-iter", "1500", "--seed", "0", "--codes", "gather")
CHECKPOINTS = ("--checkpoint", "checkpoints", "--every", "0.02s")


@pytest.fixture(scope="module")
def serial_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: rank_fits.model(name).fit(rank_fits.data_of(name)) for name in rank_fits.FITS}


@pytest.fixture(scope="module")
def fits_of_ranks(serial_fits, tmp_path_factory):
    """The folder with the fits on three ranks, on two and on one.

    They run after those in one process, which compile the kernels: otherwise every rank would compile them all.
    """
    path = tmp_path_factory.mktemp("fits")
    done = subprocess.run(
        [*TORCHRUN, "3", str(SCRIPT), str(path)],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=GUARD, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_learn_what_one_process_learns(fits_of_ranks, serial_fits, size):
    """Every formulation, with and without missing entries; uneven shards, one of them empty; float64."""
    for name, alone in serial_fits.items():
        found = np.load(fits_of_ranks / str(size) / f"{name}.npz")
        objective, error, n_iter = found["numbers"]
        if name == "auto":  # chaotic while ρ is small
            assert objective == pytest.approx(alone.objective_, rel=0.01)
            assert error < 1e-3
            assert alone.error_ < 1e-3
            continue
        np.testing.assert_allclose(found["components"], alone.components_, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(found["codes"], alone.codes_, atol=1e-9, err_msg=name)
        np.testing.assert_array_equal(found["codes"] != 0, alone.codes_ != 0, err_msg=name)
        assert (objective, error, n_iter) == pytest.approx((alone.objective_, alone.error_, alone.n_iter_), rel=1e-9)


def start(folder, *arguments):
    return subprocess.Popen(
        [*TORCHRUN, *map(str, arguments)],
        env=ENVIRONMENT, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def workers(process):
    """Return the processes that torchrun has started, in rank order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = {}
    for pid in map(int, children):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        ranks |= {int(entry[5:]): pid for entry in environment if entry.startswith(b"RANK=")}
    return [ranks[rank] for rank in sorted(ranks)]


def wait_for(condition, process):
    deadline = time.monotonic() + GUARD
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ranks_by_hand(folder, *arguments, restarts=(0, 0)):
    """Start two ranks as torchrun does; returns their exit codes and joint output."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    with contextlib.ExitStack() as both:
        ranks = [
            {"RANK": str(rank), "LOCAL_RANK": str(rank), "TORCHELASTIC_RESTART_COUNT": str(count)}
            for rank, count in enumerate(restarts)
        ]
        processes = [both.enter_context(rank_program.started(folder, *arguments, **common | rank)) for rank in ranks]
        return ended(folder, *processes)


def one_process(folder, *arguments):
    with rank_program.started(folder, *arguments) as process:
        return ended(folder, process)


def ended(folder, *processes):
    """Wait for processes in one folder; returns their exit codes and joint output."""
    for process in processes:
        process.join(GUARD)
    text = (folder / "output").read_text()
    (folder / "output").unlink()
    return [process.exitcode for process in processes], text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("torchrun")
    np.save(path / "data.npy", TRUTH.data)
    (path / "parts").mkdir()
    for index, part in enumerate(np.split(TRUTH.data, [75])):
        np.save(path / "parts" / f"part-{index}.npy", part)
    codes, output = ranks_by_hand(path, "learn", "data.npy", "-o", "uninterrupted.npz", *LONG)
    assert codes == [0, 0], output
    return path


def assert_same_model(first, second, atol=0.0):
    np.testing.assert_allclose(first.components_, second.components_, atol=atol, rtol=0)
    np.testing.assert_allclose(first.codes_, second.codes_, atol=atol, rtol=0)
    assert first.n_iter_ == second.n_iter_


def test_a_killed_rank_is_restarted_and_the_model_is_the_same(folder):
    arguments = ("learn", "parts", "-o", "killed.npz", *LONG, *CHECKPOINTS)
    with start(folder, 2, "--max-restarts", "1", "-m", "roadict", *arguments) as process:
        try:
            saved = folder / "checkpoints"
            wait_for(lambda: saved.is_dir() and len(list(saved.glob("*.json"))) == 2, process)
            os.kill(workers(process)[1], signal.SIGKILL)
            out, err = process.communicate(timeout=GUARD)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.count("model: killed.npz") == 1, "only rank 0 prints"
    assert re.search(r"resumed after iteration [1-9]\d*", err)
    assert_same_model(load(folder / "killed.npz"), load(folder / "uninterrupted.npz"))
    assert not list(saved.iterdir()), "a finished run needs no checkpoints"


def test_a_rank_that_hangs_is_an_error(folder):
    endless = ("-k", "12", "--rho", "10", "--tol", "0", "--max-iter", "100000000", "--timeout", "10s")
    with start(folder, 2, "-m", "roadict", "learn", "data.npy", "-o", "none.npz", *endless) as process:
        stopped = None
        try:
            lines = iter(process.stderr)
            assert any(line.startswith("learning ") for line in lines)
            stopped = workers(process)[1]
            os.kill(stopped, signal.SIGSTOP)
            assert any("has lost the others" in line for line in lines)
        finally:
            if stopped is not None:
                os.kill(stopped, signal.SIGKILL)
            process.communicate(timeout=GUARD)
    assert process.returncode != 0
    assert not (folder / "none.npz").exists()


def test_a_stop_is_graceful_and_the_run_resumes_in_one_process(folder):
    """SIGTERM to torchrun reaches all ranks; the checkpoint of two ranks is resumed by one."""
    arguments = ("learn", "data.npy", "-o", "stopped.npz", *LONG, "--checkpoint", "later", "--every", "1h")
    with start(folder, 2, "-m", "roadict", *arguments) as process:
        try:
            wait_for((folder / "later").is_dir, process)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=GUARD)
        finally:
            process.kill()
    assert process.returncode != 0
    assert err.count("stopped; checkpoint in later; continue with --resume") == 1, err
    assert len(list((folder / "later").glob("*.json"))) == 1
    codes, output = one_process(folder, *arguments, "--resume")
    assert codes == [0], output
    assert_same_model(load(folder / "stopped.npz"), load(folder / "uninterrupted.npz"), atol=1e-10)


@pytest.fixture(scope="module")
def bad(folder):
    """Parts of which only the second, or both, have NaN."""
    for name, wrong in (("second", (1,)), ("both", (0, 1))):
        (folder / name).mkdir()
        for index in range(2):
            part = np.load(folder / "parts" / f"part-{index}.npy")
            part[0, 0] = np.nan if index in wrong else 0
            np.save(folder / name / f"part-{index}.npy", part)
    np.save(folder / "own.codes-1-of-2.npy", np.load(folder / "data.npy"))
    return folder


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("second", (), "second contains NaN in 1 place (first: part-1.npy, row 1, column 1); pass --missing"),
        ("both", (), "both contains NaN in 1 place (first: part-0.npy, row 1, column 1)"),
        ("none.npy", (), "none.npy does not exist"),
        ("data.npy", ("-k", "5", "--epsilon", "0"), "--epsilon 0 is below"),
        ("data.npy", ("--codes", "all"), "--codes all must be parts or gather"),
        ("data.npy", ("-o", "missing/none.npz"), "missing does not exist"),
        ("own.codes-1-of-2.npy", ("-o", "own.npz", "--codes", "parts"), "own.codes-1-of-2.npy is also an input"),
        ("own.codes-[0-9]-*.npy", ("-o", "own.npz", "--codes", "parts"), "own.codes-1-of-2.npy is also an input"),
    ],
)
def test_bad_input_is_reported_once_and_all_ranks_exit_with_2(bad, data, options, message):
    codes, output = ranks_by_hand(bad, "learn", data, "-o", "none.npz", *LONG, *options)
    assert codes == [2, 2], output
    assert output.count("roadict: error:") == 1, output
    assert message in output
    assert "model:" not in output


@pytest.fixture(scope="module")
def stopped_run(folder, tmp_path_factory):
    """A folder with the checkpoint of a run that was stopped in one process."""
    path = tmp_path_factory.mktemp("stopped")
    arguments = ("learn", folder / "data.npy", "-o", "out.npz", *LONG, *CHECKPOINTS)
    with rank_program.started(path, *arguments) as process:
        while process.is_alive() and len(list((path / "checkpoints").glob("*.json"))) < 2:
            time.sleep(0.02)
        process.terminate()
        codes, output = ended(path, process)
    assert codes == [128 + signal.SIGTERM], output
    return path, arguments


@pytest.fixture
def stopped_folder(stopped_run, tmp_path):
    path, arguments = stopped_run
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    return tmp_path, arguments


def test_a_refused_run_is_refused_again_when_torchrun_restarts_it(stopped_folder):
    folder, arguments = stopped_folder
    before = {path: path.read_bytes() for path in (folder / "checkpoints").iterdir()}
    with start(folder, 2, "--max-restarts", "1", "-m", "roadict", *arguments) as process:
        _, err = process.communicate(timeout=GUARD)
    assert process.returncode != 0
    assert err.count("roadict: error: checkpoints holds checkpoints of an earlier run") == 2, err
    assert "resumed" not in err
    assert not (folder / "out.npz").exists()
    assert {path: path.read_bytes() for path in (folder / "checkpoints").iterdir()} == before


def test_a_restart_seen_by_one_rank_is_a_restart_for_all(stopped_folder):
    """The process of the tests plays the part of torchrun here: it has started the run that was stopped."""
    folder, arguments = stopped_folder
    codes, output = ranks_by_hand(folder, *arguments, restarts=(0, 1))
    assert codes == [0, 0], output
    assert re.search(r"resumed after iteration [1-9]", output)
    assert not list((folder / "checkpoints").iterdir())


def test_processes_that_outlive_torchrun_hold_their_lock(folder, tmp_path):
    arguments = ("learn", folder / "data.npy", "-o", "out.npz", *LONG, *CHECKPOINTS, "--max-iter", "100000000")
    orphans = []
    with start(tmp_path, 2, "-m", "roadict", *arguments) as process:
        try:
            wait_for(lambda: len(list((tmp_path / "checkpoints").glob("*.json"))) == 2, process)
            orphans = workers(process)
            process.kill()
            process.wait()
            codes, output = one_process(tmp_path, *arguments, "--resume")
        finally:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
    assert codes == [2], output
    assert f"checkpoints is in use by process {orphans[0]} on " in output
    assert "processes outlive a torchrun that was killed" in output
    assert len(output.splitlines()) == 1
    deadline = time.monotonic() + GUARD
    while any(Path(f"/proc/{pid}").exists() for pid in orphans) and time.monotonic() < deadline:
        time.sleep(0.02)
    _, output = one_process(tmp_path, *arguments, "--resume", "--max-iter", "5")
    assert "belongs to another problem (--max-iter: 100000000 there, 5 here)" in output, "the folder is free"
