"""The Makefile installs what a target needs, once. A stub of Python makes ``.venv`` and records what pip gets."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STUB = r"""#!/bin/sh
case "$*" in
    "-m venv --clear .venv")
        echo fresh >> log; rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python; cp "$0" .venv/bin/roadict;;
    "-m pip"*) for last; do :; done; echo "$last" >> log; test ! -e broken;;
esac
"""
INHERITED = ("MAKEFLAGS", "MAKEOVERRIDES", "EXTRAS")
"""Variables that hand those of the make that runs these tests on."""
DEMO, EVERYTHING = ".[pictures,plots]", ".[dev]"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def make(tmp_path):
    """Run make; returns whether it succeeded, and what it did: "fresh" (a new .venv), and what was installed."""
    shutil.copy(Path(__file__).parents[1] / "Makefile", tmp_path)
    (tmp_path / "python").write_text(STUB)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    os.utime(tmp_path / "pyproject.toml", (0, 0))

    def run(target, *variables, python="python"):
        log = tmp_path / "log"
        log.write_text("")
        command = ["make", f"PYTHON={tmp_path / python}", target, *variables]
        outside = {name: text for name, text in os.environ.items() if name not in INHERITED}
        done = subprocess.run(
            command, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode == 0, log.read_text().split()

    return run


def test_the_demo_installs_what_it_runs_and_the_tests_add_the_rest(make):
    assert make("demo") == (True, ["fresh", DEMO])
    assert make("demo") == (True, [])
    assert make("test") == (True, [EVERYTHING])
    assert make("test") == (True, [])
    assert make("demo") == (True, [])


def test_the_extras_of_the_tests_can_be_chosen(make):
    assert make("test", "EXTRAS=plots,test") == (True, ["fresh", ".[plots,test]"])
    assert make("test") == (True, [EVERYTHING]), "the tests would run without the rest"


def test_the_demo_has_what_it_runs_after_tests_without_it(make):
    assert make("test", "EXTRAS=test") == (True, ["fresh", ".[test]"])
    assert make("demo") == (True, [DEMO])


def test_another_python_has_an_environment_of_its_own(make, tmp_path):
    shutil.copy(tmp_path / "python", tmp_path / "python3.12")
    assert make("test") == (True, ["fresh", EVERYTHING])
    assert make("test", python="python3.12") == (True, ["fresh", EVERYTHING])
    assert make("test", python="python3.12") == (True, [])


def test_a_changed_project_is_installed_again(make, tmp_path):
    make("test")
    for stamp in (tmp_path / ".venv").glob(".*ready*"):
        os.utime(stamp, (1, 1))
    os.utime(tmp_path / "pyproject.toml", (2, 2))
    assert make("demo") == (True, [DEMO])
    assert make("test") == (True, [EVERYTHING])


@pytest.mark.parametrize("target", ["demo", "test"])
def test_a_half_made_environment_is_started_afresh(make, tmp_path, target):
    make("demo")
    (tmp_path / "broken").touch()
    assert make("test") == (False, [EVERYTHING])
    (tmp_path / "broken").unlink()
    assert make(target) == (True, ["fresh", DEMO if target == "demo" else EVERYTHING])
