"""The lock of a checkpoint folder: one owner at a time, however the last one ended."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from roadict.checkpoints.lock import OWNER_FILE, FolderLock
from roadict.ranks.comm import SERIAL

GUARD = 120
HOLD = """
import sys
from roadict.checkpoints.lock import FolderLock
from roadict.ranks.comm import SERIAL
with FolderLock(sys.argv[1]) as lock:
    lock.acquire(SERIAL)
    lock.write_owner()
    print("acquired", flush=True)
    sys.stdin.read()
"""
CONTEND = """
import os, sys
from roadict.checkpoints.lock import FolderLock
from roadict.ranks.comm import SERIAL
folder, inside = sys.argv[1:]
turns = 0
while turns < 60:
    try:
        with FolderLock(folder) as lock:
            lock.acquire(SERIAL)
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another process is inside
            lock.write_owner()
            os.unlink(inside)
            turns += 1
    except ValueError as refused:
        assert "is in use by" in str(refused), refused
"""


def started(program, *arguments):
    arguments = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_lock_of_a_killed_process_does_not_block_the_next_run(tmp_path):
    with started(HOLD, tmp_path) as process:
        assert process.stdout.readline() == "acquired\n"
        message = f"in use by process {process.pid} on .*; of fits in parallel, as in a cross-validation, only one can"
        with pytest.raises(ValueError, match=message), FolderLock(tmp_path) as lock:
            lock.acquire(SERIAL)
        process.send_signal(signal.SIGKILL)
        process.wait(GUARD)
    assert json.loads((tmp_path / OWNER_FILE).read_text())["process"] == process.pid
    with FolderLock(tmp_path) as lock:
        assert not lock.acquire(SERIAL), "this process has not started itself"
    assert not list(tmp_path.iterdir())


def test_a_failed_run_leaves_its_owner_file_and_no_lock_file(tmp_path):
    with contextlib.suppress(KeyError), FolderLock(tmp_path) as lock:
        lock.acquire(SERIAL)
        lock.write_owner()
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == [OWNER_FILE]


def test_only_one_process_at_a_time_owns_the_folder(tmp_path):
    processes = [started(CONTEND, tmp_path / "folder", tmp_path / "inside") for _ in range(3)]
    for process in processes:
        process.communicate(timeout=GUARD)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert not list((tmp_path / "folder").iterdir())


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_reported_and_used(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with FolderLock(tmp_path) as lock:
        with pytest.warns(UserWarning, match=rf"has no locks \({os.strerror(number)}\): make sure that no other run"):
            lock.acquire(SERIAL)
        lock.write_owner()
        assert (tmp_path / OWNER_FILE).exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", [b"", b"\xff\x00", b"[" * 100_000, b"3", b'{"starters": 3}', b'{"process": 1, "starters": []}']
)
def test_a_damaged_owner_file_is_ignored(tmp_path, text):
    (tmp_path / OWNER_FILE).write_bytes(text)
    with FolderLock(tmp_path) as lock:
        assert not lock.acquire(SERIAL)
