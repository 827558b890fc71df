"""``--checkpoint`` and ``--resume``, data in parts, and several processes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from program import GUARD, PROGRAM, assert_refused, command, contents, stop_in_the_middle
from roadict import load
from roadict.checkpoints import storage

from .small import DATA, LEARN, SHORT, assert_same_model

RESUMABLE = ("-k", "8", "--rho", "10", "--tol", "0", "--max-iter", "4000", "--seed", "0", "--checkpoint", "checkpoints")


@pytest.fixture
def uninterrupted(roadict, folder):
    """Return a function that learns without a stop, by its options, and returns the model file."""

    def learn(*options):
        result = roadict("learn", "data.npy", "-o", "uninterrupted.npz", *RESUMABLE[:-2], *options)
        assert result.code == 0, result.err
        return "uninterrupted.npz"

    return learn


def kill_at(condition, *arguments):
    """Start the program, kill it once the condition holds; True if it was still running."""
    with subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not condition():
            time.sleep(0.001)
        process.kill()
        return process.wait() < 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("name", "code", "method"),
    [("SIGINT", 130, ()), ("SIGTERM", 143, ("--method", "ksvd", "--sparsity", "2")), ("SIGHUP", 129, ())],
)
def test_the_first_signal_stops_the_run_with_a_checkpoint(roadict, folder, name, code, method):
    number = getattr(signal, name)
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as under nohup, and so in processes of the tests")
    options = [option for option in RESUMABLE if option not in ("--rho", "10")] if method else RESUMABLE
    arguments = ("learn", "data.npy", "-o", "out.npz", *options, *method, "--max-iter", "100000000", "--every", "1h")
    result = stop_in_the_middle(number, *arguments)
    assert result.code == code
    messages = [line for line in result.err.splitlines() if not line.startswith("learning ")]
    assert messages == ["roadict: error: stopped; checkpoint in checkpoints; continue with --resume"]
    assert not Path("out.npz").exists()
    assert len(list(Path("checkpoints").glob("*.json"))) == 1
    again = roadict(*arguments, "--max-iter", "5")
    assert_refused(again, "checkpoints holds checkpoints of an earlier run; resume it (--resume)")
    assert_refused(
        command(*arguments, "--resume", "--seed", "1"), "belongs to another problem (--seed: 0 there, 1 here)"
    )


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_closed_terminal_does_not_stop_a_run_under_nohup(folder):
    options = (*RESUMABLE, "--max-iter", "20000", "--every", "0.05s")
    with subprocess.Popen(
        [*PROGRAM, "learn", "data.npy", "-o", "out.npz", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        while process.poll() is None and not list(Path().glob("checkpoints/*.json")):
            time.sleep(0.001)
        process.send_signal(signal.SIGHUP)
        assert process.wait(GUARD) == 0
    assert Path("out.npz").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_the_second_signal_ends_the_process_at_once(folder):
    script = (
        "import os, signal, sys\n"
        "from roadict.runs.signals import stop_requests\n"
        "with stop_requests(0.0) as stop:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print(stop(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "15\n")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("delay", [0.0, 0.11])
def test_a_killed_run_resumes_to_the_same_model(roadict, folder, uninterrupted, delay):
    arguments = ("learn", "data.npy", "-o", "out.npz", *RESUMABLE, "--every", "0.02s")
    saved = Path("checkpoints")

    def far_enough():
        if saved.is_dir() and any(saved.glob("*.json")):
            time.sleep(delay)
            return True
        return False

    assert kill_at(far_enough, *arguments)
    assert not Path("out.npz").exists()
    result = roadict(*arguments, "--resume")
    assert result.code == 0, result.err
    assert re.search(r"^resumed after iteration [1-9]", result.err, re.MULTILINE)
    assert not list(saved.iterdir())
    assert_same_model("out.npz", uninterrupted())
    assert load("out.npz").get_params() == load("uninterrupted.npz").get_params()


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_progress_resumes_where_it_stood(folder, quiet):
    from screen import on_screen

    arguments = ("learn", "data.npy", "-o", "out.npz", *RESUMABLE, "--max-iter", "8000", "--every", "0.02s")
    assert kill_at(lambda: storage.saved_share(Path("checkpoints")) > 0.3, *arguments, *quiet)
    stood = int(100 * storage.saved_share(Path("checkpoints")))
    code, screen = on_screen(100, *arguments, "--resume")
    assert code == 0
    shown = [int(found[1]) for frame in screen.frames if (found := re.search(r" (\d+) %", frame))]
    assert shown[0] == stood
    assert shown == sorted(shown)
    assert shown[-1] > stood


def test_resuming_without_a_checkpoint_starts_from_the_beginning(roadict, folder):
    result = roadict("learn", "data.npy", "-k", 8, "-o", "out.npz", *SHORT, "--checkpoint", "new/folder", "--resume")
    assert result.code == 0, result.err
    assert "no checkpoint in new/folder yet: starting from the beginning" in result.err
    np.testing.assert_array_equal(load("out.npz").components_, load("model.npz").components_)


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_full_disk_is_reported_and_does_no_harm(folder, uninterrupted):
    """Files of the checkpoint are larger than the limit, the model is not."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    arguments = ("learn", "data.npy", "-o", "out.npz", *RESUMABLE, "--max-iter", "500", "--every", "0.05s")
    done = subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, timeout=GUARD, check=False, preexec_fn=limit
    )
    assert done.returncode == 0, done.stderr
    assert "no checkpoint could be written to checkpoints (File too large); the run continues" in done.stderr
    assert_same_model("out.npz", uninterrupted("--max-iter", "500"))
    assert not list(Path("checkpoints").iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--resume",), "--resume needs --checkpoint DIR"),
        (("--every", "5s"), "--every needs --checkpoint DIR"),
        (("--checkpoint", "checkpoints", "--every", "soon"), "--every soon must be a time such as 60s, 5min or 2h"),
        (("--checkpoint", "data.npy"), "data.npy is a file, not a folder; choose another folder for checkpoints"),
        (("--codes", "all"), "--codes all must be parts or gather"),
        (("--checkpoint", "checkpoints", "--every", "²s"), "--every ²s must be a time"),
        (("--timeout", "-1"), "--timeout -1 must be a time"),
        (("--timeout", "0"), "--timeout 0 must lie between 1s and 87600h"),
        (("--timeout", "99999999999999h"), "--timeout 99999999999999h must lie between 1s and 87600h"),
    ],
)
def test_checkpoint_options_are_checked(roadict, folder, options, message):
    before = contents(folder)
    assert_refused(roadict("learn", "data.npy", *LEARN, *options), message)
    assert contents(folder) == before


