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
GUARD = 300  # seconds after which processes that hang are given up
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
LONG = ("-k", "12", "--rho", "10", "--tol", "0", "--max-iter", "1500", "--seed", "0", "--codes", "gather")


@pytest.fixture(scope="module")
def serial_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: rank_fits.model(name).fit(rank_fits.data_of(name)) for name in rank_fits.FITS}


@pytest.fixture(scope="module")
def fits_of_ranks(serial_fits, tmp_path_factory):
    """The folder with the fits of three ranks, of two and of one.

    They come after those of one process, which leaves the kernels compiled: else every rank compiles them all.
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
    """Every formulation, with and without missing entries, uneven shards, one of them empty; float64."""
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
    """Processes that torchrun has started, in the order of their ranks."""
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
    """Start two ranks as torchrun does; returns their exit codes and what they have said together."""
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
    """Wait for processes that have one folder; returns their exit codes and what they have said together."""
    for process in processes:
        process.join(GUARD)
    said = folder / "said"
    text = said.read_text()
    said.unlink()
    return [process.exitcode for process in processes], text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("torchrun")
    np.save(path / "data.npy", TRUTH.data)
    (path / "parts").mkdir()
    for index, part in enumerate(np.split(TRUTH.data, [75])):
        np.save(path / "parts" / f"part-{index}.npy", part)
    codes, said = ranks_by_hand(path, "learn", "data.npy", "-o", "unbroken.npz", *LONG)
    assert codes == [0, 0], said
    return path


def assert_same_model(first, second, atol=0.0):
    np.testing.assert_allclose(first.components_, second.components_, atol=atol, rtol=0)
    np.testing.assert_allclose(first.codes_, second.codes_, atol=atol, rtol=0)
    assert first.n_iter_ == second.n_iter_


def test_a_killed_rank_is_restarted_and_the_model_is_the_same(folder):
    keep = ("--checkpoint", "kept", "--every", "0.02s")
    arguments = ("learn", "parts", "-o", "killed.npz", *LONG, *keep)
    with start(folder, 2, "--max-restarts", "1", "-m", "roadict", *arguments) as process:
        try:
            kept = folder / "kept"
            wait_for(lambda: kept.is_dir() and len(list(kept.glob("*.json"))) == 2, process)
            os.kill(workers(process)[1], signal.SIGKILL)
            out, err = process.communicate(timeout=GUARD)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.count("model: killed.npz") == 1, "one rank speaks"
    assert re.search(r"resumed after iteration [1-9]\d*", err)
    assert_same_model(load(folder / "killed.npz"), load(folder / "unbroken.npz"))
    assert not list(kept.iterdir()), "what is done needs no checkpoints"


def test_a_rank_that_hangs_ends_in_an_error(folder):
    endless = ("-k", "12", "--rho", "10", "--tol", "0", "--max-iter", "100000000", "--timeout", "10s")
    with start(folder, 2, "-m", "roadict", "learn", "data.npy", "-o", "none.npz", *endless) as process:
        stopped = None
        try:
            seen = iter(process.stderr)
            assert any(line.startswith("learning ") for line in seen)
            stopped = workers(process)[1]
            os.kill(stopped, signal.SIGSTOP)
            assert any("has lost the others" in line for line in seen)
        finally:
            if stopped is not None:
                os.kill(stopped, signal.SIGKILL)
            process.communicate(timeout=GUARD)
    assert process.returncode != 0
    assert not (folder / "none.npz").exists()


def test_a_stop_is_graceful_and_goes_on_in_one_process(folder):
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
    assert err.count("stopped; checkpoint in later; go on with --resume") == 1, err
    assert len(list((folder / "later").glob("*.json"))) == 1
    codes, said = one_process(folder, *arguments, "--resume")
    assert codes == [0], said
    assert_same_model(load(folder / "stopped.npz"), load(folder / "unbroken.npz"), atol=1e-10)


@pytest.fixture(scope="module")
def bad(folder):
    """Parts of which the second alone, or both, have NaN."""
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
        ("second", (), "Input X contains NaN in 1 place (first: row 75, column 0)"),
        ("both", (), "Input X contains NaN"),
        ("none.npy", (), "No such file or directory: 'none.npy'"),
        ("data.npy", ("-k", "5", "--epsilon", "0"), "epsilon=0 is below"),
        ("data.npy", ("--codes", "all"), "--codes all must be parts or gather"),
        ("data.npy", ("-o", "missing/none.npz"), "missing does not exist"),
        ("own.codes-1-of-2.npy", ("-o", "own.npz", "--codes", "parts"), "own.codes-1-of-2.npy is also an input"),
        ("own.codes-[0-9]-*.npy", ("-o", "own.npz", "--codes", "parts"), "own.codes-1-of-2.npy is also an input"),
    ],
)
def test_bad_input_is_told_once_and_all_ranks_end_with_2(bad, data, options, message):
    codes, said = ranks_by_hand(bad, "learn", data, "-o", "none.npz", *LONG, *options)
    assert codes == [2, 2], said
    assert said.count("roadict: error:") == 1, said
    assert message in said
    assert "model:" not in said


@pytest.fixture(scope="module")
def stopped_run(folder, tmp_path_factory):
    """A folder with the checkpoint of a run that one process has begun."""
    path = tmp_path_factory.mktemp("stopped")
    arguments = ("learn", folder / "data.npy", "-o", "out.npz", *LONG, "--checkpoint", "kept", "--every", "0.02s")
    with rank_program.started(path, *arguments) as process:
        while process.is_alive() and len(list((path / "kept").glob("*.json"))) < 2:
            time.sleep(0.02)
        process.terminate()
        codes, said = ended(path, process)
    assert codes == [128 + signal.SIGTERM], said
    return path, arguments


@pytest.fixture
def stopped_folder(stopped_run, tmp_path):
    path, arguments = stopped_run
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    return tmp_path, arguments


def test_a_refused_start_is_refused_again_when_torchrun_repeats_it(stopped_folder):
    folder, arguments = stopped_folder
    before = {path: path.read_bytes() for path in (folder / "kept").iterdir()}
    with start(folder, 2, "--max-restarts", "1", "-m", "roadict", *arguments) as process:
        _, err = process.communicate(timeout=GUARD)
    assert process.returncode != 0
    assert err.count("roadict: error: kept holds checkpoints of an earlier run") == 2, err
    assert "resumed" not in err
    assert not (folder / "out.npz").exists()
    assert {path: path.read_bytes() for path in (folder / "kept").iterdir()} == before


def test_a_restart_that_one_rank_has_seen_is_one_for_all(stopped_folder):
    """Here the process of the tests stands for torchrun: it has started the run that was stopped."""
    folder, arguments = stopped_folder
    codes, said = ranks_by_hand(folder, *arguments, restarts=(0, 1))
    assert codes == [0, 0], said
    assert re.search(r"resumed after iteration [1-9]", said)
    assert not list((folder / "kept").iterdir())


def test_processes_that_outlive_torchrun_keep_their_folder(folder, tmp_path):
    keep = ("--checkpoint", "kept", "--every", "0.02s")
    arguments = ("learn", folder / "data.npy", "-o", "out.npz", *LONG, *keep, "--max-iter", "100000000")
    orphans = []
    with start(tmp_path, 2, "-m", "roadict", *arguments) as process:
        try:
            wait_for(lambda: len(list((tmp_path / "kept").glob("*.json"))) == 2, process)
            orphans = workers(process)
            process.kill()
            process.wait()
            codes, said = one_process(tmp_path, *arguments, "--resume")
        finally:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
    assert codes == [2], said
    assert f"kept is in use by process {orphans[0]} on " in said
    assert "processes outlive a torchrun that was killed" in said
    assert len(said.splitlines()) == 1
    deadline = time.monotonic() + GUARD
    while any(Path(f"/proc/{pid}").exists() for pid in orphans) and time.monotonic() < deadline:
        time.sleep(0.02)
    _, said = one_process(tmp_path, *arguments, "--resume", "--max-iter", "5")
    assert "is of another problem (max_iter: 100000000 there, 5 here)" in said, "the folder is free"
