"""Ways for tests to run the program: in this process, as a separate process, on a terminal, stopped halfway."""

import os
import re
import subprocess
import sys
from typing import NamedTuple

from roadict.cli import app as cli

PROGRAM = (sys.executable, "-m", "roadict")
GUARD = 120  # timeout in seconds of a process that hangs


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def run_here(arguments, monkeypatch, capsys):
    """Run the program inside this process; tests use the fixture ``roadict``."""
    monkeypatch.setattr(sys, "argv", ["roadict", *map(str, arguments)])
    capsys.readouterr()
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code or 0
    return Result(code, *capsys.readouterr())


def command(*arguments, cwd=None):
    """Run the program as a process, with pipes for its output."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=GUARD, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def stop_in_the_middle(number, *arguments):
    """Start the program, send a signal once it reports iterations, and return its output from then on."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*PROGRAM, *arguments], **pipes) as process:
        try:
            for line in process.stderr:
                if re.match(r"learning +\d+ % .* iteration \d", line):
                    break
            process.send_signal(number)
            out, err = process.communicate(timeout=GUARD)
        finally:
            process.kill()
    return Result(process.returncode, out, err)


def shown_on(terminal):
    """All that is written to the other end of a pseudo-terminal, until that is closed; closes this one."""
    shown = b""
    try:
        while block := os.read(terminal, 65536):
            shown += block
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(terminal)
    return shown


def on_terminal(*arguments, **settings):
    """Run the program with standard error on a pseudo-terminal; return code, standard output and what was shown."""
    import pty

    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environment.pop(name, None)
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment | settings
    ) as process:
        os.close(theirs)
        shown = shown_on(ours)
        out = process.stdout.read().decode()
    return Result(process.returncode, out, shown.decode())


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def assert_plain(text):
    """No colours, no rewriting of lines, no other control characters."""
    assert re.findall(r"[^\n\x20-\x7e\u00a0-\uffff]", text) == []


def assert_refused(result, message):
    assert result.code == 2
    assert result.out == ""
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("roadict: error: ")
    assert message in lines[0]
    assert "Traceback" not in result.err
    assert_plain(result.err)