def test_parts_are_read_as_one(roadict, folder):
    Path("parts").mkdir()
    for index, part in enumerate(np.split(DATA, [30, 31])):
        np.save(f"parts/part-{index}.npy", part)
    for name, output in (("parts", "a.npz"), ("parts/part-*.npy", "b.npz")):
        assert roadict("learn", name, "-k", 8, "-o", output, *SHORT).code == 0
        assert_same_model(output, "model.npz")
    np.save("parts/part-2.npy", DATA[31:].astype(np.float32))
    assert_refused(roadict("learn", "parts", *LEARN), "part-2.npy has 6 columns of float32, but parts/part-0.npy has")
    assert_refused(roadict("learn", "parts/none-*.npy", *LEARN), "names no files none-*.npy")


def test_torchrun_without_torch_names_the_extra(roadict, folder, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert_refused(
        roadict("learn", "data.npy", *LEARN),
        "a run of several processes needs torch; install it with: pip install 'roadict[distributed]'",
    )
    assert_refused(roadict("learn", "data.npy", *LEARN, "--method", "mod"), "--method mod runs in one process")


def test_a_key_is_refused_for_parts(roadict, folder):
    Path("parts").mkdir()
    np.save("parts/part-0.npy", DATA)
    assert_refused(roadict("learn", "parts", *LEARN, "--key", "a"), "parts has no arrays to choose from by --key a")


def test_a_full_disk_is_reported_with_the_name_of_the_output(tmp_path):
    from roadict.files.atomic import atomic_write

    with pytest.raises(OSError, match=r"is full: '.*out\.npz'"), atomic_write(tmp_path / "out.npz"):
        raise OSError(28, "is full")
    assert not list(tmp_path.iterdir())
