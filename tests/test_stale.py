"""benchmarks/stale.py lists the sections of RESULTS.md that are older than the code they measure."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPT = "import other\nfrom results import write_section\nfrom roadict import metrics\n"
OTHER = 'LENGTH = 3\nPROGRAM = "worker.py"\n'
RECORD = "from results import write_section; write_section('Speed', 'python benchmarks/speed.py --trials 3', '1 s')"


@pytest.fixture
def folder(tmp_path):
    """A folder with results of one benchmark and its neighbour, as RESULTS.md tells."""
    benchmarks = tmp_path / "benchmarks"
    benchmarks.mkdir()
    for name in ("results.py", "stale.py"):
        shutil.copy(BENCHMARKS / name, benchmarks)
    (benchmarks / "speed.py").write_text(SCRIPT)
    (benchmarks / "other.py").write_text(OTHER)
    (benchmarks / "worker.py").write_text("import helper\n")
    (benchmarks / "helper.py").write_text("TURNS = 2\n")
    python(benchmarks, "-c", RECORD)
    return benchmarks


def python(folder, *arguments, commit="0123456789"):
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "ROADICT_COMMIT": commit}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def listed(folder):
    done = python(folder, str(folder / "stale.py"))
    assert done.stderr == ""
    assert done.returncode == (done.stdout != "0 of 1 sections are stale\n")
    return done.stdout


def test_a_new_section_is_not_stale_whatever_comments_say(folder):
    assert listed(folder) == "0 of 1 sections are stale\n"
    (folder / "other.py").write_text("# atoms\n" + OTHER)
    assert listed(folder) == "0 of 1 sections are stale\n"


@pytest.mark.parametrize("changed", ["speed.py", "other.py", "worker.py", "helper.py"])
def test_a_change_of_the_script_or_of_what_it_imports_or_runs_is_noticed(folder, changed):
    with (folder / changed).open("a") as file:
        file.write("MORE = 1\n")
    assert listed(folder).startswith(
        "Speed: the code has changed since commit 0123456789; run: python benchmarks/speed.py"
    )


def test_a_section_without_commit_is_stale(folder):
    head = "# Measured\n\n## Speed\n\n"
    (folder / "RESULTS.md").write_text(head + "`python benchmarks/speed.py`\n\n1 s\n\n(2026-11-17)\n")
    assert listed(folder).startswith("Speed: names no commit and no code; run: python benchmarks/speed.py\n")
    (folder / "RESULTS.md").write_text(head + "Measured by hand.\n")
    assert listed(folder).startswith("Speed: no command under its title\n")


def test_a_section_whose_script_is_gone_is_listed_and_cannot_be_run(folder):
    (folder / "speed.py").rename(folder / "faster.py")
    assert listed(folder).startswith("Speed: there is no script for its command, python benchmarks/speed.py --trials 3")
    assert "no script" in python(folder, str(folder / "stale.py"), "--run").stdout


def test_code_that_changes_under_a_measurement_makes_it_stale(folder):
    edit = "open(__file__.replace('speed', 'other'), 'a').write('MORE = 1\\n')"
    (folder / "speed.py").write_text(f"{SCRIPT}{edit}\n{RECORD}\n")
    python(folder, str(folder / "speed.py"))
    assert "commit 0123456789-dirty," in (folder / "RESULTS.md").read_text()
    assert listed(folder).startswith("Speed: measured with uncommitted changes")


def test_sections_that_are_written_at_once_are_all_kept(folder):
    """Every process reads, changes and writes the one file."""
    records = [RECORD.replace("Speed", f"Speed {i}") for i in range(6)]
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "ROADICT_COMMIT": "0123456789"}
    running = [subprocess.Popen([sys.executable, "-c", record], env=environment) for record in records]
    assert [process.wait() for process in running] == [0] * 6
    text = (folder / "RESULTS.md").read_text()
    assert all(f"## Speed {i}\n" in text for i in range(6))


def test_a_section_of_uncommitted_code_is_listed(folder):
    python(folder, "-c", RECORD, commit="0123456789-dirty")
    assert listed(folder).startswith("Speed: measured with uncommitted changes, commit 0123456789-dirty; run: python")


def test_the_gallery_is_stale_when_an_example_has_changed(folder):
    example = folder.parent / "examples" / "plot_letters.py"
    example.parent.mkdir()
    example.write_text("ATOMS = 16\n")
    (folder / "examples.py").write_text("EXAMPLES = 'plot_*.py'\n")
    python(folder, "-c", RECORD.replace("speed.py --trials 3", "examples.py"))
    assert listed(folder) == "0 of 1 sections are stale\n"
    example.write_text("ATOMS = 17\n")
    assert listed(folder).startswith("Speed: the code has changed since commit 0123456789; run: python")


def test_files_that_a_benchmark_measures_without_importing_them_exist(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    results = importlib.import_module("results")
    for script, patterns in results.NOT_IMPORTED.items():
        assert (BENCHMARKS / script).is_file()
        for folder, pattern in patterns:
            assert list(folder.glob(pattern)), f"{script}: nothing is called {pattern}"


def test_what_results_names_is_not_measured_by_every_script(folder):
    (folder / "examples.py").write_text("EXAMPLES = 'plot_*.py'\n")
    assert listed(folder) == "0 of 1 sections are stale\n"


def test_stale_sections_are_measured_again(folder):
    (folder / "speed.py").write_text(f"{SCRIPT}import sys\n{RECORD.replace('1 s', '2 s')}\nprint(*sys.argv[1:])\n")
    assert python(folder, str(folder / "stale.py"), "--run", "elsewhere").returncode == 1
    done = python(folder, str(folder / "stale.py"), "--run", "speed")
    assert done.returncode == 0
    assert done.stdout.endswith("--trials 3\n0 of 1 sections are stale\n")
    assert "2 s" in (folder / "RESULTS.md").read_text()
